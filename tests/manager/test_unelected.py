"""A program without leader election says so in a cluster, unless it is on purpose."""

from __future__ import annotations

import asyncio
import logging

import pytest

from steersman import Client, ControlPlane, Done, LeaderElection, Manager
from steersman.aio import Supervisor
from steersman.kinds.core_v1 import ConfigMap

CLUSTER = "https://10.96.0.1:443"
WORDS = (
    "no leader election: while two Pods of this program run, as in a rollout, both act at once; write"
    ' Manager(leader=LeaderElection("ships")), or leader=None if that is intended'
)


@pytest.fixture
async def plane():
    async with ControlPlane() as plane:
        yield plane


@pytest.fixture
def pod(monkeypatch):
    """The variables that Kubernetes sets in every container."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")


async def warnings_of(plane, caplog, manager, server=CLUSTER):
    """What a manager warns of until its controller works."""

    async def reconcile(ctx, request):
        return Done()

    manager.controller(ConfigMap).run_with(reconcile)
    async with Client(plane.transport(), server=server, field_manager="ships") as client, Supervisor() as tasks:
        tasks.start(manager.run(client, signals=False), name="manager")
        async with asyncio.timeout(30):
            while not (manager.controllers and manager.controllers[0].working):  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.01)
        manager.stop()
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


async def test_in_a_pod_it_is_warned_of_once(plane, pod, caplog):
    assert await warnings_of(plane, caplog, Manager(name="ships")) == [WORDS]


@pytest.mark.parametrize("leader", [None, LeaderElection("ships", namespace="default")], ids=["on purpose", "elected"])
async def test_a_decision_is_respected(plane, pod, caplog, leader):
    assert await warnings_of(plane, caplog, Manager(name="ships", leader=leader)) == []


async def test_a_copy_for_a_test_is_one_on_purpose(plane, pod, caplog):
    assert await warnings_of(plane, caplog, Manager(name="ships").copy()) == []


@pytest.mark.parametrize("server", ["", "https://127.0.0.1:6443", "https://localhost:6443"])
async def test_a_server_on_this_machine_is_no_cluster(plane, pod, caplog, server):
    """Continuous integration runs in Pods too, and starts servers for its tests."""
    assert await warnings_of(plane, caplog, Manager(name="ships"), server) == []


async def test_outside_of_a_pod_nothing_is_said(plane, monkeypatch, caplog):
    """On a laptop there is one process, and no second one can start by itself."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert await warnings_of(plane, caplog, Manager(name="ships")) == []
