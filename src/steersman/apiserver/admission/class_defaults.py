"""Sets the default StorageClass on new claims without one, and the default IngressClass on new Ingresses."""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, metadata


class ClassDefault(Plugin):
    """Sets the default class on a new object: the newest class that an annotation marks as the default.

    Of equally new classes, the first by name applies. ``field`` holds the name of the object's class, and
    ``annotation`` is the older form of that field.
    """

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE"})

    def __init__(
        self,
        resource: tuple[str, str],
        classes: tuple[str, str],
        *,
        field: str,
        annotation: str,
        marks: tuple[str, ...],
    ) -> None:
        self.resources = frozenset({resource})
        self._prefix = "/".join((*classes, ""))
        self._field = field
        self._annotation = annotation
        self._marks = marks

    async def admit(self, attributes: Attributes) -> None:
        """Set the class."""
        obj = attributes.obj
        if attributes.subresource or obj is None or self._annotation in inner(metadata(obj), "annotations"):
            return
        spec: Tree = obj.setdefault("spec", {})
        if spec.get(self._field) is None and (name := await self._default(attributes)):
            spec[self._field] = name

    async def _default(self, attributes: Attributes) -> str:
        page = await attributes.context.storage.list(self._prefix)
        found = [decode_stored(record)["metadata"] for record in page.records if b"is-default-class" in record.value]
        marked = [each for each in found if any(inner(each, "annotations").get(mark) == "true" for mark in self._marks)]
        # Records are sorted by name, and max() returns the first of equal ones.
        return max(marked, key=lambda each: each["creationTimestamp"], default={"name": ""})["name"]


def default_storage_class() -> ClassDefault:
    """The plugin DefaultStorageClass."""
    return ClassDefault(
        ("", "persistentvolumeclaims"),
        ("storage.k8s.io", "storageclasses"),
        field="storageClassName",
        annotation="volume.beta.kubernetes.io/storage-class",
        marks=("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"),
    )


def default_ingress_class() -> ClassDefault:
    """The plugin DefaultIngressClass."""
    return ClassDefault(
        ("networking.k8s.io", "ingresses"),
        ("networking.k8s.io", "ingressclasses"),
        field="ingressClassName",
        annotation="kubernetes.io/ingress.class",
        marks=("ingressclass.kubernetes.io/is-default-class",),
    )
