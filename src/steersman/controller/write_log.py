"""What a reconcile wrote: the seam between the client of a context and the suppression of echoes.

The client of a context calls a `WriteObserver` after every write. Guarantees of those calls:

- `written` is called before the write's caller goes on, with the object as the server answered it.
- `deleted` is called when the server says that an object is gone for good, by its uid.
- A dry run is not told at all. A deletion that only began, one of many objects, and an answer of another kind (a Scale,
  a token) are `touched`: something changed, and what it became was not shown.
- `unknown` is called when a write may or may not have happened.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from steersman.objects import GroupVersionKind, Key, Object, Unstructured


class Write(msgspec.Struct, frozen=True):
    """One write as the server confirmed it."""

    kind: GroupVersionKind
    key: Key
    resource_version: str
    subresource: str = ""
    #: Whether the version shows nothing but this write on top of what the reconcile could read before. A write that
    #: changed nothing is answered with the version of somebody else's write, whose event is news.
    certain: bool = True


class WriteObserver(Protocol):
    """Is told of writes as they are confirmed."""

    def written(self, write: Write, obj: Object | Unstructured) -> None:
        """The server holds ``obj`` now."""
        ...

    def deleted(self, kind: GroupVersionKind, key: Key, uid: str) -> None:
        """The object with this uid is gone."""
        ...

    def touched(self, kind: GroupVersionKind, key: Key | None) -> None:
        """Something was written whose result was not shown. Without a key: any object."""
        ...

    def unknown(self, kind: GroupVersionKind, key: Key | None) -> None:
        """A write may or may not have happened."""
        ...


class WriteLog:
    """The writes of one reconcile, in order."""

    __slots__ = ("_by_version", "touches", "unknowns", "writes")

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.touches = 0
        self.unknowns = 0
        self._by_version: dict[tuple[GroupVersionKind, Key, str], Write] = {}

    def written(self, write: Write, obj: Object | Unstructured) -> None:
        """Remember the write. One that changed nothing has the version of an earlier one and makes no event."""
        del obj
        self.writes.append(write)
        # Of two answers with one version the first made the event: the second changed nothing.
        self._by_version.setdefault((write.kind, write.key, write.resource_version), write)

    def deleted(self, kind: GroupVersionKind, key: Key, uid: str) -> None:
        """Count it: the version of the last state is not told."""
        del uid
        self.touched(kind, key)

    def touched(self, kind: GroupVersionKind, key: Key | None) -> None:
        """Count it: no version is known, so nothing can be suppressed."""
        del kind, key
        self.touches += 1

    def unknown(self, kind: GroupVersionKind, key: Key | None) -> None:
        """Count it: its event, if it comes, is not known to be ours."""
        del kind, key
        self.unknowns += 1

    def find(self, kind: GroupVersionKind, key: Key, resource_version: str) -> Write | None:
        """The write that gave the object this version."""
        return self._by_version.get((kind, key, resource_version))
