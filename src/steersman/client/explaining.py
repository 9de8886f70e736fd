"""Whether an answer holds news: the difference between what was known and what the server answered, less what was sent.

Pure. Errs to the side of news: an answer that is not plainly explained costs a look too many, one that is explained
wrongly would lose a change.
"""

from __future__ import annotations

from typing import Any, cast

from steersman.objects.difference import same_json

_NOTHING: Any = object()
#: What every write changes, and tells nobody anything.
_BOOKKEEPING = frozenset({"resourceVersion", "managedFields", "generation"})
#: What a deletion with that propagation adds.
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
    kept = [each for each in finalizers if each not in _DELETION_FINALIZERS]
    if kept == [each for each in known.get("finalizers") or () if each not in _DELETION_FINALIZERS]:
        marks["finalizers"] = finalizers
    return "deletionTimestamp" not in known and explains(before, {"metadata": marks}, after)


def _without_bookkeeping(tree: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = tree.get("metadata") or {}
    # Items of lists do not say what they are; answers do.
    rest = {name: value for name, value in tree.items() if name not in {"metadata", "apiVersion", "kind"}}
    return rest | {"metadata": {name: value for name, value in metadata.items() if name not in _BOOKKEEPING}}


def _explained(before: Any, sent: Any, after: Any) -> bool:
    if before is not _NOTHING and after is not _NOTHING and same_json(before, after):
        return True
    if after is _NOTHING:
        # Gone: because a merge patch said null, or never there.
        return before is _NOTHING or sent is None
    if sent is _NOTHING or sent is None:
        return False
    if isinstance(after, dict) and isinstance(sent, dict):
        known: dict[str, Any] = cast("dict[str, Any]", before) if isinstance(before, dict) else {}
        wanted, found = cast("dict[str, Any]", sent), cast("dict[str, Any]", after)
        return all(
            _explained(known.get(name, _NOTHING), wanted.get(name, _NOTHING), found.get(name, _NOTHING))
            for name in known | found
        )
    return same_json(sent, after)
