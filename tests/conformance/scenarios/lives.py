"""The whole life of one object of every kind: create, read, list, change, watch, delete."""

from __future__ import annotations

from conformance.bodies import CLUSTER_KINDS, CM, KINDS, configmap, merged, named
from conformance.scenario import Scenario, Step, delete, frames, get, patch, post, put, scenario, watch

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


#: Kinds whose deletion is first marked, even without grace.
_MARKED_FIRST = {"pod"}


def _life(path: str, body: dict, name: str, last_frames: int) -> list[Step]:
    # Nothing changes; but the engine changes the managedFields of a claim, whose finalizer it added itself.
    same = [] if body["kind"] == "PersistentVolumeClaim" else [patch(f"{path}/{name}", {"metadata": {}})]
    one = f"{path}/{name}"
    picked = {"fieldSelector": f"metadata.name={name}"}
    return [
        watch("w", path, **picked),
        get(one),
        post(path, body, as_="a"),
        frames("w", 1),
        post(path, body),
        get(one),
        get(path, **picked),
        *same,
        # some kinds take no update without a version
        put(one, merged(body, {"metadata": {"labels": {"color": "red"}}}), dryRun="All"),
        get(one, as_="b"),
        put(one, merged(body, {"metadata": {"labels": {"color": "red"}, "resourceVersion": "$rv:b"}})),
        frames("w", 1),
        patch(one, {"metadata": {"labels": {"color": "blue"}}}),
        patch(one, [{"op": "add", "path": "/metadata/annotations", "value": {"note": "text"}}], "json"),
        patch(one, {"metadata": {"annotations": {"more": "text"}}}, "strategic"),
        frames("w", 3),
        # what was read long ago
        put(one, merged(body, {"metadata": {"resourceVersion": "$rv:a"}})),
        put(one, merged(body, {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}})),
        delete(one, {"preconditions": {"resourceVersion": "$rv:a"}}),
        delete(one, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}),
        frames("w", last_frames),
        get(one),
        delete(one),
        # a namespace is still there, in its last state
        put(f"{one}x", merged(body, {"metadata": {"name": f"{name}x"}})) if name == "a" else get(one),
        patch(one, {"metadata": {"labels": {"color": "green"}}}, dryRun="All"),
    ]


def _views(path: str, body: dict, name: str, last_frames: int) -> list[Step]:
    one = f"{path}/{name}"
    picked = {"fieldSelector": f"metadata.name={name}"}
    return [
        post(path, body, accept=TABLE),
        get(one, accept=TABLE),
        get(path, accept=TABLE, **picked),
        get(path, accept=TABLE, includeObject="Object", **picked),
        get(path, accept=TABLE, includeObject="None", **picked),
        get(one, accept=PARTIAL),
        get(path, accept=PARTIAL_LIST, **picked),
        watch("t", path, accept=TABLE, resourceVersion="0", **picked),
        watch("p", path, accept=PARTIAL, resourceVersion="0", **picked),
        frames("t", 1),
        frames("p", 1),
        patch(one, {"metadata": {"labels": {"seen": "yes"}}}),
        frames("t", 1),
        frames("p", 1),
        delete(one, {"gracePeriodSeconds": 0}, accept=PARTIAL),
        frames("t", last_frames),
        frames("p", last_frames),
    ]


def _trials(path: str, body: dict, name: str) -> list[Step]:
    """What is tried without being kept."""
    one = f"{path}/{name}"
    return [
        post(path, body, dryRun="All"),
        get(one),
        post(path, body),
        put(one, merged(body, {"metadata": {"labels": {"tried": "yes"}}}), dryRun="All"),
        patch(one, {"metadata": {"labels": {"tried": "yes"}}}, dryRun="All"),
        delete(one, dryRun="All"),
        get(one),
        post(path, merged(body, {"metadata": {"name": "b-{u}"}}), dryRun="Some"),
        patch(one, {"metadata": {"labels": {"tried": "yes"}}}, dryRun=""),
        delete(one, {"dryRun": ["All"], "gracePeriodSeconds": 0}),
        delete(one, {"gracePeriodSeconds": 0}),
    ]


def _strictness(path: str, body: dict, name: str) -> list[Step]:
    """Fields that the kind does not have, and values of the wrong type."""
    one = f"{path}/{name}"
    odd = merged(body, {"color": "red", "metadata": {"shape": "round"}})
    return [
        post(path, odd, fieldValidation="Strict"),
        post(path, odd, fieldValidation="Never"),
        post(path, odd, dryRun="All", fieldValidation="Ignore"),
        post(path, odd, dryRun="All", fieldValidation="Warn"),
        post(path, odd),
        patch(one, {"color": "blue"}, fieldValidation="Strict"),
        patch(one, {"color": "blue"}),
        put(one, odd, fieldValidation="Strict"),
        post(path, merged(body, {"metadata": {"labels": "none"}})),
        post(path, merged(body, {"kind": "Gadget"})),
        post(path, merged(body, {"apiVersion": "example.com/v7"})),
        post(path, merged(body, {"kind": None, "apiVersion": None, "metadata": {"name": "bare-{u}"}}), dryRun="All"),
        delete(one, {"gracePeriodSeconds": 0}),
    ]


def _all() -> list[Scenario]:
    made: list[Scenario] = []
    for kind, (path, body) in {**KINDS, **CLUSTER_KINDS}.items():
        name = body["metadata"]["name"]
        last = 2 if kind in _MARKED_FIRST else 1
        made += [
            scenario(f"life-of-a-{kind}", "Kinds, Status errors, No-op writes, Update", _life(path, body, name, last)),
            scenario(f"views-of-a-{kind}", "Table, PartialObjectMetadata", _views(path, body, name, last)),
            scenario(f"trials-of-a-{kind}", "dryRun", _trials(path, body, name)),
            scenario(f"strictness-of-a-{kind}", "fieldValidation", _strictness(path, body, name)),
        ]
    return made


SCENARIOS = [
    *_all(),
    scenario(
        "event-in-both-groups",
        "Kinds, Storage",
        post("/api/v1/namespaces/{ns}/events", named(
            "v1", "Event", "a", involvedObject={"kind": "Pod", "namespace": "{ns}", "name": "web"}, reason="Started",
            message="it started", type="Normal", count=3, firstTimestamp="2024-01-02T03:04:05Z",
            lastTimestamp="2024-01-02T03:04:06Z", source={"component": "tester", "host": "here"},
        )),
        get("/apis/events.k8s.io/v1/namespaces/{ns}/events/a"),
        get("/apis/events.k8s.io/v1/namespaces/{ns}/events"),
        get("/api/v1/namespaces/{ns}/events", fieldSelector="involvedObject.name=web"),
        get("/apis/events.k8s.io/v1/namespaces/{ns}/events", fieldSelector="regarding.name=web"),
        delete("/apis/events.k8s.io/v1/namespaces/{ns}/events/a"),
        get("/api/v1/namespaces/{ns}/events/a"),
    ),
    scenario(
        "one-name-in-two-namespaces",
        "Storage",
        post(CM, configmap("a", {"in": "one"})),
        post(CM.replace("{ns}", "{ns2}"), configmap("a", {"in": "two"})),
        get(f"{CM}/a"),
        get(f"{CM}/a".replace("{ns}", "{ns2}")),
        delete(f"{CM}/a"),
        get(f"{CM}/a".replace("{ns}", "{ns2}")),
    ),
]  # fmt: skip
