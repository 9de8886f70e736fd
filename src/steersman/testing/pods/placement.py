"""Whether a Pod fits a Node: name, labels, affinity and taints. Pure.

Guarantees
- Node selectors, required node affinity and taints follow the scheduler's rules; preferences are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steersman.kinds.core_v1 import Node, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Taint, Toleration

_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def node_of(pod: Pod) -> str:
    """The node that a Pod has, or that its required affinity names; empty if any node will do."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for each in term.match_fields or ():
            if each.key == "metadata.name" and each.operator == "In" and each.values:
                return each.values[0]
    return ""


def daemon_tolerations(spec: PodSpec) -> list[Toleration]:
    """The tolerations of a DaemonSet's Pod: its own, and those for node problems."""
    found = list(spec.tolerations or ())
    for key, effect in (*_TOLERATED, *((_NETWORK,) if spec.host_network else ())):
        if not any(
            (each.key, each.operator, each.effect, each.value) == (key, "Exists", effect, None) for each in found
        ):
            found.append(Toleration(key=key, operator="Exists", effect=effect))
    return found


def fits(spec: PodSpec, node: Node) -> tuple[bool, bool]:
    """Whether a DaemonSet's Pod should run on a node, and whether one that already runs there may stay."""
    name = node.metadata.name or ""
    if spec.node_name not in {None, "", name} or not _matches(spec, node):
        return False, False
    tolerations = daemon_tolerations(spec)
    taints = (node.spec.taints if node.spec is not None else None) or []
    untolerated = {taint.effect for taint in taints if not any(_tolerates(each, taint) for each in tolerations)}
    return not untolerated & {"NoSchedule", "NoExecute"}, "NoExecute" not in untolerated


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in {None, "", taint.effect} or toleration.key not in {None, "", taint.key}:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and (toleration.value or "") == (taint.value or "")


def _matches(spec: PodSpec, node: Node) -> bool:
    labels, name = node.metadata.labels or {}, node.metadata.name or ""
    if not (spec.node_selector or {}).items() <= labels.items():
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or any(_meets(term, labels, name) for term in required.node_selector_terms)


def _meets(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False
    return _all(expressions, labels) and _all(fields, {"metadata.name": name})


def _all(requirements: Iterable[NodeSelectorRequirement], values: Mapping[str, str]) -> bool:
    return all(_holds(each, values.get(each.key)) for each in requirements)


def _holds(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    wanted = requirement.values or []
    match requirement.operator:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return _compares(requirement.operator, value or "", wanted)


def _compares(operator: str, value: str, wanted: list[str]) -> bool:
    try:
        number, bound = int(value), int(wanted[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else operator == "Lt" and number < bound
