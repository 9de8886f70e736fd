"""The cells of tables of kinds without validation rules: nodes, volumes, networks, quotas, autoscaling and flows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from itertools import zip_longest
from typing import Any

from steersman.apiserver.registry.ages import human, since
from steersman.apiserver.registry.builtin.tables.cells import (
    NOTHING,
    UNKNOWN,
    UNSET,
    access_modes,
    age,
    name,
    pairs,
    selector,
)
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree
from steersman.apiserver.registry.builtin.workloads.autoscaler_versions import to_v2
from steersman.objects import Quantity
from steersman.transport import join_host_port

_ROLE, _OLDER_ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"
_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULTS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
#: How many hosts or endpoints, and how many metrics, are shown before the rest is counted.
_SHOWN_MAX, _METRICS_MAX = 3, 2


def _node(obj: Tree) -> list[Any]:
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    ready = [one.get("status") == "True" for one in items(status, "conditions") if one.get("type") == "Ready"]
    conditions = ["Unknown"] if not ready else ["Ready" if ready[-1] else "NotReady"]
    if spec.get("unschedulable"):
        conditions.append("SchedulingDisabled")
    info = inner(status, "nodeInfo")
    kernel, architecture = info.get("kernelVersion") or UNKNOWN, info.get("architecture")
    return [
        name(obj),
        ",".join(conditions),
        ",".join(_roles(inner(metadata(obj), "labels"))) or NOTHING,
        age(obj),
        info.get("kubeletVersion", ""),
        *(_address(status, kind) for kind in ("InternalIP", "ExternalIP")),
        info.get("osImage") or UNKNOWN,
        f"{kernel} ({architecture})" if architecture else kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _roles(labels: Tree) -> list[str]:
    found = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | {labels.get(_OLDER_ROLE, "")}
    return sorted(found - {""})


def _address(status: Tree, kind: str) -> str:
    return next((one.get("address", "") for one in items(status, "addresses") if one.get("type") == kind), NOTHING)


def _persistent_volume(obj: Tree) -> list[Any]:
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    claim = spec.get("claimRef")
    return [
        name(obj),
        Quantity(inner(spec, "capacity").get("storage", "0")).printed(),
        access_modes(spec),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if "deletionTimestamp" in metadata(obj) else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        inner(metadata(obj), "annotations").get(_CLASS, spec.get("storageClassName", "")),
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        age(obj),
        spec.get("volumeMode") or UNSET,
    ]


def _storage_class(obj: Tree) -> list[Any]:
    return [
        name(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
        age(obj),
    ]


def default_class(listed: Iterable[Tree]) -> str:
    """The name of the class that new claims get: the newest of those that are marked, by name if they are of one age."""
    marked = [
        one for one in listed if any(inner(metadata(one), "annotations").get(note) == "true" for note in _DEFAULTS)
    ]
    newest = max((metadata(one).get("creationTimestamp", "") for one in marked), default="")
    return min((name(one) for one in marked if metadata(one).get("creationTimestamp", "") == newest), default="")


def _component_status(obj: Tree) -> list[Any]:
    found: list[Tree] = [condition for condition in items(obj, "conditions") if condition.get("type") == "Healthy"]
    healthy: Tree = found[0] if found else {}
    status = "Unknown" if not healthy else "Healthy" if healthy.get("status") == "True" else "Unhealthy"
    return [name(obj), status, healthy.get("message", ""), healthy.get("error", "")]


def _volume_attachment(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    volume = inner(spec, "source").get("persistentVolumeName") or ""
    attached = subtree(obj, "status").get("attached", False)
    return [name(obj), spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, age(obj)]


def _volume_attributes_class(obj: Tree) -> list[Any]:
    return [name(obj), obj.get("driverName", ""), age(obj)]


def _csi_node(obj: Tree) -> list[Any]:
    return [name(obj), len(items(subtree(obj, "spec"), "drivers")), age(obj)]


def _csi_driver(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    return [
        name(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join(one.get("audience", "") for one in items(spec, "tokenRequests")) or UNSET,
        spec.get("requiresRepublish", False),
        ",".join(items(spec, "volumeLifecycleModes")) or UNSET,
        age(obj),
    ]


def _resource_quota(obj: Tree) -> list[Any]:
    status = subtree(obj, "status")
    used, shown = inner(status, "used"), {True: list[str](), False: list[str]()}
    for resource, hard in sorted(inner(status, "hard").items()):
        amounts = "/".join(Quantity(amount).printed() for amount in (used.get(resource, "0"), hard))
        shown[resource.partition(".")[0] == "limits"].append(f"{resource}: {amounts}")
    return [name(obj), ", ".join(shown[False]), ", ".join(shown[True]), age(obj)]


def _ingress(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    rules = items(spec, "rules")
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    # As the engine counts: everything after the third host, including rules without hosts.
    shown = _shown(hosts[:_SHOWN_MAX], len(rules) if len(hosts) > _SHOWN_MAX else 0)
    given = {
        one.get("ip") or one.get("hostname", "") for one in items(subtree(obj, "status", "loadBalancer"), "ingress")
    }
    return [
        name(obj),
        spec.get("ingressClassName") or NOTHING,
        shown or "*",
        ",".join(sorted(given - {""})),
        "80, 443" if items(spec, "tls") else "80",
        age(obj),
    ]


def _ingress_class(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    shown, given = NOTHING, spec.get("parameters")
    if given is not None:
        group = f".{given['apiGroup']}" if given.get("apiGroup") is not None else ""
        shown = f"{given.get('kind', '')}{group}/{given.get('name', '')}"
    return [name(obj), spec.get("controller", ""), shown, age(obj)]


def _network_policy(obj: Tree) -> list[Any]:
    return [name(obj), selector(subtree(obj, "spec", "podSelector")), age(obj)]


def _endpoints(obj: Tree) -> list[Any]:
    subsets = items(obj, "subsets")
    reached: list[str] = []
    for subset in subsets:
        addresses = [one.get("ip", "") for one in items(subset, "addresses")]
        ports = items(subset, "ports")
        places = [join_host_port(address, port.get("port", 0)) for port in ports for address in addresses]
        reached += places if ports else addresses
    return [name(obj), _shown(reached[:_SHOWN_MAX], len(reached)) if subsets else NOTHING, age(obj)]


def _endpoint_slice(obj: Tree) -> list[Any]:
    ports = [str(one.get("port") or one.get("name", "*")) for one in items(obj, "ports")]
    addresses = [address for one in items(obj, "endpoints") for address in items(one, "addresses")]
    shown = (_shown(found[:_SHOWN_MAX], len(found)) or UNSET for found in (ports, addresses))
    return [name(obj), obj.get("addressType", ""), *shown, age(obj)]


def _shown(shown: list[str], count: int) -> str:
    """The shown items, with the number of the others."""
    text = ",".join(shown)
    return f"{text} + {count - len(shown)} more..." if count > len(shown) else text


def _ip_address(obj: Tree) -> list[Any]:
    parent = subtree(obj, "spec", "parentRef")
    parts = [parent.get(part, "") for part in ("group", "resource", "namespace", "name")]
    return [name(obj), "/".join(part for part in parts if part) or NOTHING]


def _service_cidr(obj: Tree) -> list[Any]:
    return [name(obj), ",".join(items(subtree(obj, "spec"), "cidrs")), age(obj)]


def _certificate_signing_request(obj: Tree) -> list[Any]:
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    types = {one.get("type") for one in items(status, "conditions")}
    condition = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        condition += ",Failed"
    if status.get("certificate"):
        condition += ",Issued"
    seconds = spec.get("expirationSeconds")
    lasting = NOTHING if seconds is None else human(timedelta(seconds=seconds))
    return [name(obj), age(obj), spec.get("signerName") or NOTHING, spec.get("username", ""), lasting, condition]


def _cluster_trust_bundle(obj: Tree) -> list[Any]:
    return [name(obj), subtree(obj, "spec").get("signerName") or NOTHING]


def _pod_certificate_request(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    types = [one.get("type") for one in items(subtree(obj, "status"), "conditions")]
    decided = [one for one in types if one in {"Issued", "Denied", "Failed"}]
    shown = (spec.get(one, "") for one in ("podName", "serviceAccountName", "nodeName", "signerName"))
    state = decided[-1] if decided else "Pending"
    return [name(obj), *shown, state, pairs(inner(spec, "unverifiedUserAnnotations"))]


def _storage_version_migration(obj: Tree) -> list[Any]:
    resource = subtree(obj, "spec", "resource")
    wanted = ".".join(filter(None, (resource.get("resource", ""), resource.get("group", ""))))
    found = [one.get("type") for one in items(subtree(obj, "status"), "conditions") if one.get("status") == "True"]
    states = [one for one in found if one in {"Running", "Failed", "Succeeded"}]
    return [name(obj), wanted, states[-1] if states else "Unknown"]


def _device_taint_rule(obj: Tree) -> list[Any]:
    taint = subtree(obj, "spec", "taint")
    shown = (taint.get(one, "") for one in ("key", "value", "effect"))
    return [name(obj), *shown, since(taint.get("timeAdded")), age(obj)]


def _api_service(obj: Tree) -> list[Any]:
    service = inner(subtree(obj, "spec"), "service")
    conditions = items(subtree(obj, "status"), "conditions")
    available = next((one for one in conditions if one.get("type") == "Available"), {"status": "Unknown"})
    text = (
        available["status"]
        if available["status"] in {"True", "Unknown"}
        else "{status} ({reason})".format_map(available)
    )
    where = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    return [name(obj), where, text, age(obj)]


def _flow_schema(obj: Tree) -> list[Any]:
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    dangling = next((one["status"] for one in items(status, "conditions") if one.get("type") == "Dangling"), "?")
    return [
        name(obj),
        inner(spec, "priorityLevelConfiguration").get("name", ""),
        spec.get("matchingPrecedence", 0),
        inner(spec, "distinguisherMethod").get("type") or NOTHING,
        age(obj),
        dangling,
    ]


def _priority_level(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    limited, queuing = inner(spec, "limited"), subtree(spec, "limited", "limitResponse", "queuing")
    shares = (limited or inner(spec, "exempt")).get("nominalConcurrencyShares", NOTHING)
    bounds = (queuing.get(field, NOTHING) for field in ("queues", "handSize", "queueLengthLimit"))
    return [name(obj), spec.get("type", ""), shares, *bounds, age(obj)]


def _resource_claim(obj: Tree) -> list[Any]:
    status, gone = subtree(obj, "status"), "deletionTimestamp" in metadata(obj)
    states = ["deleted"] if gone else []
    if "allocation" not in status:
        states += [] if gone else ["pending"]
    else:
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    return [name(obj), ",".join(states), age(obj)]


def _resource_slice(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    return [
        name(obj),
        spec.get("nodeName") or UNSET,
        spec.get("driver", ""),
        inner(spec, "pool").get("name", ""),
        age(obj),
    ]


def _autoscaler(obj: Tree) -> list[Any]:
    obj = to_v2(obj)
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    target = inner(spec, "scaleTargetRef")
    wanted, present = items(spec, "metrics"), items(status, "currentMetrics")
    return [
        name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(zip_longest(wanted, present[: len(wanted)])) or NOTHING,
        str(spec.get("minReplicas", UNSET)),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj),
    ]


def _metrics(metrics: Iterable[tuple[Tree, Tree | None]]) -> str:
    texts = [_metric(wanted, present or {}) for wanted, present in metrics]
    shown = ", ".join(texts[:_METRICS_MAX])
    return f"{shown} + {len(texts) - _METRICS_MAX} more..." if len(texts) > _METRICS_MAX else shown


def _metric(wanted: Tree, present: Tree) -> str:
    kind: str = wanted.get("type", "")
    source = kind[:1].lower() + kind[1:]
    if source not in {"external", "pods", "object", "resource", "containerResource"}:
        return "<unknown type>"
    asked, target, current = (
        inner(wanted, source),
        subtree(wanted, source, "target"),
        subtree(present, source, "current"),
    )
    if source.lower().endswith("resource"):
        about = f"{asked.get('name', '')}: "
        if "averageValue" not in target:
            goal, now = (
                f"{of['averageUtilization']}%" if "averageUtilization" in of else "" for of in (target, current)
            )
            return f"{about}{now or UNKNOWN}/{goal or '<auto>'}"
        return about + _amounts(current, target, "averageValue")
    if source == "pods":
        return _amounts(current, target, "averageValue")
    if "averageValue" in target:
        return f"{_amounts(current, target, 'averageValue')} (avg)"
    return _amounts(current, target, "value")


def _amounts(current: Tree, target: Tree, field: str) -> str:
    shown = (Quantity(of[field]).printed() if field in of else UNKNOWN for of in (current, target))
    return "/".join(shown)


#: The function that computes the cells of a kind.
def _definition(obj: Tree) -> list[Any]:
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    served = [one for one in items(spec, "versions") if one.get("served")]
    versions = sorted(f"{one['name']}(storage)" if one.get("storage") else one["name"] for one in served)
    names = inner(spec, "names")
    conditions = items(status, "conditions")
    return [
        name(obj),
        spec.get("scope", ""),
        ",".join(versions),
        metadata(obj).get("creationTimestamp", ""),
        spec.get("group", ""),
        names.get("kind", ""),
        ",".join(items(names, "shortNames")),
        any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions),
    ]


ROWS: Mapping[str, Callable[[Tree], list[Any]]] = {
    "CertificateSigningRequest": _certificate_signing_request,
    "ClusterTrustBundle": _cluster_trust_bundle,
    "ComponentStatus": _component_status,
    "CSIDriver": _csi_driver,
    "CSINode": _csi_node,
    "CustomResourceDefinition": _definition,
    "DeviceTaintRule": _device_taint_rule,
    "Endpoints": _endpoints,
    "EndpointSlice": _endpoint_slice,
    "APIService": _api_service,
    "FlowSchema": _flow_schema,
    "HorizontalPodAutoscaler": _autoscaler,
    "Ingress": _ingress,
    "IngressClass": _ingress_class,
    "IPAddress": _ip_address,
    "NetworkPolicy": _network_policy,
    "Node": _node,
    "PersistentVolume": _persistent_volume,
    "PodCertificateRequest": _pod_certificate_request,
    "PriorityLevelConfiguration": _priority_level,
    "ResourceClaim": _resource_claim,
    "ResourceQuota": _resource_quota,
    "ResourceSlice": _resource_slice,
    "ServiceCIDR": _service_cidr,
    "StorageClass": _storage_class,
    "StorageVersionMigration": _storage_version_migration,
    "VolumeAttachment": _volume_attachment,
    "VolumeAttributesClass": _volume_attributes_class,
}
