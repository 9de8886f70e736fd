"""The events of a machine: what people want to be told about an object, once, when it happens.

Guarantees
- An event tells of a change: a pass that finds everything as the one before did tells nothing. What was told before is read
  from the object's own conditions, so that a restart repeats nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.controller import Context
from steersman.kinds.core_v1 import ObjectReference
from steersman.objects import Object
from steersman.patterns.applying import PhaseResult
from steersman.patterns.children import Identity
from steersman.patterns.conditions import SUSPEND_LABEL, Observation
from steersman.patterns.graph import SUSPENDED
from steersman.patterns.pruning import Pruned

_ACTION = "Reconciling"

#: Reasons for which an object that is new is not ready: they are to be expected.
_EXPECTED = frozenset({"ChildrenNotReady", "Waiting", "NotReached", "Deleting", "NamespaceTerminating"})


def tell_readiness(
    ctx: Context,
    obj: Object,
    now: Observation | None,
    before: Observation | None,
    *,
    wrong: bool,
) -> None:
    """Tell that an object became ready or ceased to be, or that something new is the matter with it.

    ``now`` and ``before`` are its Ready condition; ``wrong``: waiting alone will not help.
    """
    if now is None:
        return
    was_ready = before is not None and before.status == "True"
    if now.status == "True":
        if not was_ready:
            note = now.message or f"{obj.kind} {obj.key.name} is ready"
            ctx.events.record(obj, "Normal", now.reason, _ACTION, note)
        return
    changed = before is None or (before.status, before.reason) != (now.status, now.reason)
    if was_ready or (changed and (wrong or now.reason not in _EXPECTED)):
        ctx.events.record(obj, "Warning" if wrong else "Normal", now.reason, _ACTION, now.message or now.reason)


def last_told(condition: Mapping[str, Any] | None) -> Observation | None:
    """A condition as it was last observed."""
    if condition is None:
        return None
    return Observation(condition["type"], condition.get("status", "Unknown"), condition.get("reason", ""))


def tell_suspension(ctx: Context, obj: Object, now: Observation | None, *, known: bool, resumed: bool) -> None:
    """Tell that an object is left alone from now on, or no longer; ``known``: that was told already."""
    if now is not None:
        if not known:
            ctx.events.record(obj, "Normal", SUSPENDED, _ACTION, now.message)
    elif resumed:
        label = "false" if SUSPEND_LABEL in (obj.metadata.labels or {}) else "gone"
        ctx.events.record(obj, "Normal", "Resumed", _ACTION, f"label {SUSPEND_LABEL} is {label}")


def tell_changes(ctx: Context, obj: Object, result: PhaseResult) -> None:
    """Tell which children were taken over or made anew; that children are created is what they are declared for."""
    for each in result.children:
        if each.change and each.change != "created":
            identity = each.output.identity
            note = f"{identity} was {each.change}"
            ctx.events.record(obj, "Normal", each.change.capitalize(), "Applying", note, _reference(identity))


def tell_pruned(ctx: Context, obj: Object, pruned: Iterable[Pruned]) -> None:
    """Tell which children were taken away."""
    for each in pruned:
        note = f"{each.identity} is declared no longer and was deleted"
        ctx.events.record(obj, "Normal", "Pruned", "Pruning", note, _reference(each.identity))


def _reference(identity: Identity) -> ObjectReference:
    key = identity.key
    return ObjectReference(kind=identity.kind.kind, namespace=key.namespace or None, name=key.name)
