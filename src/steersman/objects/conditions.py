"""Conditions: what holds for an object, since when, and why.

The functions accept conditions of any kind: our own `Condition`, and those of Pods, Deployments, Jobs and others.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, Protocol, TypeVar

from steersman.markers import MaxLength, Minimum, MinLength, Pattern
from steersman.objects.struct import Struct

_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class Condition(Struct):
    """One observation (meta/v1 Condition)."""

    type: Annotated[str, MaxLength(316), Pattern(_TYPE)]
    """The condition's name, in CamelCase or as example.com/CamelCase."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: Annotated[str, MinLength(1), MaxLength(1024), Pattern(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """The reason as one CamelCase word, for programs."""
    message: Annotated[str, MaxLength(32768)] = ""
    """The reason as a sentence, for people."""
    last_transition_time: datetime | None = None
    """When the status last changed."""
    observed_generation: Annotated[int, Minimum(0)] | None = None
    """The metadata.generation that was observed."""


class AnyCondition(Protocol):
    """The attributes that conditions of all kinds share."""

    last_transition_time: datetime | None

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...


ConditionT = TypeVar("ConditionT", bound=AnyCondition)


class HoldsConditions(Protocol[ConditionT]):
    """A status with conditions."""

    conditions: list[ConditionT] | None


def find_condition(conditions: Iterable[ConditionT] | None, condition_type: str) -> ConditionT | None:
    """The condition of this type; None if it is missing."""
    return next((condition for condition in conditions or () if condition.type == condition_type), None)


def is_true(conditions: Iterable[AnyCondition] | None, condition_type: str) -> bool:
    """Whether a condition of this type exists and is ``"True"``."""
    condition = find_condition(conditions, condition_type)
    return condition is not None and condition.status == "True"


def set_condition(status: HoldsConditions[ConditionT], condition: ConditionT, *, now: datetime) -> bool:
    """Put a condition into a status; return whether anything changed.

    ```python
    ready = Condition(type="Ready", status="True", reason="AllUp", observed_generation=site.generation)
    set_condition(site.status, ready, now=utc_now())
    ```

    The transition time changes only with the condition's status, so repeating an observation writes nothing.
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
        value = getattr(condition, name, None)  # some kinds of condition lack some of these
        if getattr(present, name, None) != value:
            setattr(present, name, value)
            changed = True
    return changed
