"""The body of a long list, encoded object by object while it is sent.

Guarantees
- A client that does not read costs one piece of memory: `_PIECE` bytes of JSON, or one object, in its media type; and a
  reference to each object.
- Worker threads compute the pieces, one for all answers of the server at a time. Users take turns.
- The bytes are those of the whole list. A protobuf list begins with its length, so that it is encoded twice, as far as
  the server has no memory to keep it: `ANSWERS_MAX` for all clients together.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from steersman.apiserver import protobuf
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.json_trees import decode_tree
from steersman.apiserver.storage import Record
from steersman.apiserver.workers import Workers
from steersman.wire import JSON, PROTOBUF, YAML

_T = TypeVar("_T")

_log = logging.getLogger("steersman.apiserver")

#: How many bytes of JSON are encoded at a time.
_PIECE: Final = 128 * 1024
#: Ends the list and its object.
_TAIL: Final = b"]}\n"


class PrintedForm(Protocol):
    """How stored objects are printed as items of a list, in JSON."""

    def items(self, records: Iterable[Record]) -> Iterator[bytes]:
        """Each item."""
        ...

    def joined(self, records: Iterable[Record], before: bytes = b"", after: bytes = b"") -> bytes:
        """All items, separated by commas, between two texts."""
        ...


class LongList:
    """A body: ``LongList(head, records, form, media_type=YAML, workers=workers, user="kim")``.

    ``head`` is the JSON text of the list before its first item. ``weight`` is the size that an item counts as in addition
    to its object; None if its JSON is a copy of stored bytes, which needs no thread.
    """

    def __init__(
        self,
        head: bytes,
        records: Sequence[Record],
        form: PrintedForm,
        *,
        media_type: str,
        workers: Workers,
        user: str,
        weight: int | None,
    ) -> None:
        self._encoder = _ENCODERS[media_type](head, form)
        self._records = records
        self._form = form
        self._workers = workers
        self._user = user
        self._weight = weight or 0
        self._is_copied = weight is None and media_type == JSON

    async def check(self) -> None:
        """Print all items once: raises `RequestRejected` now if one of them cannot be printed."""
        for batch, size in self._batches():
            await self._computed(partial(self._form.joined, batch), size)

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        encoder = self._encoder
        kept: deque[bytes] = deque()
        try:
            length = await self._length(kept) if encoder.needs_length else 0
            piece = encoder.begin(length)
            for batch, size in self._batches():
                if kept:
                    piece += self._taken(kept)
                else:
                    piece += await self._computed(partial(encoder.encoded, batch), size)
                yield piece
                piece = b""
            yield piece + encoder.end()
        except RequestRejected as refused:
            # The head is sent: only the end of the connection can tell the client.
            _log.warning("a list ended halfway: %s", refused.status.message)
            raise ConnectionAbortedError(refused.status.message) from None
        finally:
            while kept:
                self._taken(kept)

    async def _length(self, kept: deque[bytes]) -> int:
        """The length of all encoded objects. Keeps the first pieces, as far as the server has memory for them."""
        length, keeps = 0, True
        for batch, size in self._batches():
            piece = await self._computed(partial(self._encoder.encoded, batch), size)
            length += len(piece)
            keeps = keeps and self._workers.keep(len(piece))
            if keeps:
                kept.append(piece)
        return length

    def _taken(self, kept: deque[bytes]) -> bytes:
        piece = kept.popleft()
        self._workers.drop(len(piece))
        return piece

    async def _computed(self, work: Callable[[], _T], size: int) -> _T:
        if self._is_copied:
            return work()
        return await self._workers.answer(work, size=size, user=self._user)

    def _batches(self) -> Iterator[tuple[Sequence[Record], int]]:
        """Consecutive objects, and the size that they count as."""
        records, weight = self._records, self._weight
        start = size = 0
        # No list of all sizes: a client that does not read would hold it, and it is four times as long as the records.
        for number, record in enumerate(records):
            added = len(record.value) + weight
            if number > start and size + added > _PIECE:
                yield records[start:number], size
                start, size = number, 0
            size += added
        if start < len(records):
            yield records[start:], size


class _Encoder(Protocol):
    """Encodes one list."""

    #: Whether `begin` is called with the length of all encoded objects.
    needs_length: bool

    def begin(self, length: int) -> bytes: ...

    def encoded(self, records: Sequence[Record]) -> bytes: ...

    def end(self) -> bytes: ...


class _AsJson:
    needs_length = False

    def __init__(self, head: bytes, form: PrintedForm) -> None:
        self._separator = head
        self._form = form

    def begin(self, length: int) -> bytes:
        del length
        return b""

    def encoded(self, records: Sequence[Record]) -> bytes:
        separator, self._separator = self._separator, b","
        return self._form.joined(records, separator)

    def end(self) -> bytes:
        return _TAIL


class _AsYaml:
    needs_length = False

    def __init__(self, head: bytes, form: PrintedForm) -> None:
        from steersman.apiserver.encodings.yaml_writer import YamlWriter  # noqa: PLC0415 - few clients want YAML

        self._tree: dict[str, Any] = decode_tree(head + _TAIL)
        *_, self._field = self._tree
        self._form = form
        self._writer = YamlWriter()

    def begin(self, length: int) -> bytes:
        del length
        self._writer.start_map()
        for name in sorted(self._tree):
            self._writer.value(name)
            if name == self._field:
                break
            self._writer.value(self._tree[name])
        self._writer.start_list()
        return self._writer.take()

    def encoded(self, records: Sequence[Record]) -> bytes:
        for each in self._form.items(records):
            self._writer.value(decode_tree(each))
        return self._writer.take()

    def end(self) -> bytes:
        self._writer.end_list()
        for name in sorted(self._tree):
            if name > self._field:
                self._writer.value(name)
                self._writer.value(self._tree[name])
        self._writer.end_map()
        return self._writer.finish()


class _AsProtobuf:
    needs_length = True

    def __init__(self, head: bytes, form: PrintedForm) -> None:
        self._writer = protobuf.ListWriter(decode_tree(head + _TAIL))
        self._form = form

    def begin(self, length: int) -> bytes:
        return self._writer.begin(length)

    def encoded(self, records: Sequence[Record]) -> bytes:
        return b"".join([self._writer.item(decode_tree(each)) for each in self._form.items(records)])

    def end(self) -> bytes:
        return self._writer.end()


_ENCODERS: Final[dict[str, Callable[[bytes, PrintedForm], _Encoder]]] = {
    JSON: _AsJson,
    YAML: _AsYaml,
    PROTOBUF: _AsProtobuf,
}
