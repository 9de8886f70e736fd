"""What a manager takes: plans, and whatever has one; two that would undo each other's work are refused."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.controller import ControllerPlan, Planned
from steersman.controller.mappers import Owners, kind_name
from steersman.objects import GroupKind


def plan_of(given: ControllerPlan | Planned, others: Iterable[ControllerPlan]) -> ControllerPlan:
    """The plan of what was given to a manager that has other plans already."""
    if isinstance(given, ControllerPlan):
        plan = given
    elif isinstance(given, type):
        raise TypeError(f"manager.add({given.__name__}): it is a class; give an object of it: add({given.__name__}())")
    elif callable(getattr(given, "plan", None)):
        plan = given.plan()
    else:
        raise TypeError(
            f"manager.add({given!r}): it is neither a plan nor has one; write manager.controller(KIND)...run_with(...)"
        )
    for other in others:
        if other.name != plan.name and other.primary.gvk().group_kind == plan.primary.gvk().group_kind:
            _refuse_fights(other, plan)
    return plan


def _refuse_fights(one: ControllerPlan, two: ControllerPlan) -> None:
    names, kind = f"controllers {one.name} and {two.name}", kind_name(one.primary)
    for condition in two.conditions:
        if condition in one.conditions:
            raise ValueError(
                f"{names} both set condition {condition} of a {kind}, and would undo each other's work without end;"
                f' give one of them a condition of its own, as in ready="BackupReady"'
            )
    if not (one.writes or two.writes):
        return  # neither takes away what it did not make
    made = _made(one)
    for child in _made(two):
        if child in made:
            raise ValueError(
                f"{names} both make objects of kind {child.kind} for a {kind}, and each would prune the other's; let one"
                " of them make all, or give the second a kind of its own to reconcile"
            )


def _made(plan: ControllerPlan) -> list[GroupKind]:
    """The kinds that a controller makes for the objects that it reconciles."""
    owned = [watch.kind for watch in plan.watches if not watch.through and isinstance(watch.mapper(), Owners)]
    return [kind.gvk().group_kind for kind in (*plan.writes, *owned)]
