"""Kinds with structural checks and common defaults, but without validation rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steersman.aio import now
from steersman.apiserver.registry.builtin.pods.defaults import fill_template, fill_volume
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata
from steersman.objects import GroupVersionKind, format_time

_VOLUME_FINALIZER = "kubernetes.io/pv-protection"
_NODE = GroupVersionKind("", "v1", "Node")
_NOT_READY = "node.kubernetes.io/not-ready"
_TOKENS_SHOWN = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def _priority_class(obj: Tree) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _storage_class(obj: Tree) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _csi_driver(obj: Tree) -> None:
    spec: Tree = obj["spec"]
    spec.setdefault("attachRequired", True)
    for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        spec.setdefault(name, False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def _network_policy(obj: Tree) -> None:
    spec: Tree = obj["spec"]
    spec.setdefault("policyTypes", ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
    for rule in (*items(spec, "ingress"), *items(spec, "egress")):
        _protocols(rule)


def _protocols(holder: Tree) -> None:
    for port in items(holder, "ports"):
        port.setdefault("protocol", "TCP")


def _ingress_class(obj: Tree) -> None:
    if "parameters" in obj["spec"]:
        parameters: Tree = obj["spec"]["parameters"]
        parameters["scope"] = parameters.get("scope") or "Cluster"


def _endpoints(obj: Tree) -> None:
    for subset in items(obj, "subsets"):
        _protocols(subset)


def _endpoint_slice(obj: Tree) -> None:
    _protocols(obj)
    for port in items(obj, "ports"):
        port["name"] = port.get("name") or ""


def _persistent_volume(obj: Tree) -> None:
    spec: Tree = obj["spec"]
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    obj["status"].setdefault("phase", "Pending")
    source = {
        "name": "",
        **{name: spec[name] for name in ("hostPath", "iscsi", "rbd", "azureDisk", "scaleIO") if name in spec},
    }
    if len(source) > 1:
        fill_volume(source)


def _autoscaler(obj: Tree) -> None:
    spec: Tree = obj["spec"]
    spec.setdefault("minReplicas", 1)
    if obj.get("apiVersion") == "autoscaling/v1":
        spec.setdefault("targetCPUUtilizationPercentage", 80)
    elif not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _webhooks(obj: Tree) -> None:
    for hook in items(obj, "webhooks"):
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", 10)
        if obj.get("kind") == "MutatingWebhookConfiguration":
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in items(hook, "rules"):
            rule.setdefault("scope", "*")
        service = inner(hook, "clientConfig").get("service")
        if service is not None:
            service.setdefault("port", 443)


def _pod_template(obj: Tree) -> None:
    fill_template(obj["template"])


def _node(obj: Tree) -> None:
    status: Tree = obj["status"]
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))
    spec: Tree = obj["spec"]
    first, ranges = spec.get("podCIDR"), items(spec, "podCIDRs")
    if first and first not in ranges[:1]:
        spec["podCIDRs"] = [first]
    elif ranges:
        spec["podCIDR"] = ranges[0]


def _flow_schema(obj: Tree) -> None:
    spec: Tree = obj["spec"]
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


_FILLS: Mapping[str, Callable[[Tree], None]] = {
    "CSIDriver": _csi_driver,
    "EndpointSlice": _endpoint_slice,
    "Endpoints": _endpoints,
    "FlowSchema": _flow_schema,
    "HorizontalPodAutoscaler": _autoscaler,
    "IngressClass": _ingress_class,
    "MutatingWebhookConfiguration": _webhooks,
    "NetworkPolicy": _network_policy,
    "Node": _node,
    "PersistentVolume": _persistent_volume,
    "PodTemplate": _pod_template,
    "PriorityClass": _priority_class,
    "StorageClass": _storage_class,
    "ValidatingWebhookConfiguration": _webhooks,
}


#: Lists that a writer owns even if they are empty, though they are stored as absent.
_LISTS: Mapping[str, tuple[str, ...]] = {"EndpointSlice": ("endpoints", "ports")}


class StructuralStrategy(BuiltinStrategy):
    """How kinds without validation rules behave."""

    def __init__(self, kind: GroupVersionKind, *, has_status: bool = False) -> None:
        super().__init__(kind, has_status=has_status)
        # A kubelet creates its Node with a status.
        self.keeps_new_status = kind == _NODE

    def default(self, obj: Tree) -> None:
        """Normalize it to the form of its type, and fill in defaults."""
        empty = [name for name in _LISTS.get(self.kind.kind, ()) if obj.get(name) == []]
        super().default(obj)
        for name in empty:
            obj[name] = []

    def fill(self, obj: Tree) -> None:
        """Fill in the common defaults."""
        fill = _FILLS.get(self.kind.kind)
        if fill is not None:
            fill(obj)

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about a driver's probable mistakes."""
        del old
        spec = inner(obj, "spec")
        hides = self.kind.kind != "CSIDriver" or "serviceAccountTokenInSecrets" in spec
        return [] if hides or not spec.get("tokenRequests") else [_TOKENS_SHOWN]

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Restore the status."""
        super().prepare_update(obj, old)
        self._store_lists(obj)

    def _store_lists(self, obj: Tree) -> None:
        for name in _LISTS.get(self.kind.kind, ()):
            obj[name] = obj.get(name) or None

    def prepare_create(self, obj: Tree) -> None:
        """Clear the status."""
        self._store_lists(obj)
        if not self.keeps_new_status:
            super().prepare_create(obj)
        if self.kind.kind == "PersistentVolume":
            obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": format_time(now())}
            finalizers = items(metadata(obj), "finalizers")
            if _VOLUME_FINALIZER not in finalizers:
                metadata(obj)["finalizers"] = [*finalizers, _VOLUME_FINALIZER]
        elif self.kind.kind == "Node" and not any(one.get("key") == _NOT_READY for one in items(obj["spec"], "taints")):
            # It has not been seen ready yet.
            taint = {"key": _NOT_READY, "effect": "NoSchedule"}
            obj["spec"]["taints"] = [*items(obj["spec"], "taints"), taint]
