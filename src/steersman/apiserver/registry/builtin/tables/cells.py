"""The cells of tables, as ``kubectl get`` shows them: one function per kind computes all cells of an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from steersman.aio import utc_now
from steersman.apiserver.registry.ages import human, since
from steersman.apiserver.registry.builtin.event import to_core
from steersman.apiserver.registry.builtin.types.labels import compiled
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree
from steersman.objects import Quantity, parse_time

NOTHING = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def age(obj: Tree) -> str:
    """How old an object is."""
    return since(metadata(obj).get("creationTimestamp"))


def name(obj: Tree) -> str:
    """The name of an object."""
    return metadata(obj).get("name", "")


def pairs(labels: Mapping[str, str] | None) -> str:
    """Labels on one line."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NOTHING


def selector(given: Mapping[str, Any] | None, *, empty: str = NOTHING) -> str:
    """A label selector on one line."""
    found = compiled(given) if given is not None else None
    if given is None:
        return empty
    return "<error>" if found is None else ",".join(sorted(map(str, found.requirements), key=_key)) or empty


def _key(requirement: str) -> str:
    return requirement.lstrip("!").replace("=", " ").split(" ")[0]


def _containers(spec: Mapping[str, Any]) -> list[str]:
    given = items(spec, "containers")
    return [",".join(one.get(field, "") for one in given) for field in ("name", "image")]


def _template(obj: Tree) -> Tree:
    return subtree(obj, "spec", "template", "spec")


def _config_map(obj: Tree) -> list[Any]:
    return [name(obj), len(items(obj, "data")) + len(items(obj, "binaryData")), age(obj)]


def _secret(obj: Tree) -> list[Any]:
    return [name(obj), obj.get("type", ""), len(items(obj, "data")), age(obj)]


def _named(obj: Tree) -> list[Any]:
    return [name(obj), age(obj)]


def _created(obj: Tree) -> list[Any]:
    return [name(obj), metadata(obj).get("creationTimestamp")]


def _namespace(obj: Tree) -> list[Any]:
    return [name(obj), subtree(obj, "status").get("phase", ""), age(obj)]


def _lease(obj: Tree) -> list[Any]:
    return [name(obj), subtree(obj, "spec").get("holderIdentity") or "", age(obj)]


def _event(obj: Tree) -> list[Any]:
    event = to_core(obj)
    first = since(event.get("firstTimestamp") or event.get("eventTime"))
    last = since(event["lastTimestamp"]) if event.get("lastTimestamp") else first
    count, series = event.get("count", 0) or 1, event.get("series")
    if series is not None:
        last, count = since(series.get("lastObservedTime")), series.get("count", 0)
    about, source = subtree(event, "involvedObject"), subtree(event, "source")
    kind, named_ = about.get("kind", "").lower(), about.get("name", "")
    component = source.get("component") or event.get("reportingComponent", "")
    instance = source.get("host") or event.get("reportingInstance", "")
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{named_}" if named_ else kind,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        event.get("message", "").strip(),
        first,
        count,
        name(obj),
    ]


def access_modes(holder: Tree) -> str:
    """The access modes of a volume."""
    held = items(holder, "accessModes")
    return ",".join(short for mode, short in _MODES.items() if mode in held)


def _persistent_volume_claim(obj: Tree) -> list[Any]:
    spec, status, meta = subtree(obj, "spec"), subtree(obj, "status"), metadata(obj)
    bound = bool(spec.get("volumeName"))
    class_ = inner(meta, "annotations").get(
        "volume.beta.kubernetes.io/storage-class", spec.get("storageClassName") or ""
    )
    return [
        name(obj),
        "Terminating" if "deletionTimestamp" in meta else status.get("phase", ""),
        spec.get("volumeName", ""),
        Quantity(inner(status, "capacity").get("storage", "0")).printed() if bound else "",
        access_modes(status) if bound else "",
        class_,
        spec.get("volumeAttributesClassName") or UNSET,
        age(obj),
        spec.get("volumeMode") or UNSET,
    ]


def _service(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    ports = ",".join(
        f"{one['port']}:{one['nodePort']}/{one.get('protocol', '')}"
        if one.get("nodePort", 0) > 0
        else f"{one.get('port', 0)}/{one.get('protocol', '')}"
        for one in items(spec, "ports")
    )
    inside = (spec.get("clusterIPs") or [NOTHING])[0]
    return [
        name(obj),
        spec.get("type", ""),
        inside,
        _outside(obj, spec),
        ports or NOTHING,
        age(obj),
        pairs(spec.get("selector")),
    ]


def _outside(obj: Tree, spec: Tree) -> str:
    given = items(spec, "externalIPs")
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NOTHING
        case "LoadBalancer":
            listed = items(subtree(obj, "status", "loadBalancer"), "ingress")
            balanced = sorted({one.get("ip") or one.get("hostname", "") for one in listed} - {""})
            return ",".join([*balanced, *given]) or "<pending>"
        case "ExternalName":
            return spec.get("externalName", "")
        case _:
            return UNKNOWN


def _deployment(obj: Tree) -> list[Any]:
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    return [
        name(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj),
        *_containers(_template(obj)),
        selector(spec.get("selector"), empty=""),
    ]


def _replica_set(obj: Tree) -> list[Any]:
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    given = spec.get("selector")
    shown = pairs(given) if obj.get("kind") == "ReplicationController" else selector(given)
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name(obj), *counts, age(obj), *_containers(_template(obj)), shown]


def _stateful_set(obj: Tree) -> list[Any]:
    ready = f"{subtree(obj, 'status').get('readyReplicas', 0)}/{subtree(obj, 'spec').get('replicas', 0)}"
    return [name(obj), ready, age(obj), *_containers(_template(obj))]


def _daemon_set(obj: Tree) -> list[Any]:
    status = subtree(obj, "status")
    fields = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name(obj),
        *(status.get(field, 0) for field in fields),
        pairs(_template(obj).get("nodeSelector")),
        age(obj),
        *_containers(_template(obj)),
        selector(subtree(obj, "spec").get("selector")),
    ]


def _job(obj: Tree) -> list[Any]:
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    done, wanted, at_once = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism") or 0
    completions = f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {at_once}" if at_once > 1 else f"{done}/1"
    return [
        name(obj),
        _job_status(obj, status),
        completions,
        _duration(status),
        age(obj),
        *_containers(_template(obj)),
        selector(spec.get("selector")),
    ]


def _duration(status: Tree) -> str:
    begun = status.get("startTime")
    if not begun:
        return ""
    ended: datetime = parse_time(status["completionTime"]) if status.get("completionTime") else utc_now()
    return human(ended - parse_time(begun))


def _job_status(obj: Tree, status: Tree) -> str:
    found = {one.get("type"): one.get("status") == "True" for one in reversed(items(status, "conditions"))}
    for type_ in ("Complete", "Failed"):
        if found.get(type_):
            return type_
    if "deletionTimestamp" in metadata(obj):
        return "Terminating"
    return next(
        (type_ for type_ in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if found.get(type_)), "Running"
    )


def _cron_job(obj: Tree) -> list[Any]:
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    template = subtree(spec, "jobTemplate", "spec")
    last = status.get("lastScheduleTime")
    return [
        name(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NOTHING,
        str(spec.get("suspend", UNSET)),
        len(items(status, "active")),
        since(last) if last else NOTHING,
        age(obj),
        *_containers(subtree(template, "template", "spec")),
        selector(template.get("selector")),
    ]


def _pod_disruption_budget(obj: Tree) -> list[Any]:
    spec = subtree(obj, "spec")
    bounds = [str(spec.get(field, "N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [name(obj), *bounds, subtree(obj, "status").get("disruptionsAllowed", 0), age(obj)]


def _binding(obj: Tree) -> list[Any]:
    role = subtree(obj, "roleRef")
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for one in items(obj, "subjects"):
        shown = one.get("name", "")
        if one.get("kind") == "ServiceAccount":
            shown = f"{one.get('namespace', '')}/{shown}"
        subjects.setdefault(one.get("kind", ""), []).append(shown)
    shown = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [name(obj), f"{role.get('kind', '')}/{role.get('name', '')}", age(obj), *shown]


def _priority_class(obj: Tree) -> list[Any]:
    policy = obj.get("preemptionPolicy", "")
    return [name(obj), obj.get("value", 0), obj.get("globalDefault", False), age(obj), policy]


def _runtime_class(obj: Tree) -> list[Any]:
    return [name(obj), obj.get("handler", ""), age(obj)]


def _pod_template(obj: Tree) -> list[Any]:
    template = subtree(obj, "template")
    return [name(obj), *_containers(subtree(template, "spec")), pairs(subtree(template, "metadata").get("labels"))]


def _controller_revision(obj: Tree) -> list[Any]:
    owner = next((one for one in items(metadata(obj), "ownerReferences") if one.get("controller")), None)
    shown = NOTHING
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = owner.get("kind", "").lower()
        shown = f"{kind}.{group}/{owner.get('name', '')}" if group else f"{kind}/{owner.get('name', '')}"
    return [name(obj), shown, obj.get("revision", 0), age(obj)]


#: The function that computes the cells of a kind.
ROWS: Mapping[str, Callable[[Tree], list[Any]]] = {
    "ClusterRole": _created,
    "ClusterRoleBinding": _binding,
    "ConfigMap": _config_map,
    "ControllerRevision": _controller_revision,
    "CronJob": _cron_job,
    "CSIStorageCapacity": _created,
    "CustomResourceDefinition": _created,
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "DeviceClass": _named,
    "Event": _event,
    "Job": _job,
    "Lease": _lease,
    "LimitRange": _created,
    "Namespace": _namespace,
    "PersistentVolumeClaim": _persistent_volume_claim,
    "PodDisruptionBudget": _pod_disruption_budget,
    "PodTemplate": _pod_template,
    "PriorityClass": _priority_class,
    "ReplicaSet": _replica_set,
    "ReplicationController": _replica_set,
    "ResourceClaimTemplate": _named,
    "Role": _created,
    "RoleBinding": _binding,
    "RuntimeClass": _runtime_class,
    "Secret": _secret,
    "Service": _service,
    "ServiceAccount": _named,
    "StatefulSet": _stateful_set,
}
