"""All that a namespace holds, as two servers share it.

Guarantees
- A uid becomes the kind and name of its object, a generated name its prefix, a time or address a word for it: whether an
  owner reference, a selector or a message means the right object stays visible.
- Hashes of templates and revisions stay: controllers compute them from what the server made of an object. Between
  controllers that compute them differently, the hash of a template becomes the image that the template names.
- Objects, conditions, endpoints and owners stand in an order of their own, not in that in which they came.
"""

from __future__ import annotations

import json
import re
from typing import Any

from samples.raw_api import RawApi

_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_POD_ADDRESS = re.compile(r"\b10\.(12[89]|1[3-9]\d|2\d\d)\.\d{1,3}\.\d{1,3}\b")
_SERVICE_ADDRESS = re.compile(r"\b10\.0\.0\.\d{1,3}\b")
#: Whether a Deployment calls it its own success or that of its ReplicaSet depends on what its controller has seen yet.
_PROGRESSED = re.compile(r'^(?:ReplicaSet|Deployment) "\S+" has successfully progressed\.$')
_SCHEDULED = re.compile(r"-\d{8}\b")
#: In events, of objects that may be gone.
_SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")

#: What can be looked at in a namespace, by resource.
RESOURCES = {
    "leases": "/apis/coordination.k8s.io/v1",
    "ships": "/apis/fleet.example.com/v1",
    "configmaps": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "pods": "/api/v1",
    "replicationcontrollers": "/api/v1",
    "resourcequotas": "/api/v1",
    "serviceaccounts": "/api/v1",
    "services": "/api/v1",
    "controllerrevisions": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "cronjobs": "/apis/batch/v1",
    "jobs": "/apis/batch/v1",
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
}
#: How often these were written on the way is a matter of timing.
_UNCOUNTED = frozenset({"ReplicaSet", "EndpointSlice", "Job", "ReplicationController"})
#: Who owns the time of a condition here depends on whether a second passed between two writes.
_UNOWNED = frozenset({"PodDisruptionBudget"})
#: Whether a controller saw a Pod on a wrong Node before the Pod was gone is a matter of timing.
_PASSING = {"DaemonSet": "f:numberMisscheduled"}
#: Lists whose order says nothing, by the field that orders them.
_UNORDERED = {"conditions": "type", "endpoints": "targetRef", "ownerReferences": "uid", "managedFields": "fieldsV1"}


def path_of(resource: str, namespace: str, name: str = "") -> str:
    """The path of a resource, or of an object, in a namespace."""
    return f"{RESOURCES[resource]}/namespaces/{namespace}/{resource}" + (f"/{name}" if name else "")


async def state_of(
    api: RawApi, namespace: str, resources: tuple[str, ...], *, events: bool = False, hashes: bool = True
) -> list[Any]:
    """What is in a namespace, in an order of its own; ``events`` too, each sort once. ``hashes``: of templates, as they are."""
    objects: list[dict[str, Any]] = []
    for resource in resources:
        found = await api.made("GET", path_of(resource, namespace))
        kind = found["kind"].removesuffix("List")
        objects += [{"kind": kind, **each} for each in found["items"]]
    told = (await api.made("GET", f"/api/v1/namespaces/{namespace}/events"))["items"] if events else []
    shared = _Shared(namespace, objects, hashes=hashes)
    lines = [*sorted(map(shared.line, objects)), *sorted({shared.line(_event(each)) for each in told})]
    return [json.loads(line) for line in lines]


def _event(event: dict[str, Any]) -> dict[str, Any]:
    about = event["involvedObject"]
    return {
        "kind": "Event",
        "about": _SUFFIX.sub("-<suffix>", f"{about['kind']} {about['name']}"),
        "message": _SUFFIX.sub("-<suffix>", event.get("message", "")),
        **{name: event.get(name) for name in ("type", "reason")},
    }


#: Where a template's hash stands in an object, by kind.
_HASHES = {"ReplicaSet": "pod-template-hash", "ControllerRevision": "controller-revision-hash"}


def _is_hashed(tree: dict[str, Any]) -> bool:
    return _HASHES.get(tree["kind"], "") in tree["metadata"].get("labels", {})


def _hash(tree: dict[str, Any]) -> tuple[str, str]:
    spec = tree["data"]["spec"] if tree["kind"] == "ControllerRevision" else tree["spec"]
    image = spec["template"]["spec"]["containers"][0]["image"]
    return tree["metadata"]["labels"][_HASHES[tree["kind"]]], f"<hash of {image}>"


class _Shared:
    """Names for what no two servers share, from the objects themselves."""

    def __init__(self, namespace: str, objects: list[dict[str, Any]], *, hashes: bool) -> None:
        self._names = {namespace: "<namespace>"}
        self._hashes = {} if hashes else dict(map(_hash, filter(_is_hashed, objects)))
        self._uids: dict[str, str] = {}
        for each in objects:
            metadata = each["metadata"]
            # a Pod of a StatefulSet has both a prefix and a name of its own
            if "generateName" in metadata and _SUFFIX.search(metadata["name"]):
                self._names[metadata["name"]] = metadata["generateName"] + "<suffix>"
        longest = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(re.escape(name) for name in longest))
        for each in objects:
            metadata = each["metadata"]
            self._uids[metadata["uid"]] = f"<uid of {each['kind']} {self._text(metadata['name'])}>"

    def line(self, tree: dict[str, Any]) -> str:
        metadata = tree.get("metadata", {})
        for hidden in ("resourceVersion", "selfLink"):
            metadata.pop(hidden, None)
        if tree["kind"] in _UNOWNED:
            metadata.pop("managedFields", None)
        for entry in metadata.get("managedFields", ()):
            entry["fieldsV1"].get("f:status", {}).pop(_PASSING.get(tree["kind"]), None)
        if tree["kind"] in _UNCOUNTED and "generation" in metadata:
            generation = metadata.pop("generation")
            status = tree.get("status", {})
            if status.get("observedGeneration") == generation:
                status["observedGeneration"] = "<generation>"
        return json.dumps(self._walk(tree), sort_keys=True)

    def _walk(self, value: Any, name: str = "") -> Any:
        match value:
            case dict():
                return {self._text(key): self._walk(each, key) for key, each in value.items()}
            case list():
                found = [self._walk(each) for each in value]
                order = _UNORDERED.get(name)
                return (
                    found
                    if order is None
                    else sorted(found, key=lambda each: json.dumps(each.get(order), sort_keys=True))
                )
            case str():
                return self._text(value)
            case _:
                return value

    def _text(self, text: str) -> str:
        text = self._pattern.sub(lambda found: self._names[found[0]], text)
        for digest, name in self._hashes.items():
            text = text.replace(digest, name)
        text = _UID.sub(lambda found: self._uids.get(found[0], "<uid>"), text)
        text = _TIME.sub("<time>", text)
        text = _POD_ADDRESS.sub("<pod address>", text)
        text = _SERVICE_ADDRESS.sub("<service address>", text)
        text = _PROGRESSED.sub("successfully progressed", text)
        return _SCHEDULED.sub("-<minute>", text)
