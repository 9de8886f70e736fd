"""PersistentVolumeClaims: their requests, and the few changes that are allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.internal_form import difference
from steersman.apiserver.registry.builtin.types.labels import label_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree, take
from steersman.objects import Quantity
from steersman.objects.field_problems import (
    NOT_POSITIVE,
    FieldProblem,
    each,
    forbidden,
    invalid,
    required,
    unchanged,
    unsupported,
)
from steersman.schemas.names import dns_label, dns_subdomain

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
#: Allowed references of the older of the two fields.
_OLD_SOURCES = {("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")}
_FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"


def fill_claim(spec: Tree) -> None:
    """Default the volume mode to Filesystem."""
    spec.setdefault("volumeMode", "Filesystem")


class PersistentVolumeClaimStrategy(BuiltinStrategy):
    """How PersistentVolumeClaims behave."""

    def default(self, obj: Tree) -> None:
        """Normalize it to the form of its type; empty values are rejected, and printed as such."""
        has_no_modes = subtree(obj, "spec").get("accessModes") == []
        asks_nothing = subtree(obj, "spec", "resources").get("requests") == {}
        super().default(obj)
        if has_no_modes:
            obj["spec"]["accessModes"] = []
        if asks_nothing:
            obj["spec"]["resources"]["requests"] = {}

    def fill(self, obj: Tree) -> None:
        fill_claim(obj["spec"])
        obj["status"].setdefault("phase", "Pending")
        # A disabled feature.
        obj["status"].pop("healthStatus", None)

    def prepare_create(self, obj: Tree) -> None:
        """Clear the status."""
        obj["status"] = {"phase": "Pending"}
        _same_sources(obj["spec"])

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        super().prepare_update(obj, old)
        _same_sources(obj["spec"])

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return claim("spec", subtree(obj, "spec"))

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about the deprecated annotation, and about amounts with fractions of bytes."""
        del old
        found: list[str] = []
        if _CLASS_ANNOTATION in inner(metadata(obj), "annotations"):
            words = 'deprecated since v1.8; use "storageClassName" attribute instead'
            found.append(f"metadata.annotations[{_CLASS_ANNOTATION}]: {words}")
        for field in ("requests", "limits"):
            amount = Quantity(subtree(obj, "spec", "resources", field).get("storage", "0"))
            if amount.milli_value() % 1000:
                where = f"spec.resources.{field}[storage]"
                found.append(f'{where}: fractional byte value "{amount.printed()}" is invalid, must be an integer')
        return found

    def is_unfinished(self, obj: Tree) -> bool:
        """Whether the first update is stored even if it changes nothing: always, for claims."""
        del obj
        return True

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """A bound claim may request more; little else may change."""
        problems = self.validate_create(obj)
        new, before = dict(obj["spec"]), dict(old["spec"])
        if not before.get("volumeName") and new.get("volumeName"):
            before["volumeName"] = new["volumeName"]
        problems += self._storage_class(obj, old, new, before)
        bound = subtree(obj, "status").get("phase") == "Bound"
        if bound:
            resources = dict(inner(new, "resources"))
            if resources.get("requests"):
                storage = subtree(old, "spec", "resources", "requests").get("storage", "0")
                resources["requests"] = resources["requests"] | {"storage": storage}
                new["resources"] = resources
            take(new, before, "volumeAttributesClassName")
        if new != before:
            shown = difference(before, new, "core.PersistentVolumeClaimSpec")
            problems.append(forbidden("spec", f"{_FIXED}{shown}"))
        problems += _not_smaller(obj, old)
        mode = subtree(obj, "spec").get("volumeMode")
        return problems + unchanged("volumeMode", mode, subtree(old, "spec").get("volumeMode"))

    @staticmethod
    def _storage_class(obj: Tree, old: Tree, new: Tree, before: Tree) -> list[FieldProblem]:
        """Allow naming a class where none was named."""
        was = inner(metadata(old), "annotations").get(_CLASS_ANNOTATION)
        is_ = inner(metadata(obj), "annotations").get(_CLASS_ANNOTATION)
        unnamed = before.get("storageClassName") is None
        if was is not None and unnamed and new.get("storageClassName") == was and is_ in {None, was}:
            new.pop("storageClassName", None)
            return []
        problems: list[FieldProblem] = []
        if (is_ or "") != (was or ""):
            problems.append(invalid(f"metadata.annotations.{_CLASS_ANNOTATION}", is_ or "", "field is immutable"))
        if new.get("storageClassName") is not None and unnamed and was in {None, new["storageClassName"]}:
            new.pop("storageClassName")
        return problems

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Capacities must not be negative."""
        del old
        problems: list[FieldProblem] = []
        for name, amount in inner(subtree(obj, "status"), "capacity").items():
            value = Quantity(amount).value()
            if value < 0:
                problems.append(invalid(f"status.capacity[{name}]", value, "must be a valid resource quantity"))
        return problems


def _not_smaller(obj: Tree, old: Tree) -> list[FieldProblem]:
    asked = Quantity(subtree(obj, "spec", "resources", "requests").get("storage", "0"))
    before = Quantity(subtree(old, "spec", "resources", "requests").get("storage", "0"))
    given = Quantity(subtree(old, "status", "capacity").get("storage", "0"))
    if asked < before and asked <= given:
        return [forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]
    return []


def _same_sources(spec: Tree) -> None:
    """Two fields name the source of the content: copy each to the other."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if reference is not None:
        # Sources in other namespaces belong to a disabled feature.
        reference.pop("namespace", None)
    if source is not None and (source.get("apiGroup") or "", source.get("kind")) not in _OLD_SOURCES:
        del spec["dataSource"]
        source = None
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None:
        spec["dataSource"] = {name: reference[name] for name in ("apiGroup", "kind", "name") if name in reference}


def claim(path: str, spec: Mapping[str, Any]) -> list[FieldProblem]:
    """Validate the spec of a claim, or of a claim template."""
    problems: list[FieldProblem] = []
    modes = items(spec, "accessModes")
    if not modes:
        problems.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    problems += label_selector(f"{path}.selector", spec.get("selector"))
    problems += access_modes(f"{path}.accessModes", modes)
    problems += _storage(f"{path}.resources[storage]", inner(inner(spec, "resources"), "requests"))
    if spec.get("storageClassName"):
        problems += each(f"{path}.storageClassName", spec["storageClassName"], dns_subdomain(spec["storageClassName"]))
    problems += volume_mode(f"{path}.volumeMode", spec.get("volumeMode"))
    problems += _sources(path, spec)
    attributes = spec.get("volumeAttributesClassName")
    if attributes:
        problems += each(f"{path}.volumeAttributesClassName", attributes, dns_subdomain(attributes))
    return problems


def access_modes(path: str, modes: list[str]) -> list[FieldProblem]:
    """Validate the access modes of a claim or a volume."""
    problems = [unsupported(path, mode, _MODES) for mode in modes if mode not in _MODES]
    known = {mode for mode in modes if mode in _MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        problems.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return problems


def volume_mode(path: str, mode: str | None) -> list[FieldProblem]:
    """Validate the mode of a claim or a volume."""
    return [] if mode is None or mode in _VOLUME_MODES else [unsupported(path, mode, _VOLUME_MODES)]


def _storage(path: str, requests: Mapping[str, str]) -> list[FieldProblem]:
    asked = requests.get("storage")
    if asked is None:
        return [required(path)]
    return [invalid(path, Quantity(asked).canonical(), NOT_POSITIVE)] if Quantity(asked) <= 0 else []


def _sources(path: str, spec: Mapping[str, Any]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        problems += _source(f"{path}.dataSource", source)
    if reference is not None:
        problems += _source(f"{path}.dataSourceRef", reference)
        if reference.get("namespace"):
            namespace = reference["namespace"]
            problems += each(f"{path}.dataSourceRef.namespace", namespace, dns_label(namespace))
    # In both of these, the server prints the path of the other field as an empty value.
    if source is not None and reference is not None:
        if reference.get("namespace"):
            problems.append(invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
        elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
            problems.append(invalid(path, {}, "must match dataSourceRef"))
    return problems


def _source(path: str, source: Mapping[str, Any]) -> list[FieldProblem]:
    problems = [required(f"{path}.{name}") for name in ("name", "kind") if not source.get(name)]
    group = source.get("apiGroup") or ""
    if not group and source.get("kind") != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        problems.append(invalid(path, source.get("kind") or "", detail))
    return problems + (each(f"{path}.apiGroup", group, dns_subdomain(group)) if group else [])
