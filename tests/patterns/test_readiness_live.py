"""Readiness of objects that Kubernetes' own controllers work on: what they go through, and what is said when they are stuck."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from controller_manager.servers import Server, engine_server
from controller_manager.states import path_of

from samples.raw_api import MERGE
from steersman import Client
from steersman.objects import Kind, Unstructured
from steersman.patterns.readiness import Readiness, readiness_of

SECONDS = 40.0
NAMESPACE = "readiness"


@pytest.fixture(scope="module")
async def server() -> AsyncGenerator[Server]:
    """The engine with its controller manager and a node's worth of Pods."""
    async with engine_server() as server:
        await server.api.made("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield server


def template(**annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
    }


def workload(name: str, *, replicas: int = 2, outcome: str = "", **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web", "of": name}}
    pods = template(outcome=outcome)
    pods["metadata"]["labels"]["of"] = name
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": pods, **spec},
    }


async def create(server: Server, resource: str, body: dict[str, Any]) -> Unstructured:
    return Unstructured(await server.api.made("POST", path_of(resource, NAMESPACE), body))


async def change(server: Server, target: str, body: dict[str, Any]) -> Unstructured:
    resource, _, name = target.partition("/")
    changed = await server.api.made("PATCH", path_of(resource, NAMESPACE, name), body, content_type=MERGE)
    return Unstructured(changed)


async def story(server: Server, target: str, first: Unstructured) -> list[Readiness]:
    """Everything that is said of an object until it is ready or has failed, without what is said twice in a row."""
    resource, _, name = target.partition("/")
    said = [readiness_of(first)]
    async with asyncio.timeout(SECONDS):
        while not (said[-1].ready or said[-1].failed):
            seen = readiness_of(Unstructured(await server.api.made("GET", path_of(resource, NAMESPACE, name))))
            if seen != said[-1]:
                said.append(seen)
            await asyncio.sleep(0.02)
    return said


async def test_a_rollout_is_not_ready_until_it_is_done(server: Server) -> None:
    web = await create(server, "deployments", workload("web"))
    said = await story(server, "deployments/web", web)
    assert said[0].message == "its controller has not looked at it yet"
    assert said[-1] == Readiness(ready=True, reason="Ready", message="2 of 2 replicas are ready")

    # a change: the old replicas are all ready, and that must not count
    changed = {"spec": {"template": {"metadata": {"annotations": {"of": "the second rollout"}}}}}
    said = await story(server, "deployments/web", await change(server, "deployments/web", changed))
    assert said[0].message.startswith("its controller has not seen the last change yet")
    assert said[-1].ready

    said = await story(server, "deployments/web", await change(server, "deployments/web", {"spec": {"replicas": 0}}))
    assert not said[0].ready
    assert said[-1].message == "no replicas are requested"


async def test_a_rollout_that_is_stuck_says_why(server: Server) -> None:
    stuck = await create(server, "deployments", workload("stuck", outcome="waits", progressDeadlineSeconds=2))
    said = await story(server, "deployments/stuck", stuck)
    assert "0 of 2 replicas are ready" in [each.message for each in said]
    assert said[-1].failed
    assert said[-1].message.startswith('the rollout is stuck: ProgressDeadlineExceeded: ReplicaSet "stuck-')

    found = await server.api.made("GET", f"{path_of('pods', NAMESPACE)}?labelSelector=of%3Dstuck")
    assert readiness_of(Unstructured({**found["items"][0], "kind": "Pod", "apiVersion": "v1"})) == Readiness(
        ready=False, reason="ImagePullBackOff", message="container web cannot start: ImagePullBackOff"
    )


async def test_other_workloads(server: Server) -> None:
    async def stateful_set() -> None:
        body = workload("db", serviceName="db", podManagementPolicy="Parallel")
        said = await story(server, "statefulsets/db", await create(server, "statefulsets", body))
        assert said[-1].message == "2 of 2 replicas are ready"
        body = {"spec": {"template": {"metadata": {"annotations": {"of": "the second rollout"}}}}}
        said = await story(server, "statefulsets/db", await change(server, "statefulsets/db", body))
        assert [each.reason for each in (said[0], said[-1])] == ["NotObserved", "Ready"]
        assert {each.reason for each in said} & {"Updating", "Scaling", "NotAvailable"}

    async def job(name: str, outcome: str) -> Readiness:
        pods = template(outcome=outcome)
        pods["spec"]["restartPolicy"] = "Never"
        body = {"metadata": {"name": name}, "spec": {"template": pods, "backoffLimit": 0}}
        said = await story(server, f"jobs/{name}", await create(server, "jobs", body))
        assert said[0].message == "none of its Pods has started yet"
        return said[-1]

    async def budget() -> None:
        body = {"metadata": {"name": "web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"of": "none"}}}}
        said = await story(server, "poddisruptionbudgets/web", await create(server, "poddisruptionbudgets", body))
        assert [each.reason for each in said] == ["NotObserved", "Ready"]

    _, _, done, failed = await asyncio.gather(
        stateful_set(), budget(), job("works", "succeeds"), job("breaks", "fails")
    )
    assert done.ready
    assert failed.failed
    assert failed.message.startswith("it failed: BackoffLimitExceeded: Job has reached the specified backoff limit")


async def test_what_a_server_holds_at_birth(server: Server) -> None:
    """What belongs to a fresh cluster is ready: no kind of it waits for a condition that is never written."""
    async with Client.connect(kubeconfig=server.kubeconfig, field_manager="tests") as client:
        for kind in ("Namespace", "Service", "ServiceAccount", "ConfigMap", "Endpoints"):
            async for each in client.iterate(Kind("v1", kind)):
                assert readiness_of(each).ready, each
        async for each in client.iterate(Kind("apiregistration.k8s.io/v1", "APIService")):
            assert readiness_of(each).ready, each
