"""Warnings for the writer of an allowed Pod or Pod template."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.apiserver.registry.builtin.pods.profiles import (
    APP_ARMOR,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    containers_with_paths,
)
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata
from steersman.golang import quoted
from steersman.objects import Quantity
from steersman.schemas.names import dns_label

#: Volume types that no node mounts any more.
_GONE = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SHOWN_AS = {"storageos": "storageOS"}
#: Deprecated node labels, since when and their replacements.
_OLD_LABELS = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
}
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def name_warnings(obj: Tree, used: str = "this is used in Pod names and hostnames") -> list[str]:
    """Warnings about a name that becomes a Pod's or a host's."""
    wrong = dns_label(metadata(obj).get("name", ""))
    said = f"{used}, which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: {said}: [{' '.join(wrong)}]"] if wrong else []


def template_warnings(path: str, template: Tree) -> list[str]:
    """Warnings about a Pod template at a path."""
    return annotation_warnings(path, template) + pod_warnings(f"{path}.spec", inner(template, "spec"))


def pod_warnings(path: str, spec: Tree) -> list[str]:
    """Warnings about a spec at a path."""
    warnings = _old_labels(path, spec)
    for index, one in enumerate(items(spec, "topologySpreadConstraints")):
        where = f"{path}.topologySpreadConstraints[{index}]"
        key = one.get("topologyKey", "")
        if key in _OLD_LABELS:
            warnings.append(f"{where}.topologyKey: {key} is {_old_label(key)}")
        if one.get("labelSelector") is None:
            warnings.append(f"{where}.labelSelector: {_NO_SELECTOR}")
    for index, volume in enumerate(items(spec, "volumes")):
        warnings += [
            f"{path}.volumes[{index}].{_SHOWN_AS.get(name, name)}: {_GONE[name]}" for name in _GONE if name in volume
        ]
        sources = items(inner(volume, "projected"), "sources")
        nothing = f"volume {quoted(volume.get('name', ''))} (Projected) has no sources provided"
        warnings += [nothing for source in sources if not source]
    aliases = [one.get("ip", "") for one in items(spec, "hostAliases")]
    warnings += [f"{path}.hostAliases[{i}].ip: duplicate ip {quoted(ip)}" for i, ip in _repeated(aliases)]
    secrets = [one.get("name", "") for one in items(spec, "imagePullSecrets")]
    warnings += [f"{path}.imagePullSecrets[{i}].name: duplicate name {quoted(name)}" for i, name in _repeated(secrets)]
    warnings += [
        f'{path}.imagePullSecrets[{i}].name: invalid empty name ""' for i, name in enumerate(secrets) if not name
    ]
    containers = list(containers_with_paths(path, spec))
    for where, one in containers:
        warnings += _fractions(where, inner(one, "resources")) + _hidden(where, items(one, "env"))
    warnings += _ports(containers) + _port_names(containers)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        where = f"{path}.terminationGracePeriodSeconds"
        warnings.append(f"{where}: must be >= 0; negative values are invalid and will be treated as 1")
    return warnings + _affinity(f"{path}.affinity", inner(spec, "affinity"))


def annotation_warnings(path: str, pod: Tree) -> list[str]:
    """Warnings about profiles in annotations of a Pod, or of a template at a path.

    Those about the AppArmor profiles of a Pod are given when they become fields.
    """
    annotations, spec = inner(inner(pod, "metadata"), "annotations"), inner(pod, "spec")
    where = f"{path}.metadata.annotations" if path else "metadata.annotations"
    warnings: list[str] = []
    if not annotations:
        return warnings
    for holder, seccomp, app_armor in (
        (spec, SECCOMP_POD, ""),
        *(
            (one, f"{SECCOMP_CONTAINER}{one.get('name', '')}", f"{APP_ARMOR}{one.get('name', '')}")
            for _, one in containers_with_paths("spec", spec)
        ),
    ):
        fields = inner(holder, "securityContext")
        if seccomp in annotations and fields.get("seccompProfile") is None:
            warnings.append(f'{where}[{seccomp}]: non-functional in v1.27+; use the "seccompProfile" field instead')
        if path and app_armor in annotations and fields.get("appArmorProfile") is None:
            warnings.append(f'{where}[{app_armor}]: deprecated since v1.30; use the "appArmorProfile" field instead')
    return warnings


def _old_label(key: str) -> str:
    since, instead = _OLD_LABELS[key]
    return f"deprecated since {since}; use {quoted(instead)} instead"


def _old_labels(path: str, spec: Tree) -> list[str]:
    """Warnings about deprecated node labels that a Pod uses."""
    warnings = [
        f"{path}.nodeSelector[{key}]: {_old_label(key)}"
        for key in sorted(inner(spec, "nodeSelector"))
        if key in _OLD_LABELS
    ]
    where, affinity = f"{path}.affinity.nodeAffinity", inner(inner(spec, "affinity"), "nodeAffinity")
    terms = [
        (f"{where}.{_REQUIRED}.nodeSelectorTerms[{index}]", term)
        for index, term in enumerate(items(inner(affinity, _REQUIRED), "nodeSelectorTerms"))
    ]
    terms += [
        (f"{where}.{_PREFERRED}[{index}].preference", inner(term, "preference"))
        for index, term in enumerate(items(affinity, _PREFERRED))
    ]
    return warnings + [text for at, term in terms for text in term_warnings(at, term)]


def term_warnings(path: str, term: Tree) -> list[str]:
    """Warnings about deprecated labels in a term of a node selector."""
    keys = [expression.get("key", "") for expression in items(term, "matchExpressions")]
    return [
        f"{path}.matchExpressions[{index}].key: {key} is {_old_label(key)}"
        for index, key in enumerate(keys)
        if key in _OLD_LABELS
    ]


def label_warnings(path: str, keys: Iterable[str]) -> list[str]:
    """Warnings about deprecated node labels."""
    return [f"{path}: {_old_label(key)}" for key in sorted(keys) if key in _OLD_LABELS]


def _repeated(values: Iterable[str]) -> list[tuple[int, str]]:
    seen: set[str] = set()
    again: list[tuple[int, str]] = []
    for index, value in enumerate(values):
        if value in seen:
            again.append((index, value))
        seen.add(value)
    return again


def _fractions(path: str, resources: Tree) -> list[str]:
    return [
        f"{path}.resources.{field}[{name}]: fractional byte value {quoted(Quantity(amount).printed())} is invalid, "
        "must be an integer"
        for name in ("memory", "ephemeral-storage")
        for field in ("limits", "requests")
        if (amount := inner(resources, field).get(name)) is not None and Quantity(amount).milli_value() % 1000
    ]


def _hidden(path: str, variables: list[Tree]) -> list[str]:
    warnings: list[str] = []
    for index, name in _repeated(one.get("name", "") for one in variables):
        one, reference = variables[index], f"$({name})"
        # A variable that builds on an earlier one is intentional.
        value = one.get("value", "")
        if "valueFrom" in one or value == reference or reference not in value:
            said = f"hides previous definition of {quoted(name)}, which may be dropped when using apply"
            warnings.append(f"{path}.env[{index}]: {said}")
    return warnings


def _ports(containers: list[tuple[str, Tree]]) -> list[str]:
    warnings: list[str] = []
    known: dict[tuple[int, str], list[tuple[str, Tree]]] = {}
    for where, one in containers:
        for index, port in enumerate(items(one, "ports")):
            at = f"{where}.ports[{index}]"
            others = known.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for other_at, other in others:
                relation = _relation(port, other)
                if relation:
                    warnings.append(f"{at}: {relation} port definition with {other_at}")
            others.append((at, port))
    return warnings


def _relation(port: Tree, other: Tree) -> str:
    address, number = port.get("hostIP", ""), port.get("hostPort", 0)
    other_address, other_number = other.get("hostIP", ""), other.get("hostPort", 0)
    if (address, number) == (other_address, other_number):
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    return "dangerously ambiguous" if number == other_number and bool(address) != bool(other_address) else ""


def _port_names(containers: list[tuple[str, Tree]]) -> list[str]:
    warnings: list[str] = []
    known: dict[str, str] = {}
    for where, one in containers:
        for index, port in enumerate(items(one, "ports")):
            name, at = port.get("name", ""), f"{where}.ports[{index}]"
            if name and name in known:
                first = known[name]
                said = f"services and probes that select ports by name will use {first}"
                warnings.append(f"{at}: duplicate port name {quoted(name)} with {first}, {said}")
            elif name:
                known[name] = at
    return warnings


def _affinity(path: str, affinity: Tree) -> list[str]:
    warnings: list[str] = []
    for name in ("podAffinity", "podAntiAffinity"):
        given = inner(affinity, name)
        for index, term in enumerate(items(given, _REQUIRED)):
            if term.get("labelSelector") is None:
                warnings.append(f"{path}.{name}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}")
        for index, term in enumerate(items(given, _PREFERRED)):
            if inner(term, "podAffinityTerm").get("labelSelector") is None:
                warnings.append(f"{path}.{name}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}")
    return warnings
