"""The environment of a container, and references to fields of its Pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.apiserver.registry.builtin.types.file_paths import no_backsteps
from steersman.apiserver.registry.builtin.types.formats import config_key, env_name
from steersman.apiserver.registry.builtin.types.trees import Tree
from steersman.objects import Quantity
from steersman.objects.field_problems import FieldProblem, each, invalid, required, unsupported, until_enough
from steersman.schemas.names import dns_label, dns_subdomain, qualified_name

_ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN_FIELDS = {*_ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
_SUBSCRIPTED = ("metadata.annotations", "metadata.labels")
_RESOURCES = tuple(
    sorted(f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage"))
)
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_SIZES = ("1", *(f"1{unit}{binary}" for binary in ("", "i") for unit in ("k" if not binary else "K", *"MGTPE")))
_SIZES_SAID = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_ONE_OF = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_TOO_MANY = "may not have more than one field specified at a time"


def environment(path: str, variables: list[Tree]) -> list[FieldProblem]:
    """Validate environment variables, one by one."""
    problems: list[FieldProblem] = []
    for index, variable in until_enough(variables, problems):
        where, name = f"{path}[{index}]", variable.get("name", "")
        problems += each(f"{where}.name", name, env_name(name)) if name else [required(f"{where}.name")]
        source = variable.get("valueFrom")
        if source is not None:
            problems += _value_from(f"{where}.valueFrom", source, variable.get("value", ""))
    return problems


def _value_from(path: str, source: Tree, value: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if "fieldRef" in source:
        problems += field_reference(f"{path}.fieldRef", source["fieldRef"], _ENV_FIELDS)
    if "resourceFieldRef" in source:
        problems += resource_reference(f"{path}.resourceFieldRef", source["resourceFieldRef"], volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            problems += _key(f"{path}.{name}", source[name])
    if "fileKeyRef" in source:
        problems += _file_key(f"{path}.fileKeyRef", source["fileKeyRef"])
    if not source:
        problems.append(invalid(path, "", _ONE_OF))
    elif value:
        problems.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(source) > 1:
        problems.append(invalid(path, "", _TOO_MANY))
    return problems


def _key(path: str, reference: Mapping[str, Any]) -> list[FieldProblem]:
    name, key = reference.get("name", ""), reference.get("key", "")
    problems = each(f"{path}.name", name, dns_subdomain(name))
    return problems + (each(f"{path}.key", key, config_key(key)) if key else [required(f"{path}.key")])


def _file_key(path: str, reference: Mapping[str, Any]) -> list[FieldProblem]:
    key, volume, file = (reference.get(name, "") for name in ("key", "volumeName", "path"))
    problems = each(f"{path}.key", key, env_name(key)) if key else [required(f"{path}.key")]
    problems += each(f"{path}.volumeName", volume, dns_label(volume)) if volume else [required(f"{path}.volumeName")]
    return problems + (no_backsteps(f"{path}.path", file) if file else [required(f"{path}.path")])


def environment_from(path: str, sources: list[Tree]) -> list[FieldProblem]:
    """Validate sources of many variables."""
    problems: list[FieldProblem] = []
    for index, source in until_enough(sources, problems):
        where, prefix = f"{path}[{index}]", source.get("prefix", "")
        if prefix:
            problems += each(f"{where}.prefix", prefix, env_name(prefix))
        named = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in named:
            reference = source[name].get("name", "")
            if reference:
                problems += each(f"{where}.{name}.name", reference, dns_subdomain(reference, prefix=True))
            else:
                problems.append(required(f"{where}.{name}.name"))
        if not named:
            problems.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(named) > 1:
            problems.append(invalid(path, "", _TOO_MANY))
    return problems


def _subscript(field: str) -> tuple[str, str] | None:
    if not field.endswith("']"):
        return None
    before, opened, inside = field[:-2].partition("['")
    return (before, inside) if opened and before else None


def field_reference(path: str, reference: Mapping[str, Any], known: tuple[str, ...]) -> list[FieldProblem]:
    """Validate a reference to a field of the Pod."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version or not field:
        return [required(f"{path}.fieldPath" if version else f"{path}.apiVersion")]
    where = f"{path}.fieldPath"
    if version != "v1":
        return [invalid(where, field, f"error converting fieldPath: unsupported pod version: {version}")]
    split = _subscript(field)
    if split is not None:
        name, key = split
        if name not in _SUBSCRIPTED:
            detail = f"error converting fieldPath: field label does not support subscript: {field}"
            return [invalid(where, field, detail)]
        judged = key.lower() if name == "metadata.annotations" else key
        return each(path, judged, qualified_name(judged))
    if field not in _KNOWN_FIELDS and field != "spec.host":
        return [invalid(where, field, f"error converting fieldPath: field label not supported: {field}")]
    meant = "spec.nodeName" if field == "spec.host" else field
    return [] if meant in known else [unsupported(where, meant, known)]


def resource_reference(path: str, reference: Mapping[str, Any], *, volume: bool) -> list[FieldProblem]:
    """Validate a reference to a container's resources."""
    name = reference.get("resource", "")
    problems: list[FieldProblem] = []
    if volume and not reference.get("containerName"):
        problems.append(required(f"{path}.containerName"))
    elif not name:
        problems.append(required(f"{path}.resource"))
    elif name not in _RESOURCES and not name.startswith(_HUGE):
        problems.append(unsupported(f"{path}.resource", name, _RESOURCES))
    return problems + _divisor(path, name, reference.get("divisor", "0"))


def _divisor(path: str, name: str, divisor: str) -> list[FieldProblem]:
    value = Quantity(divisor)
    if value == 0:
        return []
    shown = value.printed()
    where = f"{path}.divisor"
    if name.endswith(".cpu") and name in _RESOURCES:
        good, said = shown in {"1m", "1"}, "1m and 1 are supported with the cpu resource"
    elif name.endswith(".memory") and name in _RESOURCES:
        good, said = shown in _SIZES, f"{_SIZES_SAID} are supported with the memory resource"
    elif name.endswith(".ephemeral-storage") and name in _RESOURCES:
        good, said = shown in _SIZES, f"{_SIZES_SAID} are supported with the local ephemeral storage resource"
    elif name.startswith(_HUGE):
        good, said = shown in _SIZES, f"{_SIZES_SAID} are supported with the hugepages resource"
    else:
        return []
    return [] if good else [invalid(where, name, f"only divisor's values {said}")]
