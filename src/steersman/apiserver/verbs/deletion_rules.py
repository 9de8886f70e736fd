"""What a deletion does to an object: nothing, mark it, or remove it. Pure: no IO.

Guarantees
- An explicit policy takes precedence over an existing finalizer, which takes precedence over the kind's default.
- A running deletion can be shortened, never extended.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, NamedTuple

from steersman.aio import utc_now
from steersman.apiserver.errors import Named, conflict
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.metadata import FOREGROUND, ORPHAN
from steersman.apiserver.registry.strategy import Strategy
from steersman.apiserver.storage import Record
from steersman.apiserver.verbs.object_names import engine_key
from steersman.apiserver.verbs.options import DeleteOptions, Preconditions
from steersman.objects import format_time, parse_time

_OWN_WORDS = frozenset({("", "Namespace"), ("apiextensions.k8s.io", "CustomResourceDefinition")})


class Decision(NamedTuple):
    """What to do: ``pending``: nothing, deletion is running; ``mark``: store the marked object; ``end``: remove it.

    ``stores``: the object was changed and is stored first even if it is removed.
    """

    kind: Literal["pending", "mark", "end"]
    stores: bool


def check_preconditions(definition: Definition, obj: Tree, record: Record, options: DeleteOptions) -> None:
    """409 unless the object satisfies the preconditions."""
    wanted = options.preconditions
    if wanted is None:
        return
    if (definition.gvk.group, definition.gvk.kind) in _OWN_WORDS:
        _check_in_own_words(definition, obj, record, wanted)
        return
    # kube-apiserver names the kind here, and the resource elsewhere.
    named, name = Named(definition.refused_kind.group, definition.gvk.kind), obj["metadata"]["name"]
    uid: str = obj["metadata"].get("uid", "")
    if wanted.uid is not None and wanted.uid != uid:
        why = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(named, name, why)
    if wanted.resource_version is not None and wanted.resource_version != str(record.modified):
        why = (
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({record.modified}). The object might have been modified"
        )
        raise conflict(named, name, why)


def _check_in_own_words(definition: Definition, obj: Tree, record: Record, wanted: Preconditions) -> None:
    """Like `check_preconditions`, with kube-apiserver's messages for kinds with their own deletion."""
    name, uid = obj["metadata"]["name"], obj["metadata"].get("uid", "")
    failed = "precondition failed" if definition.resource == "customresourcedefinitions" else "Precondition failed"
    if wanted.uid is not None and wanted.uid != uid:
        why = f"{failed}: UID in precondition: {wanted.uid}, UID in object meta: {uid}"
        raise conflict(definition.named, name, why)
    if wanted.resource_version is not None and wanted.resource_version != str(record.modified):
        why = (
            f"{failed}: ResourceVersion in precondition: {wanted.resource_version}, "
            f"ResourceVersion in object meta: {record.modified}"
        )
        raise conflict(definition.named, name, why)


def refuse_lost_version(definition: Definition, record: Record, options: DeleteOptions) -> None:
    """409 for a precondition on resourceVersion with a policy that removes the last finalizer, as in kube-apiserver.

    It loses the version on the way, and then finds that the object has another.
    """
    if options.preconditions is None or options.preconditions.resource_version is None:
        return
    parts = record.key.removeprefix(definition.prefix).split("/")
    namespace = parts[0] if definition.namespaced else ""
    why = f"Precondition failed: ResourceVersion in precondition: , ResourceVersion in object meta: {record.modified}"
    key = engine_key(definition, namespace, parts[-1])
    raise conflict(
        definition.named,
        parts[-1],
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}",
    )


def decide(strategy: Strategy, obj: Tree, options: DeleteOptions) -> Decision:
    """Decide, and change the object accordingly."""
    metadata: Tree = obj["metadata"]
    if "deletionTimestamp" in metadata and strategy.blocks_deletion(obj):
        return Decision("pending", stores=False)
    if "deletionTimestamp" not in metadata and strategy.begin_deletion(obj):
        return Decision("mark", stores=True)
    graceful = _graceful(strategy, obj, options.grace_period_seconds)
    if graceful == "pending":
        return Decision("pending", stores=False)
    finalizers = _finalizers(strategy, metadata.get("finalizers", []), options)
    if finalizers:
        metadata["finalizers"] = finalizers
    elif "finalizers" in metadata:
        del metadata["finalizers"]
    is_first = strategy.marks_first and "deletionTimestamp" not in metadata
    stays = bool(finalizers) or is_first or strategy.blocks_deletion(obj)
    if graceful == "yes":
        waits = stays or metadata["deletionGracePeriodSeconds"] > 0
        return Decision("mark" if waits else "end", stores=True)
    if not stays:
        return Decision("end", stores=False)
    _mark(strategy, obj)
    return Decision("mark", stores=True)


def _graceful(strategy: Strategy, obj: Tree, requested: int | None) -> Literal["no", "yes", "pending"]:
    """Whether the object gets a grace period; if so, the object holds its length."""
    metadata: Tree = obj["metadata"]
    if requested is not None and requested < 0:
        requested = 1
    seconds = strategy.grace(obj, requested)
    if "deletionTimestamp" in metadata:
        if seconds is None or not metadata.get("deletionGracePeriodSeconds"):
            return "no"
        return _shorten(metadata, requested)
    if seconds is None:
        return "no"
    metadata["deletionTimestamp"] = format_time(utc_now() + timedelta(seconds=seconds))
    metadata["deletionGracePeriodSeconds"] = seconds
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    strategy.mark_deletion(obj)
    return "yes"


def _shorten(metadata: Tree, requested: int | None) -> Literal["yes", "pending"]:
    given: int = metadata["deletionGracePeriodSeconds"]
    if requested is None or requested >= given:
        return "pending"
    moment = parse_time(metadata["deletionTimestamp"]) + timedelta(seconds=requested - given)
    if moment < utc_now():
        moment = utc_now()
        requested = 1 if requested else 0
    metadata["deletionTimestamp"] = format_time(moment)
    metadata["deletionGracePeriodSeconds"] = requested
    return "yes"


def _mark(strategy: Strategy, obj: Tree) -> None:
    metadata: Tree = obj["metadata"]
    if "deletionTimestamp" not in metadata:
        if metadata.get("generation", 0) > 0:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = format_time(utc_now())
        metadata["deletionGracePeriodSeconds"] = 0
        strategy.mark_deletion(obj)
        return
    if parse_time(metadata["deletionTimestamp"]) > utc_now():
        metadata["deletionTimestamp"] = format_time(utc_now())
    metadata["deletionGracePeriodSeconds"] = 0


def _finalizers(strategy: Strategy, present: list[str], options: DeleteOptions) -> list[str]:
    policy = options.propagation_policy
    if strategy.default_propagation == "unsupported":
        orphans = foreground = False
    elif options.orphan_dependents is not None:
        orphans, foreground = options.orphan_dependents, False
    elif policy is not None:
        orphans, foreground = policy == "Orphan", policy == "Foreground"
    else:
        first = next((name for name in present if name in {ORPHAN, FOREGROUND}), None)
        orphans = first == ORPHAN or (first is None and strategy.default_propagation == "orphan")
        foreground = first == FOREGROUND
    wanted = [name for name in present if name not in {ORPHAN, FOREGROUND}]
    wanted += [ORPHAN] * orphans + [FOREGROUND] * foreground
    return present if set(wanted) == set(present) else wanted
