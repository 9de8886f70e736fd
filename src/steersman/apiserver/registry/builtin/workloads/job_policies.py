"""Policies of Jobs: when a Job counts as failed or done."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.trees import Tree, items, subtree
from steersman.golang import parse_int, quoted
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    each,
    invalid,
    invalid_without_value,
    not_negative,
    required,
    too_long,
    too_many,
    unsupported,
    until_enough,
)
from steersman.schemas.names import qualified_name

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_MOST_RULES = 20
_MOST_CODES = 255
_LONGEST_INDEXES = 64 * 1024


def _valid(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(map(quoted, values))}]"


def failure_policy(path: str, spec: Tree) -> list[FieldProblem]:
    """Validate which Pod failures count."""
    rules = items(spec["podFailurePolicy"], "rules")
    problems = [too_many(f"{path}.rules", len(rules), _MOST_RULES)] if len(rules) > _MOST_RULES else []
    pod = subtree(spec, "template", "spec")
    names = {one.get("name", "") for field in ("containers", "initContainers") for one in items(pod, field)}
    for index, rule in until_enough(rules, problems):
        problems += _failure_rule(f"{path}.rules[{index}]", rule, spec, names)
    return problems


def _failure_rule(path: str, rule: Tree, spec: Tree, names: set[str]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    action, codes, conditions = rule.get("action", ""), rule.get("onExitCodes"), items(rule, "onPodConditions")
    if not action:
        problems.append(required(f"{path}.action", _valid(_ACTIONS)))
    elif action == "FailIndex":
        if spec.get("backoffLimitPerIndex") is None:
            problems.append(invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    elif action not in _ACTIONS:
        problems.append(unsupported(f"{path}.action", action, _ACTIONS))
    if codes is not None:
        problems += _exit_codes(f"{path}.onExitCodes", codes, names)
    problems += _patterns(f"{path}.onPodConditions", conditions)
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        problems.append(invalid_without_value(path, detail))
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        problems.append(invalid_without_value(path, detail))
    return problems


def _patterns(path: str, conditions: list[Tree]) -> list[FieldProblem]:
    count = len(conditions)
    problems = [too_many(path, count, _MOST_RULES)] if count > _MOST_RULES else []
    for index, pattern in until_enough(conditions, problems):
        where, type_, status = f"{path}[{index}]", pattern.get("type", ""), pattern.get("status", "")
        problems += each(f"{where}.type", type_, qualified_name(type_))
        if status not in _STATUSES:
            problems.append(unsupported(f"{where}.status", status, _STATUSES))
    return problems


def _exit_codes(path: str, codes: Tree, names: set[str]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    operator, values, name = codes.get("operator", ""), codes.get("values"), codes.get("containerName")
    if not operator:
        problems.append(required(f"{path}.operator", _valid(("In", "NotIn"))))
    elif operator not in {"In", "NotIn"}:
        problems.append(unsupported(f"{path}.operator", operator, ("In", "NotIn")))
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        problems.append(invalid(f"{path}.containerName", name, detail))
    where = f"{path}.values"
    if not values:
        return [*problems, invalid(where, None, "at least one value is required")]
    if len(values) > _MOST_CODES:
        problems.append(too_many(where, len(values), _MOST_CODES))
    seen: set[int] = set()
    for index, value in until_enough(values, problems):
        if operator == "In" and value == 0:
            problems.append(invalid(f"{where}[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            problems.append(duplicate(f"{where}[{index}]", value))
        seen.add(value)
    if values != sorted(values):
        problems.append(invalid(where, values, "must be ordered"))
    return problems


def replacement_policy(path: str, spec: Tree) -> list[FieldProblem]:
    """Validate when a Pod is replaced."""
    policy = spec.get("podReplacementPolicy")
    known = ("Failed", "TerminatingOrFailed") if spec.get("podFailurePolicy") is None else ("Failed",)
    return [] if policy is None or policy in known else [unsupported(path, policy, known)]


def success_policy(path: str, spec: Tree) -> list[FieldProblem]:
    """Validate when a Job counts as done early."""
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        return [invalid(path, printed(policy, "batch.SuccessPolicy"), "requires indexed completion mode")]
    rules = items(policy, "rules")
    problems: list[FieldProblem] = []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        problems.append(required(f"{path}.rules", detail))
    if len(rules) > _MOST_RULES:
        problems.append(too_many(f"{path}.rules", len(rules), _MOST_RULES))
    for index, rule in until_enough(rules, problems):
        problems += _success_rule(f"{path}.rules[{index}]", rule, spec.get("completions") or 0)
    return problems


def _success_rule(path: str, rule: Tree, completions: int) -> list[FieldProblem]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    problems: list[FieldProblem] = []
    if count is None and indexes is None:
        problems.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        where = f"{path}.succeededIndexes"
        if len(indexes) > _LONGEST_INDEXES:
            problems.append(too_long(where, _LONGEST_INDEXES))
        total, wrong = count_indexes(indexes, completions)
        if wrong:
            problems.append(invalid(where, indexes, f"error parsing succeededIndexes: {wrong}"))
    if count is not None:
        where = f"{path}.succeededCount"
        problems += not_negative(where, count)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            problems.append(invalid(where, count, detail))
        if indexes is not None and count > total:
            detail = (
                f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            )
            problems.append(invalid(where, count, detail))
    return problems


def index_interval(text: str, completions: int) -> tuple[int, int]:
    """The first and the last index of an interval such as ``0-2`` or ``5``. Raises ValueError with the problem."""
    ends = text.split("-")
    if len(ends) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise ValueError(f"the fragment {quoted(text)} {rule}")
    numbers: list[int] = []
    for end in ends:
        try:
            numbers.append(parse_int(end, function="Atoi"))
        except ValueError:
            raise ValueError(f"cannot convert string to integer for index: {quoted(end)}") from None
        if numbers[-1] >= completions:
            raise ValueError(f"too large index: {quoted(end)}")
    if len(numbers) > 1 and numbers[0] >= numbers[1]:
        raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def count_indexes(text: str, completions: int) -> tuple[int, str]:
    """The number of indexes in a text such as ``0-2,5``, or the problem with it."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        try:
            first, final = index_interval(part, completions)
        except ValueError as error:
            return 0, str(error)
        if last >= first:
            return 0, f"non-increasing order, previous: {last}, current: {first}"
        total, last = total + final - first + 1, final
    return total, ""
