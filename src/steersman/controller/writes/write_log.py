"""The writes of one reconcile, observed between its client and the suppression of echoes."""

from __future__ import annotations

from steersman.client import Write, WriteObserver
from steersman.objects import GroupVersionKind, Key, Object, Unstructured, raw_bytes

__all__ = ["Write", "WriteLog", "WriteObserver"]


class WriteLog:
    """The writes of one reconcile, in order."""

    __slots__ = ("_by_version", "answers", "befores", "keep", "touches", "writes")

    def __init__(self, *, keep: bool = False) -> None:
        self.writes: list[Write] = []
        #: The last answer for each written object, if answers are kept.
        self.answers: dict[tuple[GroupVersionKind, Key], bytes] = {}
        #: The objects that the previous reconcile wrote, as they were when this one began, if answers are kept.
        self.befores: dict[tuple[GroupVersionKind, Key], bytes] = {}
        self.keep = keep
        self.touches = 0
        self._by_version: dict[tuple[GroupVersionKind, Key, str], Write] = {}

    @property
    def total(self) -> int:
        """The number of writes, including those whose version is unknown."""
        return len(self.writes) + self.touches

    def written(self, write: Write, obj: Object | Unstructured) -> None:
        """Remember the write. One that changed nothing has the version of an earlier one and makes no event."""
        if self.keep and (raw := raw_bytes(obj)) is not None:
            self.answers[write.kind, write.key] = raw
        self.writes.append(write)
        # If two answers have the same version, the first made the event: the second changed nothing.
        self._by_version.setdefault((write.kind, write.key, write.resource_version), write)

    def deleted(self, kind: GroupVersionKind, key: Key, uid: str) -> None:
        """Count it: the version of the last state is unknown."""
        del uid
        self.touched(kind, key)

    def touched(self, kind: GroupVersionKind, key: Key | None) -> None:
        """Count it: its version is unknown, so nothing can be suppressed."""
        del kind, key
        self.touches += 1

    def unknown(self, kind: GroupVersionKind, key: Key | None, *, namespace: str = "") -> None:
        """Ignore it: its event, if any, cannot be recognized as ours."""
        del kind, key, namespace

    def find(self, kind: GroupVersionKind, key: Key, resource_version: str) -> Write | None:
        """The write that gave the object this version."""
        return self._by_version.get((kind, key, resource_version))
