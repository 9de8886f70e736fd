"""Nodes: their taints, capacity and address ranges."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network

from steersman.apiserver.registry.builtin.pods.resources import quantity
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import cidr, cidr_warnings, network
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.labels import label_name
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.golang import quoted
from steersman.objects.field_problems import (
    NOT_POSITIVE,
    FieldProblem,
    duplicate,
    each,
    enough,
    forbidden,
    invalid,
    repeated,
    required,
    unsupported,
    until_enough,
)
from steersman.schemas.names import label_value

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_FEATURE_MAX = 253
_CIDRS = "spec.podCIDRs"


class NodeStrategy(BuiltinStrategy):
    """How Nodes behave."""

    #: A kubelet creates its Node with a status.
    keeps_new_status = True
    #: kube-apiserver reports a wrong path for some fields.
    _taints = "metadata.taints"

    def fill(self, obj: Tree) -> None:
        status: Tree = obj["status"]
        if "capacity" in status:
            status.setdefault("allocatable", dict(status["capacity"]))
        spec: Tree = obj["spec"]
        # A disabled feature.
        spec.pop("podPreemptionPolicy", None)
        first, ranges = spec.get("podCIDR"), items(spec, "podCIDRs")
        if first and first not in ranges[:1]:
            spec["podCIDRs"] = [first]
        elif ranges:
            spec["podCIDR"] = ranges[0]

    def prepare_create(self, obj: Tree) -> None:
        """Drop removed fields."""
        obj["spec"].pop("configSource", None)
        obj["status"].pop("config", None)

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        super().prepare_update(obj, old)
        obj["spec"].pop("configSource", None)

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        super().prepare_status(obj, old)
        obj["status"].pop("config", None)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec, status = subtree(obj, "spec"), subtree(obj, "status")
        problems = _taints(self._taints, items(spec, "taints")) + _resources(status)
        capacity = subtree(status, "nodeInfo", "swap").get("capacity")
        if capacity is not None and capacity <= 0:
            problems.append(invalid("metadata.nodeSwapStatus.capacity", capacity, NOT_POSITIVE))
        return problems + _features(items(status, "declaredFeatures")) + _ranges(items(spec, "podCIDRs"))

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that address ranges and the provider ID do not change once they are set."""
        return [WHOLE, *self.validate_create(obj), CHANGED, *self.validate_status(obj, old)]

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        spec, before, status = subtree(obj, "spec"), subtree(old, "spec"), subtree(obj, "status")
        problems = _resources(status) + _features(items(status, "declaredFeatures"))
        addresses = items(status, "addresses")
        problems += enough(
            duplicate(f"status.addresses[{index}]", printed(one, "core.NodeAddress"))
            for index, one in repeated(addresses, lambda one: (one.get("type"), one.get("address")))
        )
        new, was = items(spec, "podCIDRs"), items(before, "podCIDRs")
        if was:
            changes = sum(a != b for a, b in zip(new, was, strict=True)) if len(new) == len(was) else 1
            detail = 'node updates may not change podCIDR except from "" to valid'
            problems += [forbidden(_CIDRS, detail)] * changes
        if before.get("providerID") and spec.get("providerID") != before["providerID"]:
            detail = f"field cannot be {'modified' if spec.get('providerID') else 'cleared'} once set"
            problems.append(invalid("spec.providerID", None, detail))
        problems += _taints(self._taints, items(spec, "taints"))
        if spec.get("externalID", "") != before.get("externalID", ""):
            problems.append(forbidden("spec.externalID", "may not be updated"))
        return problems

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about unused fields and values that are not in canonical form."""
        del old
        spec = subtree(obj, "spec")
        found: list[str] = []
        if spec.get("externalID"):
            found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for index, text in enumerate(items(spec, "podCIDRs")):
            found += cidr_warnings(f"{_CIDRS}[{index}]", text)
        return found


def _taints(path: str, taints: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in until_enough(taints, problems):
        where, key, value, effect = (
            f"{path}[{index}]",
            taint.get("key", ""),
            taint.get("value", ""),
            taint.get("effect", ""),
        )
        problems += label_name(f"{where}.key", key)
        wrong = label_value(value)
        problems += [invalid(f"{where}.value", value, ";".join(wrong))] if wrong else []
        if effect not in _EFFECTS:
            problems.append(unsupported(f"{where}.effect", effect, _EFFECTS) if effect else required(f"{where}.effect"))
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            problems.append(duplicate(where, printed(taint, "core.Taint"), detail))
        seen.add((key, effect))
    return problems


def _resources(status: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for field in ("capacity", "allocatable"):
        for name, amount in inner(status, field).items():
            problems += quantity(f"status.{field}.{name}", name, amount)
    return problems


def _features(features: list[str]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for index, name in until_enough(features, problems):
        path = f"status.declaredFeatures[{index}]"
        if index and features[index - 1] == name:
            problems.append(duplicate(path, name))
        elif index and features[index - 1] > name:
            problems.append(invalid(path, name, "list must be sorted alphabetically"))
        problems += each(path, name, _feature(name))
    return problems


def _feature(name: str) -> list[str]:
    subject = f"invalid feature name {quoted(name)}"
    if len(name.encode()) > _FEATURE_MAX:
        return [f"{subject}: must be no more than {_FEATURE_MAX} characters"]
    if _FEATURE.fullmatch(name):
        return []
    detail = (
        "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
        "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
    )
    return [f"{subject}: {detail}"]


def _ranges(given: list[str]) -> list[FieldProblem]:
    problems = [found for index, text in enumerate(given) for found in each(f"{_CIDRS}[{index}]", text, cidr(text))]
    if len(given) < 2:
        return problems
    ranges = [network(text) for text in given]
    versions = {one.version for one in ranges if isinstance(one, IPv4Network | IPv6Network)}
    if len(versions) < 2 or len(given) > 2:
        problems.append(invalid(_CIDRS, given, "may specify no more than one CIDR for each IP family"))
    return problems
