"""Namespaces and their content.

- Nothing is created in a terminating or missing namespace.
- Three namespaces cannot be deleted.
"""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.errors import Named, forbidden, not_found
from steersman.errors import StatusCause

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
_NAMESPACES = Named("", "namespaces")


class NamespaceLifecycle(Plugin):
    """Needs a server that serves namespaces."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "DELETE"})
    is_repeated = True

    async def admit(self, attributes: Attributes) -> None:
        """Reject creations without a living namespace, and the deletion of an immortal one."""
        if not attributes.definition.gvk.group and attributes.definition.resource == "namespaces":
            if attributes.operation == "DELETE" and attributes.name in IMMORTAL:
                raise forbidden(_NAMESPACES, attributes.name, "this namespace may not be deleted")
            return
        # What a missing namespace left behind can be changed and deleted. A review must not reveal whether a namespace exists.
        if attributes.operation == "DELETE" or not attributes.namespace or attributes.definition.review is not None:
            return
        record = await attributes.context.read("", "namespaces", "", attributes.namespace)
        if record is None:
            raise not_found(_NAMESPACES, attributes.namespace)
        if b'"deletionTimestamp"' in record.value:
            self._refuse_in_terminating(attributes, decode_stored(record))

    @staticmethod
    def _refuse_in_terminating(attributes: Attributes, namespace: dict[str, object]) -> None:
        metadata = namespace["metadata"]
        if not isinstance(metadata, dict) or "deletionTimestamp" not in metadata:
            return
        where = attributes.namespace
        message = f"namespace {where} is being terminated"
        cause = StatusCause(reason="NamespaceTerminating", message=message, field="metadata.namespace")
        why = f"unable to create new content in namespace {where} because it is being terminated"
        metadata_of_new: dict[str, str] = (attributes.obj or {}).get("metadata", {})
        name = attributes.name or metadata_of_new.get("generateName", "")
        raise forbidden(attributes.definition.named, name, why, (cause,))
