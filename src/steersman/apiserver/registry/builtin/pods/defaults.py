"""Defaults of the spec of a Pod, and of a Pod template."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from steersman.apiserver.registry.builtin.persistent_volume_claim import fill_claim
from steersman.apiserver.registry.builtin.pods.disabled_fields import drop_disabled_fields
from steersman.apiserver.registry.builtin.pods.resources import aggregate, supported_for_pods
from steersman.apiserver.registry.builtin.types.resource_names import is_huge_page, may_be_overcommitted
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items

# A valid name has up to 255 characters, and each repetition costs memory. Possessive groups would cost none, but before
# Python 3.11.5 they keep what a failed repetition consumed.
_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+){0,255}"
_HOST = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_IMAGE = re.compile(
    rf"(?:(?:{_HOST}(?:\.{_HOST}){{0,255}}|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?{_PART}(?:/{_PART}){{0,255}}"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_ONLY_DIGITS = re.compile("[a-f0-9]{64}")
_FILE_MODE = 0o644
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def pull_policy(image: str) -> str:
    """The default pull policy of an image: Always, if it has no fixed tag."""
    found = _IMAGE.fullmatch(image)
    if found is None or _ONLY_DIGITS.fullmatch(image):
        return "IfNotPresent"
    tag = found["tag"] or ("" if found["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def containers_of(spec: Tree) -> Iterator[Tree]:
    """All containers of a Pod."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from items(spec, field)


def fill_spec(spec: Tree) -> None:
    """The defaults that Pods and templates share."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        # Two names for one field.
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    drop_disabled_fields(spec, containers_of(spec))
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    for volume in items(spec, "volumes"):
        fill_volume(volume)
    for container in containers_of(spec):
        fill_container(container)


def fill_container(container: Tree) -> None:
    """The defaults of one container."""
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in items(container, "ports"):
        port.setdefault("protocol", "TCP")
    for variable in items(container, "env"):
        source: Tree = inner(variable, "valueFrom")
        if "fieldRef" in source:
            source["fieldRef"].setdefault("apiVersion", "v1")
        if "fileKeyRef" in source:
            source["fileKeyRef"].setdefault("optional", False)
    for name in _PROBES:
        if name in container:
            _fill_probe(container[name])
    lifecycle: Tree = inner(container, "lifecycle")
    for name in ("postStart", "preStop"):
        _fill_request(inner(lifecycle, name))


def _fill_probe(probe: Tree) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe.setdefault(name, value)
    _fill_request(probe)
    if "grpc" in probe:
        probe["grpc"]["service"] = probe["grpc"].get("service") or ""


def _fill_request(handler: Tree) -> None:
    request = handler.get("httpGet")
    if request is not None:
        request.setdefault("path", "/")
        request.setdefault("scheme", "HTTP")


#: Defaults of the volume types; all but the first are plain fields.
_VOLUMES: dict[str, dict[str, Any]] = {
    "secret": {"defaultMode": _FILE_MODE},
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def fill_volume(volume: Tree) -> None:
    """The defaults of one volume; without a type it is an emptyDir."""
    if not any(name != "name" for name in volume):
        volume["emptyDir"] = {}
    for name, defaults in _VOLUMES.items():
        if name in volume:
            for field, value in defaults.items():
                volume[name].setdefault(field, value)
    if "image" in volume:
        volume["image"].setdefault("pullPolicy", pull_policy(volume["image"].get("reference", "")))
    if "ephemeral" in volume and "volumeClaimTemplate" in volume["ephemeral"]:
        fill_claim(volume["ephemeral"]["volumeClaimTemplate"]["spec"])
    _fill_files(inner(volume, "downwardAPI"))
    for source in items(inner(volume, "projected"), "sources"):
        _fill_files(inner(source, "downwardAPI"))
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)


def _fill_files(source: Tree) -> None:
    for item in items(source, "items"):
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")


def fill_template(template: Tree) -> None:
    """The defaults of a template of Pods."""
    fill_spec(template["spec"])


def fill_pod(spec: Tree) -> None:
    """The defaults that only Pods have, not templates."""
    for field in ("containers", "initContainers"):
        for container in items(spec, field):
            resources: Tree = container["resources"]
            if resources.get("limits"):
                resources["requests"] = resources["limits"] | inner(resources, "requests")
    spec.setdefault("enableServiceLinks", True)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("hostNetwork"):
        for field in ("containers", "initContainers"):
            for container in items(spec, field):
                for port in items(container, "ports"):
                    port["hostPort"] = port.get("hostPort") or port["containerPort"]


def fill_pod_resources(spec: Tree) -> None:
    """The defaults of the resources of a Pod as a whole, which follow from those of its containers."""
    resources = spec.get("resources")
    if resources is None or not (resources.get("limits") or resources.get("requests")):
        return
    limits: Tree = dict(inner(resources, "limits"))
    requests: Tree = dict(inner(resources, "requests"))
    for name, amount in aggregate(spec, "limits").items():
        if supported_for_pods(name) and is_huge_page(name) and name not in requests:
            limits.setdefault(name, amount)
    if limits:
        resources["limits"] = limits
        for name, amount in aggregate(spec, "requests").items():
            if supported_for_pods(name) and may_be_overcommitted(name):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if supported_for_pods(name):
                requests.setdefault(name, amount)
        if requests:
            resources["requests"] = requests
