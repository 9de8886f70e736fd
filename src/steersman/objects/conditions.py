"""Conditions: what is true of an object, since when, and why.

The functions take conditions of any kind: our own `Condition`, and those of Pods, Deployments, Jobs and the like.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, Protocol, TypeVar

from steersman.objects.markers import MaxLength, Minimum, MinLength, Pattern
from steersman.objects.struct import Struct

_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class Condition(Struct):
    """One observation (meta/v1 Condition)."""

    type: Annotated[str, MaxLength(316), Pattern(_TYPE)]
    """What is observed, in CamelCase or as example.com/CamelCase."""
    status: Literal["True", "False", "Unknown"]
    """Whether it is so."""
    reason: Annotated[str, MinLength(1), MaxLength(1024), Pattern(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """Why, in one CamelCase word for programs."""
    message: Annotated[str, MaxLength(32768)] = ""
    """Why, in a sentence for people."""
    last_transition_time: datetime | None = None
    """Since when the status is what it is."""
    observed_generation: Annotated[int, Minimum(0)] | None = None
    """The metadata.generation that the observation is about."""


class AnyCondition(Protocol):
    """What conditions of all kinds have in common."""

    last_transition_time: datetime | None

    @property
    def type(self) -> str: ...  # noqa: D102 - see `Condition`
    @property
    def status(self) -> str: ...  # noqa: D102


ConditionT = TypeVar("ConditionT", bound=AnyCondition)


class HoldsConditions(Protocol[ConditionT]):
    """A status with conditions."""

    conditions: list[ConditionT] | None


def find_condition(conditions: Iterable[ConditionT] | None, condition_type: str) -> ConditionT | None:
    """The condition of this type, if there is one."""
    return next((condition for condition in conditions or () if condition.type == condition_type), None)


def is_true(conditions: Iterable[AnyCondition] | None, condition_type: str) -> bool:
    """Whether a condition of this type exists and is ``"True"``."""
    condition = find_condition(conditions, condition_type)
    return condition is not None and condition.status == "True"


def set_condition(status: HoldsConditions[ConditionT], condition: ConditionT, *, now: datetime) -> bool:
    """Put a condition into a status; say whether anything changed.

    The transition time moves only when the condition's status does, so that repeating an observation writes nothing.
    """
    if status.conditions is None:
        status.conditions = []
    present = find_condition(status.conditions, condition.type)
    if present is None:
        condition.last_transition_time = condition.last_transition_time or now.replace(microsecond=0)
        status.conditions.append(condition)
        return True
    if present.status == condition.status:
        condition.last_transition_time = present.last_transition_time
    else:
        condition.last_transition_time = condition.last_transition_time or now.replace(microsecond=0)
    changed = False
    for name in ("status", "reason", "message", "observed_generation", "last_transition_time"):
        value = getattr(condition, name, None)  # not every kind of condition has all of them
        if getattr(present, name, None) != value:
            setattr(present, name, value)
            changed = True
    return changed
