"""Resource requests and limits of containers and Pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steersman.apiserver.registry.builtin.types.resource_names import (
    COMPUTE,
    fits_pages,
    is_extended,
    is_for_containers,
    is_huge_page,
    is_native,
    is_standard,
    is_whole,
    may_be_overcommitted,
)
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.objects import Quantity
from steersman.objects.field_problems import (
    NEGATIVE,
    FieldProblem,
    duplicate,
    each,
    forbidden,
    invalid,
    missing,
    required,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label, qualified_name

_POD_LEVEL = ("cpu", "hugepages-", "memory")


def supported_for_pods(name: str) -> bool:
    """Whether a Pod as a whole may request a resource."""
    return name in COMPUTE or is_huge_page(name)


def resource_name(path: str, name: str) -> list[FieldProblem]:
    """Check the name of any resource."""
    problems = each(path, name, qualified_name(name))
    if not problems and "/" not in name and not is_standard(name):
        problems.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    return problems


def container_name(path: str, name: str) -> list[FieldProblem]:
    """Check the name of a container's resource."""
    problems = resource_name(path, name)
    if "/" not in name:
        if not is_for_containers(name):
            problems.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        problems.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return problems


def pod_name(path: str, name: str) -> list[FieldProblem]:
    """Check the name of a Pod's resource."""
    problems = resource_name(path, name)
    if not problems and not supported_for_pods(name):
        problems.append(unsupported(path, name, _POD_LEVEL))
    return problems


def quantity(path: str, name: str, amount: str) -> list[FieldProblem]:
    """Check that an amount is not negative, and an integer where required."""
    value = Quantity(amount)
    problems = [invalid(path, value.printed(), NEGATIVE)] if value < 0 else []
    if is_whole(name) and value.milli_value() % 1000:
        problems.append(invalid(path, value.printed(), "must be an integer"))
    return problems


def requirements(
    path: str,
    resources: Mapping[str, Any],
    *,
    claims: frozenset[str] = frozenset(),
    judge_name: Callable[[str, str], list[FieldProblem]] = container_name,
) -> list[FieldProblem]:
    """Validate limits, requests and claims."""
    problems: list[FieldProblem] = []
    limits, requests = inner(resources, "limits"), inner(resources, "requests")
    for name, amount in limits.items():
        where = f"{path}.limits[{name}]"
        problems += judge_name(where, name) + quantity(where, name, amount) + _pages(where, name, amount)
    for name, amount in requests.items():
        where = f"{path}.requests[{name}]"
        problems += judge_name(where, name) + quantity(where, name, amount)
        problems += _within(path, name, amount, limits.get(name)) + _pages(where, name, amount)
    named = {*limits, *requests}
    if any(map(is_huge_page, named)) and not named & COMPUTE:
        problems.append(forbidden(path, "HugePages require cpu or memory"))
    return problems + _claims(f"{path}.claims", items(resources, "claims"), claims)


def _within(path: str, name: str, amount: str, limit: str | None) -> list[FieldProblem]:
    if limit is None:
        if may_be_overcommitted(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    asked, most = Quantity(amount), Quantity(limit)
    if asked != most and not may_be_overcommitted(name):
        return [invalid(f"{path}.requests", asked.printed(), f"must be equal to {name} limit of {most.printed()}")]
    if asked > most:
        detail = f"must be less than or equal to {name} limit of {most.printed()}"
        return [invalid(f"{path}.requests", asked.printed(), detail)]
    return []


def _pages(path: str, name: str, amount: str) -> list[FieldProblem]:
    if not is_huge_page(name) or fits_pages(name, Quantity(amount)):
        return []
    shown = Quantity(amount).printed()
    return [invalid(path, shown, f"{shown} is not positive integer multiple of {name}")]


def _claims(path: str, claims: list[Tree], known: frozenset[str]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for index, claim in until_enough(claims, problems):
        where, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            problems.append(required(where))
            continue
        if name in seen:
            problems.append(duplicate(where, name))
        else:
            if request:
                problems += each(f"{where}.request", request, dns_label(request))
            key = f"{name}/{request}" if request else name
            if key in seen:
                problems.append(duplicate(where, key))
            elif not request:
                problems += [duplicate(where, name) for other in seen if other.startswith(f"{name}/")]
            seen.add(key)
        if name not in known:
            among = f": {', '.join(sorted(known))}" if known else " which is empty"
            problems.append(missing(where, name, f"must be one of the names in pod.spec.resourceClaims{among}"))
    return problems


def aggregate(spec: Tree, field: str) -> dict[str, str]:
    """The total of all containers of a Pod, by resource."""

    def amounts(container: Tree) -> dict[str, Quantity]:
        listed = inner(inner(container, "resources"), field)
        return {name: Quantity(amount) for name, amount in listed.items()}

    return {name: amount.printed() for name, amount in container_totals(spec, amounts).items()}


def container_totals(spec: Tree, amounts: Callable[[Tree], dict[str, Quantity]]) -> dict[str, Quantity]:
    """The total amounts of all containers of a Pod, considering that init containers run one after another."""
    total: dict[str, Quantity] = {}

    def add(to: dict[str, Quantity], more: dict[str, Quantity]) -> None:
        for name, amount in more.items():
            to[name] = to[name] + amount if name in to else amount

    for container in items(spec, "containers"):
        add(total, amounts(container))
    beside: dict[str, Quantity] = {}
    highest: dict[str, Quantity] = {}
    for container in items(spec, "initContainers"):
        needed = amounts(container)
        if container.get("restartPolicy") == "Always":
            add(total, needed)
            add(beside, needed)
            needed = dict(beside)
        else:
            add(needed, beside)
        for name, amount in needed.items():
            highest[name] = max(highest.get(name, amount), amount)
    for name, amount in highest.items():
        total[name] = max(total.get(name, amount), amount)
    return total


def pod_resources(path: str, spec: Tree) -> list[FieldProblem]:
    """Validate the resources of a Pod as a whole."""
    resources = spec.get("resources")
    if resources is None:
        return []
    if inner(spec, "os").get("name") == "windows":
        return [forbidden(f"{path}.resources", "may not be set for a windows pod")]
    problems: list[FieldProblem] = []
    if resources.get("claims"):
        problems.append(forbidden(f"{path}.resources.claims", "claims may not be set for Resources at pod-level"))
    names = frozenset(claim.get("name", "") for claim in items(spec, "resourceClaims"))
    problems += requirements(f"{path}.resources", resources, claims=names, judge_name=pod_name)
    return problems + _consistent(f"{path}.resources", spec, resources)


def _consistent(path: str, spec: Tree, resources: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for field in ("requests", "limits"):
        given = inner(resources, field)
        for name, amount in aggregate(spec, field).items():
            if name not in given or (field == "limits" and not is_huge_page(name)):
                continue
            if Quantity(amount) > Quantity(given[name]):
                detail = f"must be greater than or equal to aggregate container {field} of {amount}"
                problems.append(invalid(f"{path}.{field}[{name}]", given[name], detail))
    most = inner(resources, "limits")
    for index, container in until_enough(items(spec, "containers"), problems):
        for name, amount in inner(inner(container, "resources"), "limits").items():
            if name in most and Quantity(amount) > Quantity(most[name]):
                detail = f"must be less than or equal to pod limits of {most[name]}"
                problems.append(invalid(f"{path}.containers[{index}][{name}].limits", amount, detail))
    return problems


def quality_of_service(spec: Tree) -> str:
    """The QoS class of a Pod."""
    containers = [*(items(spec, "containers")), *(items(spec, "initContainers"))]
    own = spec.get("resources")
    holders: list[Tree] = [inner(container, "resources") for container in containers] if own is None else [own]
    totals: dict[str, dict[str, Quantity]] = {"requests": {}, "limits": {}}
    guaranteed = True
    for holder in holders:
        for field, total in totals.items():
            for name, amount in inner(holder, field).items():
                value = Quantity(amount)
                if name in COMPUTE and value > 0:
                    total[name] = total[name] + value if name in total else value
        limited = {name for name, amount in inner(holder, "limits").items() if Quantity(amount) > 0}
        if (own is None or holder.get("limits")) and not limited >= COMPUTE:
            guaranteed = False
    requests, limits = totals["requests"], totals["limits"]
    if not requests and not limits:
        return "BestEffort"
    same = requests == {name: limits[name] for name in requests if name in limits} and len(requests) == len(limits)
    return "Guaranteed" if guaranteed and same else "Burstable"
