"""What a manager answers on its port."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import msgspec
import pytest

from samples.certificates import Authority
from samples.eventually import eventually
from samples.exposition import parse, value
from samples.site import Site, site
from steersman import Client, Key, Kind, ObjectMeta, Unstructured
from steersman.aio import Supervisor
from steersman.controller import Done, TerminalError
from steersman.errors import ApiError, NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import HttpEndpoints, LeaderElection, Manager
from steersman.manager.endpoints.handler import EndpointHandler
from steersman.transport import HttpListener, HttpTransport, InProcessTransport, ServerTls, TlsMaterial
from steersman.wire import HttpRequest, parse_query

_ALL_READY = "[+]caches ok\n[+]controllers ok\n[+]shutdown ok\nreadyz check passed\n"


@pytest.fixture
async def client(api_server, namespace, sites):
    async with api_server.client(field_manager="site-operator", namespace=namespace) as client:
        yield client


async def get(transport, target: str, **headers: str) -> tuple[int, str]:
    path, _, query = target.partition("?")
    pairs = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    async with await transport.send(HttpRequest("GET", path, parse_query(query), pairs)) as response:
        return response.status, (await response.read()).decode()


@asynccontextmanager
async def running(manager: Manager):
    """A manager at work, and the way to its endpoints."""
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await eventually(lambda: manager.address)
        async with HttpTransport(manager.address) as transport:
            yield transport
        manager.stop()


async def until(transport, target: str, status: int, part: str = "") -> str:
    while True:
        found, words = await get(transport, target)
        if found == status and part in words:
            return words
        await asyncio.sleep(0.01)


class Sites:
    """A ConfigMap for each Site of one namespace; one called "bad" fails."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    async def reconcile(self, ctx, request) -> Done:
        if request.key.namespace != self.namespace:
            return Done()
        try:
            found = await ctx.client.get(Site, request.key)
        except NotFound:
            return Done()
        if found.key.name == "bad":
            raise TerminalError("this <site> is bad")
        await ctx.client.apply(
            ConfigMap(metadata=ObjectMeta(name=found.key.name, namespace=self.namespace), data={"a": "b"}), owner=found
        )
        return Done()


def manager_of(client: Client, namespace: str, **options) -> Manager:
    manager = Manager(client, name="site-operator", endpoints=HttpEndpoints(port=0), **options)
    manager.controller(Site).owns(ConfigMap).run_with(Sites(namespace))
    return manager


async def test_ready_after_sync_and_never_before(client, namespace):
    await client.create(site("a", namespace))
    manager = manager_of(client, namespace)
    go, tasks = asyncio.Event(), asyncio.all_tasks()

    @asynccontextmanager
    async def hold(_client):
        await go.wait()
        yield

    manager.before_leading(hold)
    async with running(manager) as transport:
        assert await get(transport, "/healthz") == (200, "ok")
        status, words = await get(transport, "/readyz")
        assert status == 500
        assert "[-]controllers failed: not started yet" in words
        go.set()
        assert await until(transport, "/readyz", 200) == "ok"
        assert all(each.synced for each in manager.statistics().informers)
        assert manager.phase == "running"
        assert await get(transport, "/readyz?verbose") == (200, _ALL_READY)
    assert manager.phase == "stopped"
    assert manager.address == ""
    assert asyncio.all_tasks() == tasks


async def test_readyz_names_the_missing_crd_and_goes_on_when_it_comes(client, namespace, crd_group):
    late = Kind(f"{crd_group}/v1", "Late")
    manager = manager_of(client, namespace)
    manager.controller(late, name="late", namespaced=True).run_with(Sites(namespace))
    async with running(manager) as transport:
        # the other controller does not wait for it
        assert await until(transport, "/readyz", 200) == "ok"
        assert manager.phase == "running"
        warned = (
            f"[+]caches ok (waiting for {crd_group}/v1 Late: not served)\n"
            "[+]controllers ok (late is waiting for Late)\n[+]shutdown ok\nreadyz check passed\n"
        )
        assert await get(transport, "/readyz?verbose") == (200, warned)
        await client.create(_definition(crd_group))
        await until(transport, "/readyz?verbose", 200, _ALL_READY)


async def test_a_manager_of_which_nothing_works_is_not_ready(client, namespace, crd_group):
    manager = Manager(client, name="stuck", endpoints=HttpEndpoints(port=0))
    late = Kind(f"{crd_group}/v1", "Late")
    manager.controller(late, name="late", namespaced=True).run_with(Sites(namespace))
    async with running(manager) as transport:
        missing = f"[-]caches failed: {crd_group}/v1 Late is not served: install its CRD (steersman generate crds MODULE | kubectl apply -f -)\n"
        words = await until(transport, "/readyz", 500, missing)
        assert "[-]controllers failed: late is waiting for Late\n" in words
        assert manager.phase == "syncing"


def _definition(group: str):
    return Unstructured(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"lates.{group}"},
            "spec": {
                "group": group,
                "names": {"kind": "Late", "plural": "lates", "singular": "late", "listKind": "LateList"},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        }
    )


def runs(samples, result: str) -> float:
    try:
        return value(samples, "controller_runtime_reconcile_total", controller="site", result=result)
    except KeyError:
        return 0


def patches(samples) -> float:
    try:
        return value(samples, "rest_client_requests_total", method="PATCH", code="201")
    except KeyError:
        return 0


async def test_metrics_have_the_known_names_and_are_well_formed(client, namespace):
    for name in ("a", "b", "bad"):
        await client.create(site(name, namespace))
    manager = manager_of(client, namespace, leader=LeaderElection("metrics", namespace=namespace))
    async with running(manager) as transport:
        await until(transport, "/readyz", 200)
        while True:
            status, text = await get(transport, "/metrics")
            assert status == 200
            samples = parse(text)
            if patches(samples) == 2 and runs(samples, "error") == 1:
                break
            await asyncio.sleep(0.01)
        assert value(samples, "controller_runtime_reconcile_errors_total", controller="site") == 1
        assert value(samples, "controller_runtime_max_concurrent_reconciles", controller="site") == 4
        assert value(samples, "controller_runtime_active_workers", controller="site") >= 0
        assert value(samples, "controller_runtime_reconcile_time_seconds_count", controller="site") >= 3
        assert value(samples, "workqueue_depth", name="site") >= 0
        assert value(samples, "workqueue_adds_total", name="site") >= 3
        assert runs(samples, "success") >= 2
        assert value(samples, "leader_election_master_status", name=f"{namespace}/metrics") == 1
        openmetrics = await get(transport, "/metrics", Accept="application/openmetrics-text")
        assert openmetrics[1].endswith("# EOF\n")


async def test_the_debug_pages_show_what_happened(client, namespace):
    await client.create(site("bad", namespace))
    manager = manager_of(client, namespace)
    async with running(manager) as transport:
        await until(transport, "/readyz", 200)
        target = f"kind=Site&namespace={namespace}&name=bad"
        while True:
            status, text = await get(transport, f"/debug/explain.json?{target}")
            assert status == 200
            (found,) = msgspec.json.decode(text)
            if found["record"]:
                break
            await asyncio.sleep(0.01)
        assert found["controller"] == "site"
        assert found["record"]["result"] == "terminal_error"
        assert found["record"]["last_error"] == "TerminalError: this <site> is bad"
        assert found["state"] == "idle"
        for other in ("site", "sites", "SITE", "sites.web.test.steersman.dev", "web.test.steersman.dev/v1 Site"):
            (same,) = manager.explain(other, Key(namespace, "bad"))
            assert same.record.reconcile_id == found["record"]["reconcile_id"]
        status, page = await get(transport, f"/debug/explain?{target}")
        assert status == 200
        assert "this &lt;site&gt; is bad" in page
        status, page = await get(transport, "/debug")
        assert status == 200
        assert page.lower().startswith("<!doctype html>")
        status, text = await get(transport, "/debug/statistics.json")
        statistics = msgspec.json.decode(text)
        assert statistics["phase"] == "running"
        assert [each["name"] for each in statistics["controllers"]] == ["site"]
        assert {each["name"] for each in statistics["checks"]} == {"event-loop", "caches", "controllers", "shutdown"}
        assert (await get(transport, "/debug/explain?kind=Nothing&name=x"))[0] == 404
        status, words = await get(transport, "/debug/explain")
        assert (status, words.partition(":")[0]) == (400, "name an object")
        status, words = await get(transport, "/nowhere")
        assert status == 404
        assert "/readyz" in words


async def test_readiness_ends_before_the_work_does(client, namespace):
    """A program that drains gets no new traffic, and can still be looked at."""
    await client.create(site("a", namespace))
    entered, go = asyncio.Event(), asyncio.Event()

    class Slow:
        async def reconcile(self, ctx, request) -> Done:
            entered.set()
            await go.wait()
            return Done()

    manager = Manager(client, endpoints=HttpEndpoints(port=0))
    manager.controller(Site).run_with(Slow())
    async with running(manager) as transport:
        await asyncio.wait_for(entered.wait(), 60)
        manager.stop()
        status, words = await get(transport, "/readyz/shutdown")
        assert (status, words.startswith("shutdown failed: the program is stopping")) == (500, True)
        assert (await get(transport, "/healthz"))[0] == 200
        assert manager.phase == "draining"
        go.set()


async def test_a_start_that_hangs_is_ended_by_the_second_signal(client, namespace):
    entered = asyncio.Event()
    left: list[bool] = []

    @asynccontextmanager
    async def hangs(_client):
        entered.set()
        try:
            await asyncio.Event().wait()
            yield
        finally:
            left.append(True)

    manager = manager_of(client, namespace)
    manager.before_leading(hangs)
    async with asyncio.timeout(25), Supervisor() as tasks:
        run = tasks.start(manager.run(), name="manager")
        await entered.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await eventually(lambda: manager.phase == "draining")
        os.kill(os.getpid(), signal.SIGTERM)
        await run
    assert (left, manager.phase, manager.address) == ([True], "stopped", "")
    with pytest.raises(RuntimeError, match="can run only once"):
        await manager.run()


async def test_a_candidate_is_ready_and_says_who_leads(client, api_server, namespace):
    election = {"namespace": namespace, "retry": 1.0}
    first = manager_of(client, namespace, leader=LeaderElection("sites", identity="one", **election))
    async with running(first) as transport:
        await until(transport, "/readyz", 200)
        await eventually(lambda: first.phase == "running")
        assert first.statistics().leader.leading
        assert first.statistics().leader.since is not None
        async with api_server.client(field_manager="site-operator", namespace=namespace) as other:
            second = manager_of(other, namespace, leader=LeaderElection("sites", identity="two", **election))
            async with running(second) as standby:
                assert await until(standby, "/readyz", 200) == "ok"
                await eventually(lambda: second.statistics().leader.holder == "one")
                assert second.phase == "candidate"
                samples = parse((await get(standby, "/metrics"))[1])
                assert value(samples, "leader_election_master_status") == 0
                assert "event-loop" in (await get(standby, "/healthz?verbose"))[1]
                # nothing runs here, and it says so instead of failing
                (known,) = second.explain("site", Key(namespace, "x"))
                assert (known.record, known.state) == (None, "idle")


# --- who may ask -----------------------------------------------------------------------------------------------------


async def test_the_debug_page_is_for_this_machine_alone():
    manager = Manager(name="quiet")
    handler = EndpointHandler(manager)
    async with HttpListener(handler) as listener, HttpTransport(listener.address) as transport:
        assert (await get(transport, "/debug"))[0] == 200
        for host in ("localhost:8080", "LOCALHOST", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080"):
            assert (await get(transport, "/debug", Host=host))[0] == 200
        hosts = (
            "evil.example:80",
            "10.244.1.7:8080",
            "0.0.0.0",
            "[::1].evil.example",
            "evil.localhost",
            "127.0.0.1.evil.example",
        )
        proxies = (
            {"X_Forwarded_For": "10.0.0.1"},
            {"Forwarded": "for=1.2.3.4"},
            {"Via": "1.1 envoy"},
            {"X_Envoy_External_Address": "10.0.0.1"},
        )
        for headers in (*proxies, *({"Host": host} for host in hosts)):
            for path in ("/debug", "/debug/statistics.json", "/debug/explain.json?kind=a&name=b"):
                status, words = await get(transport, path, **headers)
                assert status == 403
                assert "kubectl port-forward" in words
            assert (await get(transport, "/healthz", **headers))[0] == 200
            assert (await get(transport, "/metrics", **headers))[0] == 200
        async with await transport.send(HttpRequest("POST", "/healthz")) as response:
            assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
    # a client without a known address counts as remote
    async with InProcessTransport(handler) as transport:
        assert (await get(transport, "/debug"))[0] == 403


async def test_endpoints_that_cannot_be_served_end_the_manager(client, namespace, tmp_path):
    with pytest.raises(ValueError, match="port must be a number up to 65535"):
        HttpEndpoints(port=70000)
    async with HttpListener(EndpointHandler(Manager())) as taken:
        manager = Manager(client, endpoints=HttpEndpoints(port=taken.port))
        manager.controller(Site).run_with(Sites(namespace))
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {taken.port}"):
            await manager.run()
    missing = ServerTls(certificate_file=str(tmp_path / "no.crt"), key_file=str(tmp_path / "no.key"))
    manager = Manager(client, endpoints=HttpEndpoints(port=0, tls=missing))
    manager.controller(Site).run_with(Sites(namespace))
    with pytest.raises(ApiError, match=r"cannot load the server certificate"):
        await manager.run()


async def test_endpoints_over_tls_count_how_often_the_certificate_was_read(client, namespace, tmp_path):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("127.0.0.1")
    tls = ServerTls(certificate_file=str(certificate), key_file=str(key))
    manager = Manager(client, name="site-operator", endpoints=HttpEndpoints(port=0, tls=tls))
    manager.controller(Site).run_with(Sites(namespace))
    trust = TlsMaterial(ca_file=str(authority.file))
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await eventually(lambda: manager.address)
        assert manager.address.startswith("https://")
        for reads in (1, 2):
            async with HttpTransport(manager.address, tls=trust) as transport:
                samples = parse((await get(transport, "/metrics"))[1])
            assert value(samples, "certwatcher_read_certificate_total") == reads
            authority.issue("127.0.0.1")
        assert value(samples, "certwatcher_read_certificate_errors_total") == 0
        manager.stop()


def test_a_manager_without_endpoints_loads_no_server():
    code = (
        "import sys, steersman.manager; print([m for m in sys.modules if m in {'aiohttp.web', 'steersman.debug.page'}])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
