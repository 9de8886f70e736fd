"""Origins: where a decoded struct came from.

Every decoded struct carries an `Origin`: its document and its position in decoding order. Decoding the same bytes again
visits the structs in the same order, so an origin leads back to the JSON object it was read from, including fields our
types do not declare. The origin is an ordinary (hidden) field of the struct, so `copy.copy`, `copy.deepcopy`,
`msgspec.structs.replace` and moving a part elsewhere all keep it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count, repeat
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import UNSET, UnsetType

#: The wire name of the hidden field. DEL is legal in JSON and never a name in a Kubernetes API.
ORIGIN_KEY = "\x7forigin"


class Place(NamedTuple):
    """The JSON object a struct was read from, the same object as our types decoded it, and its class."""

    raw: dict[str, Any]
    seen: dict[str, Any]
    cls: type[Any]


class Source(Protocol):
    """The document of an origin; `objects.document.Document` is the only one."""

    @property
    def raw(self) -> bytes:
        """The bytes as read."""
        ...

    @property
    def partial(self) -> bool:
        """Whether the bytes are incomplete."""
        ...

    @property
    def is_manifest(self) -> bool:
        """Whether a person wrote the bytes, so that no server has sent them."""
        ...

    def place(self, ordinal: int) -> Place:
        """Return the JSON object that the ``ordinal``-th struct was decoded from."""
        ...

    def decoded_again(self) -> Any:
        """The object as it was read, with the same origins; None if it cannot be decoded on its own."""
        ...


class Origin(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A place in a document. All origins compare equal, so that comparing structs compares only their values."""

    document: Source
    ordinal: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Origin, UnsetType))

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> Origin:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Origin:
        return self


class _Decoding(threading.local):
    """The origins of the document that this thread is decoding. Decoding never awaits, so a thread has at most one."""

    origins: Iterator[Origin] | None = None


decoding = _Decoding()


def origins_in(document: Source) -> Iterator[Origin]:
    """The origins of a document's structs, in decoding order."""
    return map(Origin, repeat(document), count())


def next_origin() -> Origin | UnsetType:
    """The origin of the struct being made; UNSET outside of decoding."""
    origins = decoding.origins
    return UNSET if origins is None else next(origins)


class _AnyInstance(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return True


class OriginSlot(metaclass=_AnyInstance):
    """The type of the hidden field: ignores any value that a document contains under its name.

    Only the decoder provides origins. (msgspec checks that its hook returns an instance of this type: everything is.)
    """


class tracking:  # noqa: N801 - reads as a statement: `with tracking(document):`
    """Give every struct decoded inside the block an origin in ``document``."""

    __slots__ = ("_document",)

    def __init__(self, document: Source) -> None:
        self._document = document

    def __enter__(self) -> None:
        decoding.origins = origins_in(self._document)

    def __exit__(self, *_: object) -> None:
        decoding.origins = None
