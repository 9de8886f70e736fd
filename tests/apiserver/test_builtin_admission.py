"""Pods get what the classes that they name say, as on the engine."""

import json

import pytest

from samples.embedded import Raw
from steersman import Client
from steersman.apiserver import ApiServer
from steersman.apiserver.admission import PodClasses
from steersman.errors import ApiError

PODS = "/api/v1/namespaces/default/pods?dryRun=All"
CLASSES = (
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "admitted"}, "value": 7}
        | {"preemptionPolicy": "Never"},
    ),
    (
        "/apis/node.k8s.io/v1/runtimeclasses",
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "admitted"}, "handler": "h"}
        | {"overhead": {"podFixed": {"cpu": "10m"}}, "scheduling": {"nodeSelector": {"a": "b"}}},
    ),
)
SPECS = (
    {},
    {"priorityClassName": "admitted"},
    {"priorityClassName": "system-node-critical"},
    {"priorityClassName": "missing"},
    {"priority": 3},
    {"priorityClassName": "admitted", "priority": 8},
    {"preemptionPolicy": "Never"},
    {"runtimeClassName": "admitted"},
    {"runtimeClassName": "missing"},
    {"runtimeClassName": "admitted", "overhead": {"cpu": "1"}},
    {"runtimeClassName": "admitted", "nodeSelector": {"a": "c"}},
    {"overhead": {"cpu": "1"}},
)


def pod(spec):
    containers = [{"name": "c", "image": "x"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers} | spec}


@pytest.fixture
async def ours():
    async with ApiServer(admission=[PodClasses()]) as server:
        yield Raw(server.handler)


@pytest.fixture
async def theirs(engine):
    async with Client.connect(kubeconfig=engine.kubeconfig, field_manager="tests") as client:

        async def post(path, body):
            try:
                return json.loads(await client.request("POST", path, body=json.dumps(body).encode()))
            except ApiError as refused:
                return {"message": refused.status.message}

        yield post
        for path, body in CLASSES:
            await client.request("DELETE", f"{path}/{body['metadata']['name']}")


async def test_a_pod_gets_what_its_classes_say(theirs, ours):
    for path, body in CLASSES:
        await theirs(path, body)
        await ours.post(path, body)
    for spec in SPECS:
        engine, embedded = await theirs(PODS, pod(spec)), (await ours.post(PODS, pod(spec))).body
        assert embedded.get("spec") == engine.get("spec"), spec
        if "spec" not in engine:
            assert embedded["message"] == engine["message"]
