"""Copies the zone and region labels of a Node to its Pods."""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.registry.builtin.types.trees import inner, metadata

_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopology(Plugin):
    """The plugin PodTopologyLabels."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE"})
    resources = frozenset({("", "pods")})

    async def admit(self, attributes: Attributes) -> None:
        """Copy the labels of the Node to a new Pod with a Node, or to the Binding that assigns one."""
        obj = attributes.obj
        if obj is None or attributes.subresource not in {"", "binding"}:
            return
        if not attributes.subresource:
            name = inner(obj, "spec").get("nodeName")
        else:
            target = inner(obj, "target")
            name = target.get("name") if target.get("kind") == "Node" else None
        record = await attributes.context.read("", "nodes", "", name) if name else None
        if record is None:
            return
        of_node = inner(metadata(decode_stored(record)), "labels")
        if labels := {key: of_node[key] for key in _LABELS if key in of_node}:
            metadata(obj)["labels"] = inner(metadata(obj), "labels") | labels
