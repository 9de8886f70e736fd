"""The annotation service-producer, and the Endpoints that follow from it."""

from __future__ import annotations

import asyncio

import pytest

from steersman import Key
from steersman.controller import Context, Done, Request, controller_for
from steersman.controlplane import ControlPlane
from steersman.manager import Manager
from steersman.objects import ObjectMeta
from steersman.workloads.kinds import KINDS, Endpoint, Executable, ExecutableSpec
from steersman.workloads.serving import ANNOTATION, InvalidProducers, Producer, keep_endpoints, producers


def executable(annotation: str | None = None) -> Executable:
    annotations = None if annotation is None else {ANNOTATION: annotation}
    metadata = ObjectMeta(name="web", annotations=annotations)
    return Executable(metadata=metadata, spec=ExecutableSpec(executable_path="/bin/true"))


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        (None, ()),
        ("[]", ()),
        ('[{"serviceName": "web"}]', (Producer("web"),)),
        (
            '[{"serviceName": "web", "port": 80, "address": "::1"}, {"serviceName": "admin", "serviceNamespace": ""}]',
            (Producer("web", address="::1", port=80), Producer("admin")),
        ),
    ],
)
def test_an_annotation_lists_services(annotation, found):
    assert producers(executable(annotation)) == found


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("web", "Executable web: annotation service-producer must be a JSON list"),
        ('{"serviceName": "web"}', "must be a JSON list"),
        ('[{"port": 80}]', "serviceName"),
        ('[{"serviceName": "web", "prot": 80}]', "prot"),
        ('[{"serviceName": ""}]', "entry 0 has an empty serviceName"),
        ('[{"serviceName": "web", "port": 0}]', r"must be 1 to 65535 \(got 0\)"),
        ('[{"serviceName": "web"}, {"serviceName": "web"}]', "lists service web twice"),
    ],
)
def test_an_invalid_annotation_is_rejected_with_a_sentence(annotation, message):
    with pytest.raises(InvalidProducers, match=message):
        producers(executable(annotation))


async def test_the_endpoints_of_a_workload_follow_what_it_serves():
    """Rule: an Endpoint is owned by its Executable. The set is exact, and a workload that is deleted has none."""
    served: dict[str, tuple[str, int]] = {}
    done = asyncio.Event()

    async def reconcile(ctx: Context, request: Request) -> Done:
        owner = await ctx.client.find(Executable, request.key)
        if owner is not None:
            await keep_endpoints(ctx, owner, served)
            await keep_endpoints(ctx, owner, served)
            done.set()
        return Done()

    async with ControlPlane(resources=KINDS) as plane, asyncio.TaskGroup() as tasks:
        client = plane.client
        manager = Manager(client, name="workloads")
        manager.add(controller_for(Executable).owns(Endpoint).run_with(reconcile))
        running = tasks.create_task(manager.run())

        async def endpoints() -> dict[str, tuple[str, int]]:
            await asyncio.wait_for(done.wait(), 60)
            done.clear()
            return {each.spec.service_name: (each.spec.address, each.spec.port) for each in await client.list(Endpoint)}

        async def touch(value: str) -> None:
            found = await client.get(Executable, Key("", "web"))
            found.metadata.annotations = {"touched": value}
            await client.update(found)

        served = {"web": ("127.0.0.1", 80), "admin": ("::1", 81)}
        made = await client.create(executable())
        assert await endpoints() == served
        (first,) = [each for each in await client.list(Endpoint) if each.spec.service_name == "web"]
        assert [each.uid for each in first.metadata.owner_references or ()] == [made.uid]
        served = {"web": ("127.0.0.1", 8080)}
        await touch("moved")
        while await endpoints() != served:
            pass
        served = {}
        await touch("stopped")
        while await endpoints() != served:
            pass
        served = {"web": ("127.0.0.1", 80)}
        await touch("again")
        while await endpoints() != served:
            pass
        await client.delete(Executable, Key("", "web"))
        await plane.settled()
        assert list(await client.list(Endpoint)) == []
        manager.stop()
        await running
