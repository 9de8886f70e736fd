"""Fields for field selectors, other than name and namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from steersman.apiserver.registry.builtin.event import to_core
from steersman.apiserver.registry.builtin.types.trees import Tree, items, subtree
from steersman.objects import GroupVersionKind

_Fields = Mapping[str, Callable[[Tree], str]]


def _text(path: tuple[str, ...], obj: Tree) -> str:
    value = subtree(obj, *path[:-1]).get(path[-1])
    return "" if value is None else str(value)


def _at(*names: str) -> _Fields:
    return {name: partial(_text, tuple(name.split("."))) for name in names}


def _event_field(name: str, obj: Tree) -> str:
    return _text(tuple(name.split(".")), to_core(obj))


def _event_source(obj: Tree) -> str:
    event = to_core(obj)
    return subtree(event, "source").get("component") or event.get("reportingComponent", "")


_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT: _Fields = {
    **{f"involvedObject.{name}": partial(_event_field, f"involvedObject.{name}") for name in _ABOUT},
    **{name: partial(_event_field, name) for name in ("reason", "reportingComponent", "type")},
    "source": _event_source,
}
#: The same fields with the names of events.k8s.io.
_NEW_EVENT: _Fields = {
    **{f"regarding.{name}": partial(_event_field, f"involvedObject.{name}") for name in _ABOUT},
    **{name: partial(_event_field, name) for name in ("reason", "type")},
    "reportingController": partial(_event_field, "reportingComponent"),
    "reportingComponent": partial(_event_field, "reportingComponent"),
    "source": _event_source,
}


def _first_address(obj: Tree) -> str:
    return next((one.get("ip", "") for one in items(subtree(obj, "status"), "podIPs")), "")


SELECTABLE: Mapping[GroupVersionKind, _Fields] = {
    GroupVersionKind("", "v1", "Event"): _EVENT,
    GroupVersionKind("events.k8s.io", "v1", "Event"): _NEW_EVENT,
    GroupVersionKind("", "v1", "Namespace"): _at("status.phase"),
    GroupVersionKind("", "v1", "Node"): {
        "spec.unschedulable": lambda obj: "true" if subtree(obj, "spec").get("unschedulable") else "false"
    },
    GroupVersionKind("", "v1", "Pod"): {
        **_at("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        **_at("status.phase", "status.nominatedNodeName"),
        "spec.hostNetwork": lambda obj: "true" if subtree(obj, "spec").get("hostNetwork") else "false",
        "status.podIP": _first_address,
        "status.podIPs": _first_address,
    },
    GroupVersionKind("", "v1", "ReplicationController"): {
        "status.replicas": lambda obj: str(subtree(obj, "status").get("replicas", 0))
    },
    GroupVersionKind("", "v1", "Secret"): _at("type"),
    GroupVersionKind("", "v1", "Service"): _at("spec.clusterIP", "spec.type"),
    GroupVersionKind("batch", "v1", "Job"): {
        "status.successful": lambda obj: str(subtree(obj, "status").get("succeeded", 0))
    },
    GroupVersionKind("certificates.k8s.io", "v1", "CertificateSigningRequest"): _at("spec.signerName"),
    GroupVersionKind("certificates.k8s.io", "v1", "ClusterTrustBundle"): _at("spec.signerName"),
    GroupVersionKind("certificates.k8s.io", "v1", "PodCertificateRequest"): _at(
        "spec.nodeName", "spec.podName", "spec.signerName"
    ),
}
