"""Checks of the plans added to a manager. Rejects two plans that would undo each other's work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from steersman.controller import ControllerPlan, Planned
from steersman.controller.mappers import Owners, kind_name
from steersman.errors import ConfigError
from steersman.objects import GroupKind
from steersman.objects.field_managers import is_manager_of


def plan_of(given: ControllerPlan | Planned, others: Iterable[ControllerPlan]) -> ControllerPlan:
    """The plan of an argument of `Manager.add`, checked against the plans already added."""
    if isinstance(given, ControllerPlan):
        plan = given
    elif isinstance(given, type):
        raise TypeError(f"manager.add({given.__name__}): this is a class; pass an instance: add({given.__name__}())")
    elif callable(getattr(given, "plan", None)):
        plan = given.plan()
    else:
        raise TypeError(
            f"manager.add({given!r}): not a plan, and has none; write manager.controller(KIND)...run_with(...)"
        )
    for other in others:
        if other.name != plan.name and other.primary.gvk().group_kind == plan.primary.gvk().group_kind:
            _refuse_fights(other, plan)
    return plan


def checked_formerly(name: str, formerly: object) -> tuple[str, ...]:
    """The former names of a manager as a tuple. Raises `ValueError` if they are not valid."""
    if isinstance(formerly, str):
        raise TypeError(f'Manager(formerly="{formerly}") is one name; write formerly=("{formerly}",)')
    names = tuple(cast("Iterable[str]", formerly))
    if not names:
        return ()
    if not name:
        raise ValueError(
            f"Manager(formerly={names!r}) also needs the current name; write Manager(name=..., formerly=...)"
        )
    for each in names:
        if not each or is_manager_of(each, name):
            raise ValueError(
                f"Manager(name={name!r}, formerly={names!r}): {each!r} is not an earlier name; list the names that"
                " the program had before"
            )
    return names


def check_named(plans: Iterable[ControllerPlan], field_manager: str) -> None:
    """Raise `ConfigError` if a controller applies objects in a program without a name."""
    nameless = [] if field_manager else [plan.name for plan in plans if plan.writes or plan.conditions]
    if nameless:
        raise ConfigError(
            f"the manager has no name, and controller {nameless[0]} applies objects: write"
            f' Manager(name="{nameless[0]}-operator"). The server records fields and children under this name, so choose one'
            " and keep it"
        )


def _refuse_fights(one: ControllerPlan, two: ControllerPlan) -> None:
    names, kind = f"controllers {one.name} and {two.name}", kind_name(one.primary)
    for condition in two.conditions:
        if condition in one.conditions:
            raise ValueError(
                f"{names} both set condition {condition} of a {kind}, and would overwrite each other forever;"
                f' give one of them its own condition, such as ready="BackupReady"'
            )
    if not (one.writes or two.writes):
        return  # neither prunes
    made = _made(one)
    for child in _made(two):
        if child in made:
            raise ValueError(
                f"{names} both create {child.kind} children for a {kind}, and each would prune the other's; create all of"
                " them in one controller, or give the second its own kind to reconcile"
            )


def _made(plan: ControllerPlan) -> list[GroupKind]:
    """The kinds of children that a controller creates."""
    owned = [watch.kind for watch in plan.watches if not watch.through and isinstance(watch.mapper(), Owners)]
    return [kind.gvk().group_kind for kind in (*plan.writes, *owned)]
