"""Admission of PersistentVolumeClaims: only a class that allows expansion lets them grow."""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, metadata, subtree
from steersman.objects import Quantity

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_FIXED = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


class ClaimGrowth(Plugin):
    """Rejects a larger claim unless its StorageClass allows expansion."""

    operations: frozenset[AdmissionOperation] = frozenset({"UPDATE"})
    resources = frozenset({("", "persistentvolumeclaims")})

    async def validate(self, attributes: Attributes) -> None:
        """Check a changed claim."""
        obj, old = attributes.obj, attributes.old
        if obj is None or old is None or _asked(obj) <= _asked(old):
            return
        name = inner(metadata(obj), "annotations").get(_CLASS_ANNOTATION) or obj["spec"].get("storageClassName")
        record = await attributes.context.read("storage.k8s.io", "storageclasses", "", name) if name else None
        if record is None or not decode_stored(record).get("allowVolumeExpansion"):
            raise attributes.refused(_FIXED)


def _asked(claim: Tree) -> Quantity:
    return Quantity(subtree(claim, "spec", "resources", "requests").get("storage", "0"))
