"""Labels and selectors, validated as in kube-apiserver."""

from collections.abc import Mapping
from typing import Any

from steersman.apiserver.registry.builtin.types.trees import items
from steersman.errors import SelectorError
from steersman.objects import Selector
from steersman.objects.field_problems import (
    FieldProblem,
    Printed,
    each,
    forbidden,
    invalid,
    required,
    shown_in_full,
    too_long,
    until_enough,
)
from steersman.schemas.names import label_value, qualified_name

MAX_ANNOTATIONS = 256 * 1024


def label_name(path: str, name: str) -> list[FieldProblem]:
    """Check the key of a label."""
    return each(path, name, qualified_name(name))


def labels(path: str, given: Mapping[str, str] | None) -> list[FieldProblem]:
    """Check a map of labels."""
    problems: list[FieldProblem] = []
    for key, value in (given or {}).items():
        problems += label_name(path, key)
        problems += each(path, value, label_value(value))
    return problems


def annotations(path: str, given: Mapping[str, str] | None) -> list[FieldProblem]:
    """Check a map of annotations."""
    problems: list[FieldProblem] = []
    for key in given or {}:
        problems += each(path, key, qualified_name(key.lower()))
    total = sum(len(key.encode()) + len(value.encode()) for key, value in (given or {}).items())
    if total > MAX_ANNOTATIONS:
        problems.append(too_long(path, MAX_ANNOTATIONS))
    return problems


def label_selector(
    path: str, selector: Mapping[str, Any] | None, *, must_have_valid_values: bool = True
) -> list[FieldProblem]:
    """Check a label selector; ``must_have_valid_values`` is about those of its expressions."""
    if selector is None:
        return []
    problems = labels(f"{path}.matchLabels", selector.get("matchLabels"))
    for index, expression in until_enough(items(selector, "matchExpressions"), problems):
        where = f"{path}.matchExpressions[{index}]"
        problems += _requirement(where, expression, must_have_valid_values=must_have_valid_values)
    return problems


def _requirement(path: str, expression: Mapping[str, Any], *, must_have_valid_values: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    operator, values = expression.get("operator") or "", items(expression, "values")
    if operator in {"In", "NotIn"}:
        if not values:
            problems.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            problems.append(forbidden(f"{path}.values", detail))
    else:
        problems.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    problems += label_name(f"{path}.key", expression.get("key") or "")
    for index, value in until_enough(values if must_have_valid_values else (), problems):
        problems += each(f"{path}.values[{index}]", value, label_value(value))
    return problems


def shown_selector(selector: Mapping[str, Any] | None) -> Any:
    """A selector as messages print it: its labels come first, sorted."""
    if selector is None:
        return None
    names = ("matchLabels", "matchExpressions")
    parts = [f'"{name}":{shown_in_full(selector[name])}' for name in names if selector.get(name)]
    return Printed(f"{{{','.join(parts)}}}")


def is_empty(selector: Mapping[str, Any]) -> bool:
    """Whether a selector is empty."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def compiled(selector: Mapping[str, Any] | None) -> Selector | None:
    """The selector for matching; None if it is invalid."""
    try:
        return Selector.from_label_selector(selector)
    except SelectorError:
        return None
