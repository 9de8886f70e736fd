"""StorageClasses, VolumeAttributesClasses and CSIStorageCapacities."""

from __future__ import annotations

import re

from steersman.apiserver.registry.builtin.pods.warnings import label_warnings
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.labels import label_name, label_selector, shown_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects import Quantity
from steersman.objects.field_problems import (
    NEGATIVE,
    FieldProblem,
    duplicate,
    each,
    enough,
    forbidden,
    invalid,
    repeated,
    required,
    too_long,
    unchanged,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_subdomain, qualified_name

_RECLAIMS = ("Delete", "Retain")
_BINDINGS = ("Immediate", "WaitForFirstConsumer")
_PARAMETERS_MAX, _PARAMETERS_SIZE = 512, 256 * 1024


def _provisioner(path: str, name: str) -> list[FieldProblem]:
    return each(path, name.lower(), qualified_name(name.lower())) if name else [required(path)]


def _parameters(given: dict[str, str], *, needed: bool) -> list[FieldProblem]:
    if len(given) > _PARAMETERS_MAX:
        return [too_long("parameters", _PARAMETERS_MAX)]
    problems = [invalid("parameters", "", "field can not be empty.")] if "" in given else []
    if sum(len(key.encode()) + len(value.encode()) for key, value in given.items()) > _PARAMETERS_SIZE:
        problems.append(too_long("parameters", _PARAMETERS_SIZE))
    if needed and not given:
        problems.append(required("parameters", "must contain at least one key/value pair"))
    return problems


class StorageClassStrategy(BuiltinStrategy):
    """How StorageClasses behave."""

    declared_fields = re.compile(r"provisioner|parameters|reclaimPolicy|volumeBindingMode")

    def fill(self, obj: Tree) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        problems = _provisioner("provisioner", obj.get("provisioner", ""))
        problems += _parameters(inner(obj, "parameters"), needed=False)
        policy, mode = obj.get("reclaimPolicy"), obj.get("volumeBindingMode")
        if policy and policy not in _RECLAIMS:
            problems.append(unsupported("reclaimPolicy", policy, _RECLAIMS))
        if mode not in _BINDINGS:
            problems.append(
                required("volumeBindingMode") if mode is None else unsupported("volumeBindingMode", mode, _BINDINGS)
            )
        return problems + _topologies(items(obj, "allowedTopologies"))

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that only expansion, mount options and topologies change."""
        problems = [WHOLE, *self.validate_create(obj), CHANGED]
        for name in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
            problems += unchanged(name, obj.get(name) or None, old.get(name) or None)
        return problems

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about deprecated node labels."""
        del old
        return [
            text
            for index, term in enumerate(items(obj, "allowedTopologies"))
            for at, one in enumerate(items(term, "matchLabelExpressions"))
            for text in label_warnings(
                f"allowedTopologies[{index}].matchLabelExpressions[{at}].key", [one.get("key", "")]
            )
        ]


def _topologies(terms: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    # kube-apiserver starts with an empty term in its list, so it reports a single empty term as a duplicate.
    seen: set[frozenset[tuple[str, frozenset[str]]]] = {frozenset()}
    for index, term in until_enough(terms, problems):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        found: dict[str, frozenset[str]] = {}
        for at, one in until_enough(items(term, "matchLabelExpressions"), problems):
            where, key, values = f"{path}[{at}]", one.get("key", ""), items(one, "values")
            if not values:
                problems.append(required(f"{where}.values"))
            problems += enough(duplicate(f"{where}.values[{place}]", value) for place, value in repeated(values))
            problems += label_name(f"{where}.key", key)
            if key in found:
                problems.append(duplicate(f"{where}.key", key))
            found[key] = frozenset(values)
        pairs = frozenset(found.items())
        if pairs in seen:
            again = len(terms) if not found else 1
            problems += [duplicate(path, "")] * again
        seen.add(pairs)
    return problems


class VolumeAttributesClassStrategy(BuiltinStrategy):
    """How VolumeAttributesClasses behave."""

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        problems = _provisioner("driverName", obj.get("driverName", ""))
        return problems + _parameters(inner(obj, "parameters"), needed=True)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the driver and its parameters do not change."""
        changed = [
            forbidden(name, f"updates to {name} are forbidden.")
            for name in ("driverName", "parameters")
            if obj.get(name) != old.get(name)
        ]
        return [CHANGED, *changed, WHOLE, *self.validate_create(obj)]


class CSIStorageCapacityStrategy(BuiltinStrategy):
    """How CSIStorageCapacities behave."""

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        problems = label_selector("nodeTopology", obj.get("nodeTopology"))
        name, capacity = obj.get("storageClassName", ""), obj.get("capacity")
        problems += each("storageClassName", name, dns_subdomain(name))
        if capacity is not None and Quantity(capacity) < 0:
            problems.append(invalid("capacity", Quantity(capacity).printed(), NEGATIVE))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the topology and the class do not change."""
        topology, name = obj.get("nodeTopology"), obj.get("storageClassName", "")
        problems = [WHOLE, *self.validate_create(obj), CHANGED]
        problems += unchanged("nodeTopology", topology, old.get("nodeTopology"), printed=shown_selector(topology))
        return problems + unchanged("storageClassName", name, old.get("storageClassName", ""))
