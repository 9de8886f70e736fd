"""Whether a response contains changes by others: compares it with the known state plus what was sent.

Pure. When in doubt, it reports a change: a needless reconcile is cheap, a lost change is not.
"""

from __future__ import annotations

from typing import Any, cast

from steersman.objects import same_json

_NOTHING: Any = object()
#: Fields that every write changes without informing anyone.
_BOOKKEEPING = frozenset({"resourceVersion", "managedFields", "generation"})
#: The finalizers that a deletion with that propagation policy adds.
_DELETION_FINALIZERS = frozenset({"foregroundDeletion", "orphan"})


def explains(before: dict[str, Any], sent: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether ``after`` is ``before`` plus what a patch or an intent ``sent``, and nothing else."""
    return _explained(_without_bookkeeping(before), sent, _without_bookkeeping(after))


def explains_deletion(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether ``after`` is ``before`` marked for deletion, and nothing else."""
    known: dict[str, Any] = before.get("metadata") or {}
    metadata: dict[str, Any] = after.get("metadata") or {}
    marks = {name: metadata[name] for name in ("deletionTimestamp", "deletionGracePeriodSeconds") if name in metadata}
    finalizers: list[str] = metadata.get("finalizers") or []
    kept = [finalizer for finalizer in finalizers if finalizer not in _DELETION_FINALIZERS]
    if kept == [finalizer for finalizer in known.get("finalizers") or () if finalizer not in _DELETION_FINALIZERS]:
        marks["finalizers"] = finalizers
    return "deletionTimestamp" not in known and explains(before, {"metadata": marks}, after)


def _without_bookkeeping(tree: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = tree.get("metadata") or {}
    # Items of lists carry neither apiVersion nor kind; single objects do.
    rest = {name: value for name, value in tree.items() if name not in {"metadata", "apiVersion", "kind"}}
    return rest | {"metadata": {name: value for name, value in metadata.items() if name not in _BOOKKEEPING}}


def _explained(before: Any, sent: Any, after: Any) -> bool:
    if before is not _NOTHING and after is not _NOTHING and same_json(before, after):
        return True
    if after is _NOTHING:
        # Absent: removed by a null in a merge patch, or never present.
        return before is _NOTHING or sent is None
    if sent is _NOTHING or sent is None:
        return False
    if isinstance(after, dict) and isinstance(sent, dict):
        known: dict[str, Any] = cast("dict[str, Any]", before) if isinstance(before, dict) else {}
        wanted, result = cast("dict[str, Any]", sent), cast("dict[str, Any]", after)
        return all(
            _explained(known.get(name, _NOTHING), wanted.get(name, _NOTHING), result.get(name, _NOTHING))
            for name in known | result
        )
    return same_json(sent, after)
