"""When a run is settled: nothing that happened is still unknown to the operator."""

from __future__ import annotations

import asyncio

import msgspec

from steersman import Context, Done, Manager, MergePatch, ObjectMeta, Request, RequeueAfter
from steersman.controller import ChannelSource
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import Fault, Scenario, ScenarioUser
from steersman.simulation.exploration.branches import Branches, Message
from steersman.simulation.runs.faults import Coalesced, CrashBefore
from steersman.simulation.runs.network import Decide
from steersman.simulation.runs.places import Place
from steersman.simulation.runs.world import World

_COPY = "core/configmaps/default/copy"
#: Seconds that a copier waits before it copies.
_LATER = 3.0


def copier(delay: float = 0.0) -> Manager:
    """An operator that copies one ConfigMap, after a delay."""
    manager = Manager(name="copier", leader=None)
    due: dict[str, float] = {}

    async def copied(ctx: Context, request: Request) -> Done | RequeueAfter:
        source = await ctx.client.find(ConfigMap, request.key)
        if source is None or request.key.name != "source":
            return Done()
        now = asyncio.get_running_loop().time()
        if now < due.setdefault(source.metadata.resource_version or "", now + delay):
            return RequeueAfter(delay)
        copy = ConfigMap(metadata=ObjectMeta(name="copy", namespace=request.key.namespace), data=source.data)
        await ctx.client.apply(copy, force=True)
        return Done()

    manager.controller(ConfigMap).run_with(copied)
    return manager


async def created(user: ScenarioUser) -> None:
    await user.client.create(ConfigMap(metadata=ObjectMeta(name="source"), data={"text": "first"}))
    await user.settled()


async def changed(user: ScenarioUser, text: str) -> None:
    await user.client.patch(ConfigMap, "default/source", MergePatch({"data": {"text": text}}))


def copies(scenario: Scenario, decide: Decide) -> list[str]:
    """What the copy says before the workload, at each `settled` and at the end, in a run in a process of its own."""
    messages: list[Message] = []
    branches = Branches(1, messages.append)
    if branches.branch("run"):
        with branches.ending():
            world = World(scenario, seed=1, decide=decide)
            world.run()
            assert not world.failures
            trees = [msgspec.json.decode(state.get(_COPY, b"{}")) for state in world.states]
            branches.send(msgspec.json.encode([tree.get("data", {}).get("text", "") for tree in trees]))
    branches.finish()
    (message,) = messages
    assert not message.failure
    return msgspec.json.decode(message.data, type=list[str])


def test_a_run_waits_for_watches_that_expired_twice() -> None:
    """A cache waits before it lists again a second time, and no message is on its way then."""
    coming: list[Fault] = []

    async def workload(user: ScenarioUser) -> None:
        await created(user)
        for text, seconds in {"second": 6, "third": 1}.items():
            coming.append(Coalesced())
            await changed(user, text)
            await user.sleep(seconds)
        assert not coming
        await changed(user, "last")
        await user.settled()

    def decide(place: Place) -> Fault | None:
        return coming.pop() if place.verb == "apply" and coming else None

    assert copies(Scenario(copier, workload), decide) == ["", "first", "last", "last"]


def test_a_run_waits_for_what_a_crashed_process_waited_for() -> None:
    """The next process waits again, and writes nothing until then."""

    def decide(place: Place) -> Fault | None:
        return CrashBefore() if place.verb == "apply" and place.occurrence <= 4 else None

    assert copies(Scenario(lambda: copier(_LATER), created), decide) == ["", "first", "first"]


def watcher() -> Manager:
    """An operator that sets a timer for each ConfigMap outside the cluster, and writes when it is over."""
    manager = Manager(name="watcher", leader=None)
    timers = ChannelSource("timers")
    over: set[str] = set()
    begun: set[str] = set()

    async def watched(ctx: Context, request: Request) -> Done:
        if request.key.name != "source":
            return Done()

        def end() -> None:
            over.add(request.key.name)
            timers.send(request.key)

        if request.key.name not in begun:
            begun.add(request.key.name)
            asyncio.get_running_loop().call_later(0.5, end)
        text = "over" if request.key.name in over else "running"
        found = await ctx.client.find(ConfigMap, (request.key.namespace, "copy"))
        if found is None or (found.data or {})["text"] == "running":
            copy = ConfigMap(metadata=ObjectMeta(name="copy", namespace=request.key.namespace), data={"text": text})
            await ctx.client.apply(copy, force=True)
        return Done()

    manager.controller(ConfigMap).on(timers).run_with(watched)
    return manager


def test_a_run_waits_for_what_a_new_process_began_without_a_write() -> None:
    """The next process finds that all is written, and learns a moment later that there is more to write."""

    def decide(place: Place) -> Fault | None:
        return CrashBefore() if place.verb == "apply" and place.occurrence == 2 else None

    assert copies(Scenario(watcher, created), decide) == ["", "over", "over"]
