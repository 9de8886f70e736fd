"""Conditions of the type ``meta/v1.Condition``."""

from __future__ import annotations

import re

import msgspec

from steersman.apiserver.registry.builtin.types.canonical_form import canonical
from steersman.apiserver.registry.builtin.types.labels import label_name
from steersman.apiserver.registry.builtin.types.trees import Tree
from steersman.golang import escape_html
from steersman.objects.field_problems import (
    FieldProblem,
    Printed,
    duplicate,
    invalid,
    required,
    too_long,
    unsupported,
    until_enough,
)
from steersman.schemas.names import expected

_STATUSES = ("False", "True", "Unknown")
_REASON_MAX, _MESSAGE_MAX = 1024, 32 * 1024
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_WORDS = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'"
)
_REASON_EXAMPLES = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")


def condition_reason(text: str) -> list[str]:
    """Check the reason of a condition, except for its length."""
    return [] if re.fullmatch(_REASON, text) else [expected(_REASON_WORDS, _REASON, *_REASON_EXAMPLES)]


def conditions(path: str, given: list[Tree]) -> list[FieldProblem]:
    """Check a list of conditions, which has one of each type."""
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for index, one in until_enough(given, problems):
        type_: str = one.get("type", "")
        if type_ in seen:
            problems.append(duplicate(f"{path}[{index}]", type_))
        seen.add(type_)
        problems += _condition(f"{path}[{index}]", one)
    return problems


def _condition(path: str, one: Tree) -> list[FieldProblem]:
    type_, status = one.get("type", ""), one.get("status", "")
    problems = label_name(f"{path}.type", type_) if type_ else [required(f"{path}.type", "is required")]
    if not status:
        problems.append(required(f"{path}.status"))
    elif status not in _STATUSES:
        problems.append(unsupported(f"{path}.status", status, _STATUSES))
    generation: int = one.get("observedGeneration") or 0
    if generation < 0:
        detail = "must be greater than or equal to zero"
        problems.append(invalid(f"{path}.observedGeneration", generation, detail))
    if not one.get("lastTransitionTime"):
        problems.append(required(f"{path}.lastTransitionTime"))
    reason: str = one.get("reason", "")
    if not reason:
        problems.append(required(f"{path}.reason"))
    else:
        problems += [invalid(f"{path}.reason", reason, said) for said in condition_reason(reason)]
        problems += [too_long(f"{path}.reason", _REASON_MAX)] if len(reason.encode()) > _REASON_MAX else []
    if len(one.get("message", "").encode()) > _MESSAGE_MAX:
        problems.append(too_long(f"{path}.message", _MESSAGE_MAX))
    return problems


def is_true(given: list[Tree], type_: str) -> bool:
    """Whether the first condition of a type is true."""
    return next((one.get("status") == "True" for one in given if one.get("type") == type_), False)


def printed_conditions(given: list[Tree]) -> Printed:
    """Conditions as a message prints them."""
    shown = [canonical(one, "meta.v1.Condition") for one in given]
    return Printed(escape_html(msgspec.json.encode(shown).decode()))
