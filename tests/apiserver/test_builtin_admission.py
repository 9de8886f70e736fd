"""Pods get what the classes that they name say, as on the engine."""

import asyncio
import json

import pytest

from samples.embedded import Raw
from steersman import Client
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer
from steersman.apiserver.admission.builtin_plugins import BUILTIN_PLUGINS
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
    async with ApiServer() as server:
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


def namespace(**labels):
    named = {f"pod-security.kubernetes.io/{mode}": level for mode, level in labels.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "guarded", "labels": named}}


async def test_violations_of_the_audited_level_are_in_the_audit_log():
    """They are what an administrator looks at before enforcing a level."""
    events = []
    async with ApiServer(audit=events.append) as server:
        raw = Raw(server.handler)
        await raw.post("/api/v1/namespaces", namespace(enforce="privileged", audit="baseline"))
        assert (await raw.post("/api/v1/namespaces/guarded/pods", pod({"hostPID": True}))).code == 201
    told = {key: value for key, value in events[-1]["annotations"].items() if key.startswith("pod-security")}
    assert told == {
        "pod-security.kubernetes.io/enforce-policy": "privileged:latest",
        "pod-security.kubernetes.io/audit-violations": (
            'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)'
        ),
    }


async def test_a_disabled_plugin_is_not_called():
    async with ApiServer(disable_admission_plugins=["PodSecurity", "Priority", "MutatingAdmissionWebhook"]) as server:
        raw = Raw(server.handler)
        await raw.post("/api/v1/namespaces", namespace(enforce="baseline"))
        made = await raw.post("/api/v1/namespaces/guarded/pods", pod({"hostPID": True, "priorityClassName": "missing"}))
    assert (made.code, made.body["spec"].get("priority")) == (201, None)


async def test_many_limits_do_not_block_other_clients(ours):
    """A long LimitRange is compared with a Pod's containers in a worker thread."""
    ratios = {f"example.com/resource-number-{number}": "2" for number in range(1500)}
    limits = {"limits": [{"type": "Container", "maxLimitRequestRatio": ratios}]}
    made = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "most"}, "spec": limits}
    assert (await ours.post("/api/v1/namespaces/default/limitranges", made)).code == 201
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    containers = [{"name": f"c{number}", "image": "x"} for number in range(30)]
    async with Supervisor() as tasks:
        tasks.start(count(), name="other clients")
        answer = await ours.post(PODS, pod({"containers": containers}))
        tasks.cancel()
    assert (answer.code, turns > 20) == (403, True)


def test_a_plugin_is_made_for_every_resource_that_it_acts_on():
    """A server without these resources never imports the plugin, so a missing one would turn the plugin off."""
    for name, builtin in BUILTIN_PLUGINS.items():
        plugin = builtin.make()
        acts_on = {("", "namespaces")} if plugin.resources is None else plugin.resources
        assert set(builtin.resources.split()) == {resource for _, resource in acts_on}, name
