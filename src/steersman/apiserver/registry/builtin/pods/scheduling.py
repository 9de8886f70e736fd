"""Where a Pod may run: affinity, tolerations, spreading and gates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steersman.apiserver.registry.builtin.types.labels import label_name, label_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.objects.field_problems import (
    NOT_POSITIVE,
    FieldProblem,
    duplicate,
    each,
    forbidden,
    invalid,
    required,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label, dns_subdomain, label_value, qualified_name

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATOR = "not a valid selector operator"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_HEAVIEST = 100


def node_requirement(path: str, requirement: Mapping[str, Any], *, judge_values: bool) -> list[FieldProblem]:
    """Validate one condition on the labels of a node."""
    operator, values = requirement.get("operator", ""), items(requirement, "values")
    problems: list[FieldProblem] = []
    if operator in {"In", "NotIn"}:
        if not values:
            problems.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            problems.append(forbidden(f"{path}.values", detail))
    elif operator in {"Gt", "Lt"}:
        if len(values) != 1:
            problems.append(
                required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
            )
    else:
        problems.append(invalid(f"{path}.operator", operator, _OPERATOR))
    problems += label_name(f"{path}.key", requirement.get("key", ""))
    for index, value in until_enough(values if judge_values else (), problems):
        problems += each(f"{path}.values[{index}]", value, label_value(value))
    return problems


def _node_field(path: str, requirement: Mapping[str, Any]) -> list[FieldProblem]:
    operator, values = requirement.get("operator", ""), items(requirement, "values")
    problems: list[FieldProblem] = []
    if operator in {"In", "NotIn"}:
        if len(values) != 1:
            detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            problems.append(required(f"{path}.values", detail))
    else:
        problems.append(invalid(f"{path}.operator", operator, _OPERATOR))
    if requirement.get("key", "") != "metadata.name":
        return [*problems, invalid(f"{path}.key", requirement.get("key", ""), "not a valid field selector key")]
    for index, value in until_enough(values, problems):
        problems += each(f"{path}.values[{index}]", value, dns_subdomain(value))
    return problems


def _node_term(path: str, term: Mapping[str, Any], *, judge_values: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for index, one in until_enough(items(term, "matchExpressions"), problems):
        problems += node_requirement(f"{path}.matchExpressions[{index}]", one, judge_values=judge_values)
    for index, one in until_enough(items(term, "matchFields"), problems):
        problems += _node_field(f"{path}.matchFields[{index}]", one)
    return problems


def _weight(path: str, weight: int) -> list[FieldProblem]:
    return [] if 0 < weight <= _HEAVIEST else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def node_selector(path: str, selector: Mapping[str, Any]) -> list[FieldProblem]:
    """Validate a node selector."""
    terms, at = items(selector, "nodeSelectorTerms"), f"{path}.nodeSelectorTerms"
    problems = [] if terms else [required(at, "must have at least one node selector term")]
    for index, term in until_enough(terms, problems):
        problems += _node_term(f"{at}[{index}]", term, judge_values=True)
    return problems


def affinity(path: str, given: Tree | None) -> list[FieldProblem]:
    """Validate affinity and anti-affinity."""
    if given is None:
        return []
    problems: list[FieldProblem] = []
    node: Tree = inner(given, "nodeAffinity")
    where = f"{path}.nodeAffinity"
    if _REQUIRED in node:
        problems += node_selector(f"{where}.{_REQUIRED}", node[_REQUIRED])
    for index, term in until_enough(items(node, _PREFERRED), problems):
        at = f"{where}.{_PREFERRED}[{index}]"
        problems += _weight(at, term.get("weight", 0))
        problems += _node_term(f"{at}.preference", inner(term, "preference"), judge_values=False)
    for name in ("podAffinity", "podAntiAffinity"):
        problems += _pod_affinity(f"{path}.{name}", inner(given, name))
    return problems


def _pod_affinity(path: str, given: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for index, term in until_enough(items(given, _REQUIRED), problems):
        problems += _pod_term(f"{path}.{_REQUIRED}[{index}]", term)
    for index, term in until_enough(items(given, _PREFERRED), problems):
        at = f"{path}.{_PREFERRED}[{index}]"
        problems += _weight(at, term.get("weight", 0))
        problems += _pod_term(f"{at}.podAffinityTerm", inner(term, "podAffinityTerm"))
    return problems


def _pod_term(path: str, term: Mapping[str, Any]) -> list[FieldProblem]:
    selector = term.get("labelSelector")
    problems = label_selector(f"{path}.labelSelector", selector)
    problems += label_selector(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for namespace in items(term, "namespaces"):
        problems += each(f"{path}.namespace", namespace, dns_label(namespace))
    problems += _label_keys(path, items(term, "matchLabelKeys"), items(term, "mismatchLabelKeys"), selector)
    key = term.get("topologyKey", "")
    if not key:
        problems.append(required(f"{path}.topologyKey", "can not be empty"))
    return problems + label_name(f"{path}.topologyKey", key)


def _label_keys(path: str, match: list[str], mismatch: list[str], selector: Tree | None) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            detail = "must not be specified when labelSelector is not set"
            problems.append(forbidden(f"{path}.{name}", detail))
        elif keys:
            for index, key in until_enough(keys, problems):
                problems += label_name(f"{path}.{name}[{index}]", key)
    if selector is not None:
        seen = set(items(selector, "matchLabels"))
        places = {key: index for index, key in enumerate(match)}
        for expression in items(selector, "matchExpressions"):
            key = expression.get("key", "")
            if key in places and key in seen:
                detail = "exists in both matchLabelKeys and labelSelector"
                problems.append(invalid(f"{path}[{places[key]}]", key, detail))
            seen.add(key)
    for index, key in until_enough(match, problems):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            problems.append(invalid(f"{path}.matchLabelKeys[{index}]", key, detail))
    return problems


def tolerations(path: str, given: list[Tree]) -> list[FieldProblem]:
    """Validate tolerations."""
    problems: list[FieldProblem] = []
    for index, one in until_enough(given, problems):
        where = f"{path}[{index}]"
        key, operator, effect = one.get("key", ""), one.get("operator", ""), one.get("effect", "")
        value = one.get("value", "")
        if key:
            problems += label_name(f"{where}.key", key)
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            problems.append(invalid(f"{where}.operator", operator, detail))
        if one.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            problems.append(invalid(f"{where}.effect", effect, detail))
        if operator in {"Equal", ""}:
            wrong = label_value(value)
            problems += [invalid(f"{where}.operator", value, ";".join(wrong))] if wrong else []
        elif operator == "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                problems.append(invalid(f"{where}.operator", value, detail))
        else:
            known = ("Equal", "Exists", "Lt", "Gt") if operator in {"Lt", "Gt"} else ("Equal", "Exists")
            problems.append(unsupported(f"{where}.operator", operator, known))
        if effect and effect not in _EFFECTS:
            problems.append(unsupported(f"{where}.effect", effect, _EFFECTS))
    return problems


def topology_spread(path: str, given: list[Tree]) -> list[FieldProblem]:
    """Validate topology spread constraints."""
    problems: list[FieldProblem] = []
    # The last position of each combination: comparing all pairs would take quadratic time.
    last = {_spreads(one): index for index, one in enumerate(given)}
    for index, one in until_enough(given, problems):
        where = f"{path}[{index}]"
        skew, key, action = one.get("maxSkew", 0), one.get("topologyKey", ""), one.get("whenUnsatisfiable", "")
        if skew <= 0:
            problems.append(invalid(f"{where}.maxSkew", skew, NOT_POSITIVE))
        if not key:
            problems.append(required(f"{where}.topologyKey", "can not be empty"))
        if action not in {"DoNotSchedule", "ScheduleAnyway"}:
            problems.append(unsupported(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
        if last[key, action] > index:
            problems.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        problems += _min_domains(f"{where}.minDomains", one.get("minDomains"), action)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = one.get(name)
            if policy is not None and policy not in {"Honor", "Ignore"}:
                problems.append(unsupported(f"{where}.{name}", policy, ("Honor", "Ignore")))
        selector = one.get("labelSelector")
        problems += _label_keys(where, items(one, "matchLabelKeys"), [], selector)
        problems += label_selector(f"{where}.labelSelector", selector)
    return problems


def _spreads(constraint: Tree) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _min_domains(path: str, least: int | None, action: str) -> list[FieldProblem]:
    if least is None:
        return []
    problems = [invalid(path, least, NOT_POSITIVE)] if least <= 0 else []
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        problems.append(invalid(path, least, detail))
    return problems


def gates(path: str, given: list[Tree]) -> list[FieldProblem]:
    """Validate scheduling gates."""
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for index, gate in until_enough(given, problems):
        name = gate.get("name", "")
        problems += each(f"{path}[{index}]", name, qualified_name(name))
        if name in seen:
            problems.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return problems


def spread_by_labels(spec: Tree, labels: Mapping[str, str]) -> None:
    """Expand matchLabelKeys into the selectors next to them, as at the creation of a Pod."""
    given: Tree = inner(spec, "affinity")
    for name in ("podAffinity", "podAntiAffinity"):
        one: Tree = inner(given, name)
        for term in items(one, _PREFERRED):
            _merge_keys(inner(term, "podAffinityTerm"), labels)
        for term in items(one, _REQUIRED):
            _merge_keys(term, labels)
    for constraint in items(spec, "topologySpreadConstraints"):
        _merge_keys(constraint, labels)


def _merge_keys(term: Tree, labels: Mapping[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in items(term, field)
        if key in labels
    ]
    if added:
        selector["matchExpressions"] = [*(items(selector, "matchExpressions")), *added]


def is_integer(text: str) -> bool:
    """Whether a text is a 32-bit number, as a deletion cost must be."""
    return bool(re.fullmatch(r"0|-?[1-9][0-9]{0,9}", text)) and -(2**31) <= int(text) < 2**31
