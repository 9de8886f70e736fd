"""The quota usage of a Pod: its count, its requests and its limits."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final, Literal

from steersman.aio import utc_now
from steersman.apiserver.quotas.amounts import Amounts, added, highest, read_amounts
from steersman.apiserver.quotas.scopes import crosses_namespaces, is_terminating, selects
from steersman.apiserver.quotas.usage import UsageRules, is_extended_request
from steersman.apiserver.registry.builtin.pods.resources import (
    container_totals,
    quality_of_service,
    supported_for_pods,
)
from steersman.apiserver.registry.builtin.types.resource_names import is_extended, is_huge_page
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree
from steersman.objects import Quantity, parse_time

_ONE: Final = Quantity(1)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
#: If a quota limits one of these, every container must specify it.
_REQUIRED: Final = frozenset(f"{part}{name}" for part in ("", "requests.", "limits.") for name in ("cpu", "memory"))
_NAMES: Final = ("count/pods", "pods", *(f"{part}{name}" for part in ("", "requests.", "limits.") for name in _COMPUTE))
_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"


class PodRules(UsageRules):
    """Pods count with their requests and limits until they end."""

    def __init__(self) -> None:
        super().__init__(*_NAMES)

    def tracked(self, names: Iterable[str]) -> set[str]:
        names = set(names)
        others = {name for name in names if is_huge_page(name.removeprefix("requests.")) or is_extended_request(name)}
        return super().tracked(names) | others

    def is_in_scope(self, scope: Tree, obj: Tree) -> bool:
        name: str = scope["scopeName"]
        if name == "PriorityClass":
            return selects(scope, subtree(obj, "spec").get("priorityClassName", ""))
        if name == "CrossNamespacePodAffinity":
            return crosses_namespaces(obj)
        if name in {"Terminating", "NotTerminating"}:
            return is_terminating(obj) == (name == "Terminating")
        return name in {"BestEffort", "NotBestEffort"} and _is_best_effort(obj) == (name == "BestEffort")

    def missing(self, names: set[str], obj: Tree) -> str:
        """The message about requests and limits that containers must specify; empty if they specify all."""
        spec = subtree(obj, "spec")
        if _has_own(spec, "requests") or _has_own(spec, "limits"):
            return ""
        lacking: dict[str, set[str]] = {}
        for container in (*items(spec, "containers"), *items(spec, "initContainers")):
            resources = inner(container, "resources")
            given = _compute(*(read_amounts(inner(resources, field)) for field in ("requests", "limits")))
            for name in names & _REQUIRED - given.keys():
                lacking.setdefault(name, set()).add(container["name"])
        words = (f"{name} for: {','.join(sorted(containers))}" for name, containers in sorted(lacking.items()))
        return f"must specify {'; '.join(words)}" if lacking else ""

    def usage(self, obj: Tree) -> Amounts:
        used = {"count/pods": _ONE}
        return used | _compute(_total(obj, "requests"), _total(obj, "limits")) if _is_active(obj) else used


def _compute(requests: Amounts, limits: Amounts) -> Amounts:
    """Requests and limits under the names that quotas use."""
    used = {"pods": _ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or is_huge_page(name):
            used[name] = used[f"requests.{name}"] = amount
        elif is_extended(name) or name.startswith(_DEVICE_CLASS):
            used[f"requests.{name}"] = amount
    return used | {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}


def _total(pod: Tree, field: Literal["requests", "limits"]) -> Amounts:
    """The total of a Pod: the sum of its containers or its own amounts, plus its overhead."""
    spec = subtree(pod, "spec")
    once = {one["name"] for one in items(spec, "initContainers") if one.get("restartPolicy") != "Always"}
    status = subtree(pod, "status")
    is_infeasible = _is_infeasible(status)
    known: dict[str, Tree] = {}
    for one in (*items(status, "initContainerStatuses"), *items(status, "containerStatuses")):
        known.setdefault(one.get("name", ""), one)
    total = container_totals(
        spec,
        lambda container: _effective(
            container,
            {} if container["name"] in once else known.get(container["name"], {}),
            field,
            is_infeasible=is_infeasible,
        ),
    )
    if _has_own(spec, field):
        own = read_amounts(subtree(spec, "resources", field))
        total |= {name: amount for name, amount in own.items() if supported_for_pods(name)}
    overhead = read_amounts(inner(spec, "overhead"))
    if field == "limits":
        overhead = {name: amount for name, amount in overhead.items() if total.get(name)}
    return added(total, overhead)


def _effective(container: Tree, known: Tree, field: Literal["requests", "limits"], *, is_infeasible: bool) -> Amounts:
    """The resources of a container. During a resize, the higher of the requested and the current amounts."""
    wanted = read_amounts(subtree(container, "resources", field))
    if known.get("resources") is None:
        return wanted
    has = [read_amounts(inner(known["resources"], field))]
    if field == "requests":
        has.append(read_amounts(inner(known, "allocatedResources")))
    return highest(has if is_infeasible else [wanted, *has])


def _is_infeasible(status: Tree) -> bool:
    """Whether the Node cannot fulfill the resize of a Pod."""
    pending = (
        condition.get("reason")
        for condition in items(status, "conditions")
        if condition.get("type") == "PodResizePending"
    )
    return next(pending, None) == "Infeasible"


def _has_own(spec: Tree, field: str) -> bool:
    """Whether the Pod has requests or limits at the Pod level."""
    return any(map(supported_for_pods, subtree(spec, "resources", field)))


def _is_best_effort(pod: Tree) -> bool:
    known: str = subtree(pod, "status").get("qosClass", "")
    return (known or quality_of_service(subtree(pod, "spec"))) == "BestEffort"


def _is_active(pod: Tree) -> bool:
    """Whether a Pod still counts: it has not ended, and its grace period has not expired."""
    if subtree(pod, "status").get("phase") in {"Failed", "Succeeded"}:
        return False
    metadata = subtree(pod, "metadata")
    deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if deleted is None or grace is None:
        return True
    return utc_now() <= parse_time(deleted) + timedelta(seconds=grace)
