"""Protects storage in use: adds a finalizer to new storage objects, which a controller removes."""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.registry.builtin.types.trees import items, metadata

#: The finalizer, by group and resource.
_FINALIZERS = {
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class StorageProtection(Plugin):
    """The plugin StorageObjectInUseProtection."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE"})
    resources = frozenset(_FINALIZERS)

    async def admit(self, attributes: Attributes) -> None:
        """Add the finalizer."""
        definition = attributes.definition
        if attributes.subresource or attributes.obj is None:
            return
        finalizer = _FINALIZERS[definition.gvk.group, definition.resource]
        finalizers = items(metadata(attributes.obj), "finalizers")
        if finalizer not in finalizers:
            metadata(attributes.obj)["finalizers"] = [*finalizers, finalizer]
