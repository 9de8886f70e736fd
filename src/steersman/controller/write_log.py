"""What a reconcile wrote: the observer between the client of a context and the suppression of echoes."""

from __future__ import annotations

from steersman.client.observing import Write, WriteObserver
from steersman.objects import GroupVersionKind, Key, Object, Unstructured

__all__ = ["Write", "WriteLog", "WriteObserver"]


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
