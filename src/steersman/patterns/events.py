"""The events of a machine: one for each change of an object.

Guarantees
- An event reports a change. A reconcile that finds everything as before records none.
- The previous state is read from the object's conditions, so a restart repeats no event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.controller import Context
from steersman.kinds.core_v1 import ObjectReference
from steersman.objects import Object
from steersman.patterns.children import ChildIdentity
from steersman.patterns.children.apply import StateResult
from steersman.patterns.children.deletion import Pruned
from steersman.patterns.machine.graph import LOOPING, SUSPENDED
from steersman.patterns.status.conditions import SUSPEND_LABEL, Observation, Observations

_ACTION = "Reconciling"

#: Reasons for which a new object is expected not to be ready.
_EXPECTED = frozenset({"ChildrenNotReady", "Waiting", "NotReached", "Deleting", "NamespaceTerminating"})
#: Reasons of failures that Steersman retries.
_FAILURES = frozenset({"ExternalError"})


def record_readiness(
    ctx: Context, obj: Object, now: Observation | None, before: Observation | None, *, wrong: bool
) -> None:
    """Record that an object became ready, is no longer ready, or has a new problem.

    ``now`` and ``before`` are its Ready condition; ``wrong``: waiting alone does not help.
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
        failed = wrong or now.reason in _FAILURES
        ctx.events.record(obj, "Warning" if failed else "Normal", now.reason, _ACTION, now.message or now.reason)


def last_recorded(condition: Mapping[str, Any] | None) -> Observation | None:
    """The condition as the last reconcile observed it."""
    if condition is None:
        return None
    return Observation(condition["type"], condition.get("status", "Unknown"), condition.get("reason", ""))


def record_suspension(ctx: Context, obj: Object, now: Observation | None, *, known: bool, resumed: bool) -> None:
    """Record that an object was suspended or resumed; ``known``: the suspension was recorded already."""
    if now is not None:
        if not known:
            ctx.events.record(obj, "Normal", SUSPENDED, _ACTION, now.message)
    elif resumed:
        label = "false" if SUSPEND_LABEL in (obj.metadata.labels or {}) else "gone"
        ctx.events.record(obj, "Normal", "Resumed", _ACTION, f"label {SUSPEND_LABEL} is {label}")


def record_loop(ctx: Context, obj: Object, now: Observation | None, *, known: bool) -> None:
    """Record that every reconcile of an object triggers the next; ``known``: that was recorded already."""
    if now is not None and not known:
        ctx.events.record(obj, "Warning", LOOPING, _ACTION, now.message)


def log_conditions(ctx: Context, before: Mapping[str, Mapping[str, Any]], now: Observations) -> None:
    """Log each condition whose status or reason changed."""
    for condition in now.set:
        known = before.get(condition.type, {})
        if (known.get("status"), known.get("reason")) != (condition.status, condition.reason):
            was = f", was {known.get('status')}" if known and known.get("status") != condition.status else ""
            words = f": {condition.message}" if condition.message else ""
            ctx.logger.info(
                "%s: %s is %s (%s)%s%s", ctx.request, condition.type, condition.status, condition.reason, was, words
            )


def record_changes(ctx: Context, obj: Object, result: StateResult) -> None:
    """Record which children were adopted or recreated. Creating children is expected and not recorded."""
    for child in result.children:
        if child.change and child.change != "created":
            identity = child.output.identity
            note = f"{identity} was {child.change}"
            ctx.events.record(obj, "Normal", child.change.capitalize(), "Applying", note, _reference(identity))


def record_pruned(ctx: Context, obj: Object, pruned: Iterable[Pruned]) -> None:
    """Record which children were pruned."""
    for child in pruned:
        note = f"{child.identity} is no longer declared and was deleted"
        ctx.events.record(obj, "Normal", "Pruned", "Pruning", note, _reference(child.identity))


def _reference(identity: ChildIdentity) -> ObjectReference:
    key = identity.key
    return ObjectReference(kind=identity.kind.kind, namespace=key.namespace or None, name=key.name)
