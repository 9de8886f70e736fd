"""Loads what every run needs into the process that simulates, once: the modules and schemas of the server and the client.

Runs are forked from that process, and each would load them anew: that takes ten times as long as to start a server.

Guarantee: none of the caller's code runs, and nothing runs on afterwards. A small operator meets a server, and both end.
"""

from __future__ import annotations

import asyncio
from functools import cache

from steersman.aio import Actor, OwnedTasks
from steersman.controller import Context, Done, Request
from steersman.controlplane import ControlPlane
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import (
    ConfigMap,
    Container,
    PodSpec,
    PodTemplateSpec,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.manager import Manager
from steersman.markers import Rule
from steersman.objects import Object, ObjectMeta, Resource, Spec, Status
from steersman.simulation.runs.loop import SimulatedLoop
from steersman.simulation.runs.trace import Trace


class ProbeSpec(Spec):
    """What is wanted."""

    text: str = ""


class ProbeStatus(Status):
    """What was seen."""

    text: str = ""


class Probe(
    Resource[ProbeSpec, ProbeStatus],
    group="simulation.steersman.dev",
    version="v1",
    rules=(Rule(rule="self.metadata.name.matches('^[a-z]+$')", message="a name is a word"),),
):
    """A kind of its own: a server loads much for its definition."""


@cache
def warm_up_process() -> None:
    """Run a small operator to its end."""
    loop = SimulatedLoop()
    try:
        with Trace().logs():
            Actor("warm-up", seed=1).context.run(loop.run_until_complete, _run())
    finally:
        loop.close()


async def _run() -> None:
    async with ControlPlane() as plane:
        client = plane.client
        await client.install(Probe)
        for obj in _common_objects():
            await client.apply(obj, force=True)
        manager = Manager(name="warm-up")
        manager.watchdog = 0
        manager.endpoints = None
        probes = manager.controller(Probe).owns(ConfigMap).refers_to(Secret, by=lambda _: "one")
        probes.run_with(_reconcile)
        tasks = OwnedTasks()
        tasks.start(manager.run(client, signals=False), name="warm-up")
        await client.create(Probe(metadata=ObjectMeta(name="one", namespace="default"), spec=ProbeSpec(text="a")))
        # Virtual: nothing waits.
        await asyncio.sleep(1)
        await client.delete(Probe, "default/one")
        await asyncio.sleep(1)
        await tasks.close()


def _common_objects() -> list[Object]:
    """Objects of the kinds that most operators write."""
    labels = {"app": "one"}
    metadata = ObjectMeta(name="one", namespace="default", labels=labels)
    pod = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="a", image="a")]))
    return [
        Deployment(metadata=metadata, spec=DeploymentSpec(selector=LabelSelector(match_labels=labels), template=pod)),
        Service(metadata=metadata, spec=ServiceSpec(selector=labels, ports=[ServicePort(port=80)])),
        Secret(metadata=metadata, string_data={"a": "b"}),
    ]


async def _reconcile(ctx: Context, request: Request) -> Done:
    probe = await ctx.client.find(Probe, request.key)
    if probe is not None and not probe.deleting:
        child = ConfigMap(metadata=ObjectMeta(name=request.key.name, namespace=request.key.namespace))
        child.data = {"text": probe.spec.text}
        await ctx.client.apply(child, owner=probe, force=True)
        probe.status = ProbeStatus(text=probe.spec.text)
        await ctx.client.save(probe)
    return Done()
