"""The served resources, in kube-apiserver's order.

Guarantees
- Everything is read from the registry: a resource, a verb or a subresource is listed if and only if it is served.
- A `Snapshot` is made once for each revision of the registry; derived documents are cached with it, so none outlives a
  change.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from steersman.apiserver.registry import Definition, ResourceRegistry
from steersman.objects import GroupVersion, GroupVersionKind

#: Groups by kube-apiserver's priority, highest first; all others follow by name.
_GROUPS: Final = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
_PRIORITY: Final = {group: place for place, group in enumerate(_GROUPS)}
_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}
_SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_READ_AND_WRITE: Final = ("get", "patch", "update")
#: kube-apiserver's order of the verbs of a custom resource.
_CUSTOM_ORDER: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class ServedSubresource(NamedTuple):
    """A subresource in discovery."""

    name: str
    gvk: GroupVersionKind
    verbs: tuple[str, ...]


def version_order(version: str) -> tuple[int, int, int, str]:
    """The sort key of versions, best first: stable ones before beta and alpha, newer ones before older ones."""
    read = _VERSION.fullmatch(version)
    if read is None:
        return 3, 0, 0, version
    return _STABILITY[read[2]], -int(read[1]), -int(read[3] or 0), version


def verbs_of(definition: Definition) -> tuple[str, ...]:
    """The verbs of a resource in discovery."""
    if not definition.custom:
        return definition.verbs
    known = tuple(verb for verb in _CUSTOM_ORDER if verb in definition.verbs)
    return known + tuple(verb for verb in definition.verbs if verb not in known)


def subresources_of(definition: Definition) -> list[ServedSubresource]:
    """The subresources of a resource, in discovery's order."""
    subresources: list[ServedSubresource] = []
    if definition.has_status:
        subresources.append(ServedSubresource("status", definition.gvk, _READ_AND_WRITE))
    if definition.scale is not None:
        subresources.append(ServedSubresource("scale", _SCALE, _READ_AND_WRITE))
    subresources += [
        ServedSubresource(name, subresource.gvk, tuple(sorted(subresource.verbs)))
        for name, subresource in definition.subresources.items()
    ]
    return subresources if definition.custom else sorted(subresources)


class Snapshot:
    """The served groups at one revision of the registry, with their versions and resources."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self.revision = registry.revision
        unordered: dict[str, dict[str, list[Definition]]] = {}
        for definition in registry:
            versions = unordered.setdefault(definition.gvk.group, {})
            versions.setdefault(definition.gvk.version, []).append(definition)
        #: Definitions by group and version: the first version of a group is the preferred one.
        self.groups: dict[str, dict[str, list[Definition]]] = {
            group: {
                version: sorted(unordered[group][version], key=lambda each: each.resource)
                for version in sorted(unordered[group], key=version_order)
            }
            for group in sorted(unordered, key=lambda name: (_PRIORITY.get(name, len(_GROUPS)), name))
        }
        self._documents: dict[str, bytes] = {}

    def of(self, group_version: GroupVersion) -> list[Definition] | None:
        """The resources of a group-version by name; None if it is not served."""
        return self.groups.get(group_version.group, {}).get(group_version.version)

    def group_versions(self) -> list[GroupVersion]:
        """All group-versions, the preferred one of each group first."""
        return [GroupVersion(group, version) for group, versions in self.groups.items() for version in versions]

    def is_builtin(self, group: str) -> bool:
        """Whether a group has resources that are not custom."""
        versions = self.groups.get(group, {})
        return any(not definition.custom for definitions in versions.values() for definition in definitions)

    def document(self, name: str, make: Callable[[], bytes]) -> bytes:
        """A document of this snapshot, made on first use."""
        document = self._documents.get(name)
        if document is None:
            document = self._documents[name] = make()
        return document

    def storage_version_hash(self, definition: Definition) -> str:
        """The hash of the version in which objects are stored; empty for resources that are not stored."""
        if not {"get", "create"} <= set(definition.verbs):
            return ""
        stored = self._stored(definition)
        digest = hashlib.sha256(f"{stored.group}/{stored.version}/{stored.kind}".encode()).digest()
        return base64.b64encode(digest[:8]).decode()

    def _stored(self, definition: Definition) -> GroupVersionKind:
        """The kind in which a resource is stored: the one that needs no conversion."""
        group = (definition.stored_as or (definition.gvk.group, ""))[0]
        kind = definition.gvk.kind
        if definition.storage_version:
            return GroupVersionKind(group, definition.storage_version, kind)
        for version, definitions in self.groups.get(group, {}).items():
            for other in definitions:
                if other.prefix == definition.prefix and other.gvk.kind == kind and other.conversion is None:
                    return GroupVersionKind(group, version, kind)
        return GroupVersionKind(group, definition.gvk.version, kind)


class Catalog:
    """The newest snapshot of a registry."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._snapshot: Snapshot | None = None

    def now(self) -> Snapshot:
        """What is served now."""
        snapshot = self._snapshot
        if snapshot is None or snapshot.revision != self._registry.revision:
            snapshot = self._snapshot = Snapshot(self._registry)
        return snapshot
