"""Services on a server: a stable address, endpoints, conflicts of ports, with simulated and with real parts."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import asynccontextmanager

import pytest

from steersman import Key
from steersman.controlplane import ControlPlane
from steersman.manager import Manager
from steersman.objects import ObjectMeta, find_condition, is_true
from steersman.workloads.controllers.services import add_services
from steersman.workloads.kinds import KINDS, PORT_SETTING, Endpoint, EndpointSpec, Service, ServiceSpec
from steersman.workloads.ports import LocalPorts, PortRegistry, SimulatedPorts
from steersman.workloads.proxies import Proxy, ProxyState, RelayProxy, SimulatedProxy

WEB = Key("", "web")


class Plane:
    """A server with the controller of Services, and the parts behind it."""

    def __init__(self, client, proxy, ports) -> None:
        self.client, self.proxy, self.ports = client, proxy, ports

    async def create(self, **spec) -> None:
        await self.client.create(Service(metadata=ObjectMeta(name="web"), spec=ServiceSpec(**spec)))

    async def serve(self, name: str, port: int, address: str = "127.0.0.1") -> None:
        spec = EndpointSpec(service_name="web", address=address, port=port)
        await self.client.create(Endpoint(metadata=ObjectMeta(name=name), spec=spec))

    async def gone(self) -> None:
        async with asyncio.timeout(30):
            while await self.client.find(Service, WEB) is not None:  # noqa: ASYNC110 - a test reads, as a client would
                await asyncio.sleep(0.01)

    async def until(self, holds: Callable[[Service], object]) -> Service:
        found = None
        try:
            async with asyncio.timeout(30):
                while True:
                    found = await self.client.get(Service, WEB)
                    if found.status is not None and holds(found):
                        return found
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"the service is still {found and found.status}") from None


@asynccontextmanager
async def plane(proxy: Proxy, ports: PortRegistry):
    async with ControlPlane(resources=KINDS) as control_plane, asyncio.TaskGroup() as tasks:
        manager = Manager(control_plane.client, name="workloads")
        add_services(manager, proxy=proxy, ports=ports)
        running = tasks.create_task(manager.run())
        yield Plane(control_plane.client, proxy, ports)
        manager.stop()
        await running


@pytest.fixture
async def simulated():
    async with plane(SimulatedProxy(), SimulatedPorts()) as made:
        yield made


def listens(service: Service) -> bool:
    return service.status is not None and bool(service.status.effective_port)


def ready(service: Service) -> bool:
    return service.status is not None and service.status.state == "Ready"


async def test_the_address_comes_before_any_endpoint_and_stays(simulated):
    """Rule: effective address and port are assigned before any endpoint and stay stable. NotReady -> Ready -> NotReady."""
    await simulated.create()
    found = await simulated.until(listens)
    assert found.status.state == "NotReady"
    assert found.status.effective_address == "localhost"
    port = found.status.effective_port
    assert simulated.proxy.kept["web"].addresses == ("127.0.0.1", "::1")
    assert "has no endpoint" in found.status.steersman.message
    await simulated.serve("one", 8001)
    await simulated.serve("two", 8002)
    found = await simulated.until(lambda each: ready(each) and each.status.steersman.endpoints == 2)
    assert found.status.effective_port == port
    assert is_true(found.status.conditions, "Ready")
    assert found.status.proxy_process_pid == simulated.proxy.pid
    assert simulated.proxy.kept["web"].endpoints == (("127.0.0.1", 8001), ("127.0.0.1", 8002))
    for name in ("one", "two"):
        await simulated.client.delete(Endpoint, Key("", name))
    found = await simulated.until(lambda each: not ready(each))
    assert found.status.effective_port == port
    assert simulated.proxy.kept["web"].endpoints == ()


@pytest.mark.parametrize(
    ("spec", "addresses", "effective"),
    [
        ({}, ("127.0.0.1", "::1"), "localhost"),
        ({"address_allocation_mode": "Localhost"}, ("127.0.0.1", "::1"), "localhost"),
        ({"address_allocation_mode": "IPv4ZeroOne"}, ("127.0.0.1",), "127.0.0.1"),
        ({"address_allocation_mode": "IPv6ZeroOne"}, ("::1",), "::1"),
        ({"address_allocation_mode": "AllInterfaces"}, ("0.0.0.0", "::"), "localhost"),
        ({"address_allocation_mode": "IPv4AllInterfaces"}, ("0.0.0.0",), "127.0.0.1"),
        ({"address_allocation_mode": "IPv6AllInterfaces"}, ("::",), "::1"),
        ({"address_allocation_mode": "IPv4ZeroOne", "address": "127.1.2.3"}, ("127.1.2.3",), "127.1.2.3"),
        ({"address": "[::1]"}, ("::1",), "::1"),
        ({"address": "localhost"}, ("127.0.0.1", "::1"), "localhost"),
    ],
)
async def test_each_mode_has_its_addresses(simulated, spec, addresses, effective):
    """Rule: addressAllocationMode; an explicit address wins over it."""
    await simulated.create(**spec, port=8080)
    found = await simulated.until(listens)
    assert (found.status.effective_address, found.status.effective_port) == (effective, 8080)
    assert simulated.proxy.kept["web"].addresses == addresses


async def test_a_loopback_address_of_its_own(simulated):
    """Mode IPv4Loopback: an address 127.x.y.z that stays."""
    await simulated.create(address_allocation_mode="IPv4Loopback")
    found = await simulated.until(listens)
    assert found.status.effective_address.startswith("127.")
    assert found.status.effective_address != "127.0.0.1"
    assert simulated.proxy.kept["web"].addresses == (found.status.effective_address,)


async def test_an_address_that_is_none_is_explained(simulated):
    await simulated.create(address="my-machine")
    found = await simulated.until(lambda each: each.status.steersman and each.status.steersman.message)
    assert found.status.steersman.message == (
        "Service web: spec.address must be an IP address or localhost (got my-machine)"
    )


async def test_a_proxyless_service_has_the_address_of_its_endpoint(simulated):
    """Mode Proxyless: the first endpoint, kept while it exists; no proxy listens."""
    await simulated.create(address_allocation_mode="Proxyless")
    found = await simulated.until(lambda each: each.status.state == "NotReady")
    assert (found.status.effective_address, found.status.effective_port) == (None, None)
    await simulated.serve("b", 8002)
    found = await simulated.until(ready)
    assert (found.status.effective_address, found.status.effective_port) == ("127.0.0.1", 8002)
    assert found.status.proxyless_endpoint_name == "b"
    await simulated.serve("a", 8001)
    found = await simulated.until(lambda each: each.status.steersman.endpoints == 2)
    assert found.status.effective_port == 8002
    await simulated.client.delete(Endpoint, Key("", "b"))
    found = await simulated.until(lambda each: each.status.effective_port == 8001)
    assert simulated.proxy.kept == {}
    await simulated.client.delete(Endpoint, Key("", "a"))
    await simulated.until(lambda each: not ready(each) and each.status.effective_port is None)


async def test_a_port_in_use_is_shown_with_its_holder_until_it_is_free(simulated):
    """Rule: port conflicts appear in status with the process that holds the port, and end with it."""
    simulated.proxy.in_use.add(8080)
    simulated.ports.holders[8080] = "nginx, pid 812"
    await simulated.create(port=8080)
    await simulated.serve("one", 8001)
    found = await simulated.until(lambda each: each.status.steersman and each.status.steersman.message)
    assert found.status.steersman.message == (
        "Service web: port 8080 is in use by nginx, pid 812, at 127.0.0.1; stop it, or set spec.port to another port"
    )
    assert found.status.state == "NotReady"
    assert found.status.effective_port is None
    assert find_condition(found.status.conditions, "Ready").reason == "PortInUse"
    served = find_condition(found.status.conditions, "Served")
    assert (served.status, served.message) == ("False", found.status.steersman.message)
    simulated.proxy.in_use.clear()
    found = await simulated.until(ready)
    assert is_true(found.status.conditions, "Served")
    assert (found.status.effective_port, found.status.steersman.message) == (8080, None)


async def test_another_program_at_the_port_of_a_proxyless_service_is_named(simulated, monkeypatch):
    """The process of the service starts and fails: the message stays until the port is free."""
    monkeypatch.setattr("steersman.workloads.controllers.services.RETRY", 0.05)
    simulated.ports.holders[8080] = "nginx, pid 812"
    await simulated.create(port=8080, address_allocation_mode="Proxyless")
    words = "Service web: port 8080 is in use by nginx, pid 812, at 127.0.0.1"
    await simulated.until(lambda each: words in (each.status.steersman.message or ""))
    await simulated.serve("one", 8080)
    found = await simulated.until(lambda each: each.status.steersman.endpoints == 1)
    assert words in found.status.steersman.message
    simulated.ports.holders.clear()
    await simulated.until(ready)
    simulated.ports.holders[8080] = "the process of the service"
    await simulated.serve("two", 8080)
    found = await simulated.until(lambda each: each.status.steersman.endpoints == 2)
    assert found.status.steersman.message is None, "what listens after the start is the service itself"


async def test_a_service_of_a_file_names_the_setting_of_the_file(simulated):
    simulated.proxy.in_use.add(8080)
    metadata = ObjectMeta(name="web", annotations={PORT_SETTING: "ports of service web in steersman.yaml"})
    await simulated.client.create(Service(metadata=metadata, spec=ServiceSpec(port=8080)))
    found = await simulated.until(lambda each: each.status.steersman and each.status.steersman.message)
    assert found.status.steersman.message == (
        "Service web: port 8080 is in use by another process, at 127.0.0.1; "
        "stop it, or change ports of service web in steersman.yaml"
    )


async def test_a_service_without_an_endpoint_has_its_address(simulated):
    await simulated.create(port=8080)
    found = await simulated.until(listens)
    assert not is_true(found.status.conditions, "Ready")
    assert is_true(found.status.conditions, "Served"), "dependents may start before the first endpoint"


async def test_a_chosen_port_that_is_taken_meanwhile_is_replaced_once(simulated):
    """Rule: EADDRINUSE gives a new port, once."""
    simulated.proxy.in_use.add(20000)
    simulated.ports.holders[20000] = "another, pid 1"
    simulated.ports.ports["service/web"] = 20000
    await simulated.create()
    found = await simulated.until(listens)
    assert found.status.effective_port == 20001


async def test_a_service_can_move_and_goes_with_its_port(simulated):
    await simulated.create(port=8080)
    found = await simulated.until(listens)
    found.spec.port = 9090
    found.spec.address_allocation_mode = "IPv4ZeroOne"
    await simulated.client.update(found)
    found = await simulated.until(lambda each: each.status.effective_port == 9090)
    assert found.status.effective_address == "127.0.0.1"
    await simulated.client.delete(Service, WEB)
    await simulated.gone()
    assert simulated.proxy.kept == {}
    assert simulated.ports.released == ["service/web"]


async def test_parked_connections_and_refusals_are_shown(simulated):
    await simulated.create()
    await simulated.serve("one", 8001)
    await simulated.until(ready)
    simulated.proxy.report("web", ProxyState(3, "nothing listens at 127.0.0.1:8001"))
    found = await simulated.until(lambda each: each.status.steersman.parked_connections == 3)
    assert found.status.steersman.message == "nothing listens at 127.0.0.1:8001, so connections wait"
    simulated.proxy.report("web", ProxyState())
    await simulated.until(lambda each: each.status.steersman.message is None)


async def answer(port: int) -> bytes:
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            return await reader.read()
        finally:
            writer.close()


async def test_a_real_service_forwards_conflicts_and_survives_its_proxy(tmp_path):
    """With real sockets: parked, forwarded, proxy killed, port in use and free again, gone with the Service."""

    async def hello(_, writer):
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(hello, "127.0.0.1", 0)
    async with RelayProxy() as proxy, plane(proxy, LocalPorts("test", tmp_path / "ports.json")) as real:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            await real.create(port=port)
            found = await real.until(lambda each: each.status.steersman and each.status.steersman.message)
            assert f", pid {os.getpid()}, at 127.0.0.1; stop it" in found.status.steersman.message
        await real.until(listens)
        early = asyncio.get_running_loop().create_task(answer(port))
        await real.until(lambda each: each.status.steersman.parked_connections == 1)
        await real.serve("one", server.sockets[0].getsockname()[1])
        assert await early == b"hello"
        found = await real.until(ready)
        pid = found.status.proxy_process_pid
        os.kill(pid, signal.SIGKILL)
        await real.until(lambda each: each.status.proxy_process_pid not in {pid, None})
        assert await answer(port) == b"hello"
        await real.client.delete(Service, WEB)
        await real.gone()
        with pytest.raises(ConnectionRefusedError):
            await answer(port)
    server.close()
