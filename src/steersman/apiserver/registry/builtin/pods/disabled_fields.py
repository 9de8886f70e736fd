"""Fields of features that are off by default: kube-apiserver drops them from Pods and templates."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_FILES = ("secret", "configMap", "downwardAPI", "projected")
_SOURCES = ("serviceAccountToken", "clusterTrustBundle", "podCertificate")


def drop_disabled_fields(spec: Tree, containers: Iterable[Tree]) -> None:
    """Drop the fields of disabled features from the spec of a Pod."""
    for name in ("schedulingGroup", "evictionResponders"):
        spec.pop(name, None)
    for volume in items(spec, "volumes"):
        _drop_from_volume(volume)
    for container in containers:
        _drop_from_container(container)


def _drop_from_volume(volume: Tree) -> None:
    inner(volume, "emptyDir").pop("mode", None)
    for name in _FILES:
        inner(volume, name).pop("defaultUser", None)
        _drop_users(inner(volume, name))
    for source in items(inner(volume, "projected"), "sources"):
        for name in _SOURCES:
            inner(source, name).pop("user", None)
        for name in _FILES:
            _drop_users(inner(source, name))


def _drop_users(source: Tree) -> None:
    for item in items(source, "items"):
        item.pop("user", None)


def _drop_from_container(container: Tree) -> None:
    for mount in items(container, "volumeMounts"):
        mount.pop("bindMountOptions", None)
    for name in _PROBES:
        probe = inner(container, name)
        inner(probe, "httpGet").pop("protocol", None)
        inner(probe, "grpc").pop("mode", None)
    lifecycle = inner(container, "lifecycle")
    lifecycle.pop("stopSignal", None)
    for name in ("postStart", "preStop"):
        inner(inner(lifecycle, name), "httpGet").pop("protocol", None)
