"""Fields of stored objects that reads do not show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from steersman.apiserver.storage import Record
from steersman.objects import GroupVersionKind

#: The annotation of a DaemonSet in which kube-apiserver stores a field of an older version.
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def _service(record: Record) -> Record:
    """A Service without the policy that a headless one does not use; it applies again when the type changes."""
    if b'"internalTrafficPolicy"' not in record.value or b'"type":"ExternalName"' not in record.value:
        return record
    obj: dict[str, Any] = msgspec.json.decode(record.value)
    if obj["spec"].get("type") == "ExternalName":
        obj["spec"].pop("internalTrafficPolicy", None)
    return record.with_value(msgspec.json.encode(obj))


ON_READ: Final[Mapping[GroupVersionKind, Callable[[Record], Record]]] = {
    GroupVersionKind("", "v1", "Service"): _service
}
#: Annotations that clients see only in whole objects.
HIDDEN_ANNOTATIONS: Final[Mapping[GroupVersionKind, frozenset[str]]] = {
    GroupVersionKind("apps", "v1", "DaemonSet"): frozenset({TEMPLATE_GENERATION})
}
