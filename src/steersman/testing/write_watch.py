"""The writes of a test and its operators, one by one: which client wrote what, and what changed.

Guarantees
- Every writing request through a client of the test's control plane is listed, including rejected ones and those that
  changed nothing. Dry runs and reviews write nothing and are not listed.
- On the embedded server, so is every writing request of another program, such as kubectl.
- Outside of a `writes` block, nothing is recorded and no extra request is sent.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, Unpack, cast

import msgspec

from steersman.client import redacted_text
from steersman.objects import SERVER_BOOKKEEPING, GroupVersionKind, Key, Kind, Object, is_manager_of
from steersman.testing.expectations import ABSENT
from steersman.testing.report import shown_words
from steersman.transport import BufferedResponse, Response, SendOptions, Transport, TransportWrapper
from steersman.wire import WRITE_VERBS, HttpRequest, ResourcePath, parse_path

T = TypeVar("T")

_APPLY = ("application/apply-patch",)


class RecordedWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One writing request."""

    verb: str
    kind: str
    key: Key
    subresource: str = ""
    #: The field manager; the user agent if there is none.
    manager: str = ""
    #: The impersonated user; empty for the administrator.
    user: str = ""
    #: The HTTP status of the response.
    status: int = 0
    #: The server's message, if it rejected the request.
    refusal: str = ""
    #: The changed fields, each with its old and new value.
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f"{self.kind} {self.key}" + (f" ({self.subresource})" if self.subresource else "")
        who = f" by {self.manager}" + (f" as {self.user}" if self.user else "")
        if self.refusal:
            return f"{self.verb} {what}{who}: rejected with {self.status}: {self.refusal}"
        if self.verb in {"create", "delete"} and not self.subresource:
            return f"{self.verb} {what}{who}"
        return f"{self.verb} {what}{who}: {'; '.join(self.changes) or 'changed nothing'}"


class Writes(list[RecordedWrite]):
    """Writes in the order of their responses: ``assert writes == []``."""

    def of(self, kind: type[Object] | Kind | str, key: Key | str | None = None) -> Writes:
        """The writes to objects of a kind, or to one object; a bare name matches in any namespace."""
        name = kind if isinstance(kind, str) else kind.gvk().kind
        of_kind = (write for write in self if write.kind == name)
        return Writes(write for write in of_kind if key is None or _is(write.key, key))

    def by(self, manager: str) -> Writes:
        """The writes of a field manager; an operator's name includes its controllers, ``site-operator/site``."""
        return Writes(write for write in self if is_manager_of(manager, write.manager))

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "(no writes)"

    def __repr__(self) -> str:
        return f"[{', '.join(f'<{write}>' for write in self)}]"


def _is(key: Key, wanted: Key | str) -> bool:
    return key.name == wanted if isinstance(wanted, str) and "/" not in wanted else str(key) == str(wanted)


class WriteWatch:
    """The active recordings of one control plane's writes."""

    def __init__(self) -> None:
        self._looking: list[Writes] = []

    @contextmanager
    def look(self) -> Generator[Writes]:
        """Record during a block."""
        writes = Writes()
        self._looking.append(writes)
        try:
            yield writes
        finally:
            # by identity: two lists may be equal
            self._looking = [watched for watched in self._looking if watched is not writes]

    @property
    def active(self) -> bool:
        """Whether a recording is active."""
        return bool(self._looking)

    def note(self, write: RecordedWrite) -> None:
        """Add a write to all active recordings."""
        for writes in self._looking:
            writes.append(write)


class WatchedTransport(TransportWrapper):
    """A transport whose writes can be recorded."""

    def __init__(self, inner: Transport, watch: WriteWatch) -> None:
        super().__init__(inner)
        self._watch = watch

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        place = _place(request) if self._watch.active and request.method in WRITE_VERBS else None
        if place is None:
            return await self._inner.send(request, **options)
        options["stream"] = False
        before = await self._read(place) if request.method != "POST" else None
        response = await self._inner.send(request, **options)
        async with response:
            body = await response.read()
        self._watch.note(_write(request, place, response.status, before, _tree(body)))
        return BufferedResponse(response.status, response.headers, body)

    async def _read(self, place: ResourcePath) -> dict[str, Any] | None:
        if place.name is None:
            return None
        path = msgspec.structs.replace(place, subresource=None, subpath=None).path
        async with await self._inner.send(
            HttpRequest("GET", path, headers=(("Accept", "application/json"),))
        ) as answer:
            return _tree(await answer.read()) if answer.status == 200 else None


def _place(request: HttpRequest) -> ResourcePath | None:
    """Where a request writes; None if it writes nothing."""
    if ("dryRun", "All") in request.query or _is_dry_deletion(request):
        return None
    try:
        place = parse_path(request.path)
    except ValueError:
        return None
    return None if place is None or place.resource.endswith("reviews") else place


def _is_dry_deletion(request: HttpRequest) -> bool:
    """Whether the options in the body of a deletion make it a dry run."""
    return request.method == "DELETE" and bool((_tree(request.body or b"") or {}).get("dryRun"))


def _write(
    request: HttpRequest, place: ResourcePath, status: int, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> RecordedWrite:
    after = after or {}
    sent = _tree(request.body or b"") or {}
    verb = WRITE_VERBS[request.method]
    if (request.header("Content-Type") or "").startswith(_APPLY):
        verb = "apply"
    elif verb == "delete" and not place.name:
        verb = "delete collection"
    query = dict(request.query)
    manager = query.get("fieldManager") or (request.header("User-Agent") or "").partition("/")[0]
    nothing: dict[str, Any] = {}
    states = (state for state in (before, after, sent) if state and state.get("kind") not in {None, "Status"})
    typed = next(states, nothing)
    kind = str(typed.get("kind", place.resource)) if typed is before or not place.subresource else place.resource
    name = place.name or str(after.get("metadata", {}).get("name", "")) or "*"
    refused = status >= 400
    comparable = not refused and before is not None and after.get("kind") == before.get("kind")
    return RecordedWrite(
        verb=verb,
        kind=kind,
        key=Key(place.namespace or "", name),
        subresource=place.subresource or "",
        manager=manager,
        user=request.header("Impersonate-User") or "",
        status=status,
        refusal=redacted_text(str(after.get("message", "")), request) if refused else "",
        changes=tuple(_changes(before, after, place)) if comparable else ("it did not exist",) if not refused else (),
    )


def _tree(body: bytes) -> dict[str, Any] | None:
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return cast("dict[str, Any]", tree) if isinstance(tree, dict) else None


def _changes(before: Any, after: Any, place: ResourcePath, field: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        for name in dict.fromkeys((*old, *new)):
            if field != "metadata" or name not in SERVER_BOOKKEEPING:
                inner = f"{field}.{name}" if field else name
                yield from _changes(old.get(name, ABSENT), new.get(name, ABSENT), place, inner)
    elif _are_alike(before, after):
        pairs = zip(cast("list[Any]", before), cast("list[Any]", after), strict=True)
        for index, (old, new) in enumerate(pairs):
            yield from _changes(old, new, place, f"{field}[{index}]")
    elif before != after:
        kind = GroupVersionKind(place.group, place.version, "Secret" if place.resource == "secrets" else "")
        yield f"{field}: {shown_words(before, field, kind)} -> {shown_words(after, field, kind)}"


def _are_alike(before: Any, after: Any) -> bool:
    """Whether both are lists of the same length, to compare item by item."""
    if not isinstance(before, list) or not isinstance(after, list):
        return False
    return len(cast("list[Any]", before)) == len(cast("list[Any]", after))
