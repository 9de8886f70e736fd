"""Addresses and ports of Services when a write fails halfway: no Service loses its own, and none is lost for good."""

import asyncio
import json
import time  # noqa: TID251 - the CPU time of a thread

import pytest

from samples.embedded import MERGE, Raw
from steersman.apiserver import ApiServer, Attributes, JournaledStorage, MemoryStorage, Plugin

SERVICES = "/api/v1/namespaces/default/services"


class Denial(Plugin):
    """Denies what carries the label, once everything else about it is decided."""

    async def validate(self, attributes: Attributes) -> None:
        if "denied" in (attributes.obj or {}).get("metadata", {}).get("labels", {}):
            raise attributes.refused("as told")


@pytest.fixture
async def raw():
    async with ApiServer(kinds=["v1"], admission=[Denial()]) as server:
        yield Raw(server.handler)


def service(name, *ports, **spec):
    """A Service with these node ports."""
    listed = [{"name": f"p{port}", "port": port % 1000 + 1, "nodePort": port} for port in ports] or [{"port": 80}]
    type_ = {"type": "NodePort"} if ports else {}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": type_ | {"ports": listed} | spec}


async def denied_change(raw, name, **spec):
    change = {"metadata": {"labels": {"denied": "yes"}}, "spec": spec}
    assert (await raw.send("PATCH", f"{SERVICES}/{name}", change, content_type=MERGE)).code == 403


async def test_a_denied_change_gives_nothing_of_the_service_to_others(raw):
    assert (await raw.post(SERVICES, service("a", 30001))).code == 201
    await denied_change(raw, "a", type="ClusterIP", ports=[{"port": 80}])
    assert (await raw.get(f"{SERVICES}/a")).body["spec"]["ports"][0]["nodePort"] == 30001
    assert (await raw.post(SERVICES, service("b", 30001))).code == 422


async def test_a_denied_change_takes_nothing(raw):
    assert (await raw.post(SERVICES, service("a", 30001))).code == 201
    await denied_change(raw, "a", ports=service("a", 30002, 30003)["spec"]["ports"])
    assert (await raw.post(SERVICES, service("b", 30002, 30003))).code == 201


async def test_a_service_that_gets_only_a_part_of_what_it_asks_for_keeps_none(raw):
    assert (await raw.post(SERVICES, service("a", 30001))).code == 201
    assert (await raw.post(SERVICES, service("b", 30002, 30001, clusterIP="10.0.0.50"))).code == 422
    assert (await raw.post(SERVICES, service("c", 30002, clusterIP="10.0.0.50"))).code == 201


async def test_a_change_gives_back_what_the_service_no_longer_needs(raw):
    assert (await raw.post(SERVICES, service("a", 30001))).code == 201
    change = {"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}}
    assert (await raw.send("PATCH", f"{SERVICES}/a", change, content_type=MERGE)).code == 200
    assert (await raw.post(SERVICES, service("b", 30001))).code == 201


async def test_what_a_killed_process_left_allocated_is_free_after_the_next_start():
    storage = MemoryStorage()
    async with ApiServer(kinds=["v1"], storage=storage) as server:
        assert (await Raw(server.handler).post(SERVICES, service("a", 30001))).code == 201
    # it was killed after this write, and before that of the Service
    await storage.put("allocations/servicenodeports/30002", b"11111111-2222-3333-4444-555555555555", expect=0)
    async with ApiServer(kinds=["v1"], storage=storage) as server:
        raw = Raw(server.handler)
        assert (await raw.post(SERVICES, service("b", 30002))).code == 201
        assert (await raw.post(SERVICES, service("c", 30001))).code == 422


def released(name):
    return "DELETE", f"{SERVICES}/{name}", None


def renumbered(name):
    return "PUT", f"{SERVICES}/{name}", service(name, 30001, 30002)


def made(name):
    return "POST", SERVICES, service(name)


@pytest.mark.parametrize("write", [made, renumbered, released])
async def test_services_hold_what_is_allocated_wherever_a_write_is_cancelled(tmp_path, write):
    """A client that leaves, or a deadline, ends a request at any step; a store still writes what it has begun to write."""
    async with JournaledStorage(tmp_path, fsync="never") as storage, ApiServer(kinds=["v1"], storage=storage) as server:
        raw = Raw(server.handler)
        steps, is_cancelled = 0, True
        while is_cancelled:
            if write is not made:
                assert (await raw.post(SERVICES, service("a", 30000))).code == 201
            async with asyncio.TaskGroup() as group:
                request = group.create_task(raw.send(*write("a")))
                for _ in range(steps):
                    await asyncio.sleep(0)
                is_cancelled = request.cancel()
            # What it has begun ends.
            for _ in range(100):
                await asyncio.sleep(0)
            assert await allocations(storage) == await values(storage), f"cancelled after {steps} steps"
            await raw.delete(f"{SERVICES}/a")
            steps += 1
        assert steps > 5


async def allocations(storage):
    """The values that are allocated, each with the uid of its holder."""
    records = (await storage.list("allocations/")).records
    return {record.key.rpartition("/")[2]: record.value.decode() for record in records}


async def values(storage):
    """The values in the stored Services, each with the uid of its Service."""
    held = {}
    for record in (await storage.list("core/services/")).records:
        tree = json.loads(record.value)
        spec, uid = tree["spec"], tree["metadata"]["uid"]
        held |= dict.fromkeys(
            [*spec["clusterIPs"], *(str(port["nodePort"]) for port in spec["ports"] if "nodePort" in port)], uid
        )
    return held


async def test_a_service_with_thousands_of_ports_costs_little(raw):
    """The server does nothing else while it chooses ports."""
    ports = [{"name": f"p{number}", "port": number + 1} for number in range(8000)]
    big = service("a") | {"spec": {"type": "NodePort", "ports": ports}}
    began = time.thread_time()
    assert (await raw.post(f"{SERVICES}?dryRun=All", big)).code == 201
    full = await raw.post(SERVICES, big)
    assert "range is full" in full.body["message"]
    assert time.thread_time() - began < 1.5
    assert (await raw.post(SERVICES, service("b", 30001))).code == 201
