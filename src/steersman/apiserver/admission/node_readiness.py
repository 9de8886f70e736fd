"""Taints new Nodes until they are ready, and lets Pods tolerate a short failure of their Node."""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.registry.builtin.types.trees import Tree, items

_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
#: Seconds that a Pod stays on a failed Node.
_PATIENCE = 300


class NodeTaints(Plugin):
    """The plugin TaintNodesByCondition."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE"})
    resources = frozenset({("", "nodes")})

    async def admit(self, attributes: Attributes) -> None:
        """Taint a new Node."""
        if attributes.subresource or attributes.obj is None:
            return
        spec: Tree = attributes.obj.setdefault("spec", {})
        taints = items(spec, "taints")
        if not any((taint.get("key"), taint.get("effect")) == (_NOT_READY, "NoSchedule") for taint in taints):
            spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]


class PodTolerations(Plugin):
    """The plugin DefaultTolerationSeconds."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE"})
    resources = frozenset({("", "pods")})

    async def admit(self, attributes: Attributes) -> None:
        """Add the default tolerations, unless the Pod has its own."""
        if attributes.subresource or attributes.obj is None:
            return
        spec: Tree = attributes.obj.setdefault("spec", {})
        given = items(spec, "tolerations")
        named = {each.get("key") or "" for each in given if (each.get("effect") or "") in {"NoExecute", ""}}
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _PATIENCE}
            for key in (_NOT_READY, _UNREACHABLE)
            if not named & {key, ""}
        ]
        if added:
            spec["tolerations"] = [*given, *added]
