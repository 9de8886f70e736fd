"""The plugin in test runs of its own: one suite, every server, every scope, and what it says when something is wrong."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from samples.page_operator import manager, page
from steersman.errors import Forbidden
from steersman.kinds.core_v1 import ConfigMap
from steersman.testing import EngineError, Plane
from steersman.testing.plugin import namespace_for
from steersman.testing.remote_hosts import ExistingHost

SUITE = """
import asyncio
import pytest
from samples.page_operator import Page, manager, page
from steersman import Client, ObjectMeta
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.testing import eventually

SERVERS = set()

@pytest.mark.parametrize("number", range(3))
async def test_converges_and_goes(control_plane, number):
    client = control_plane.client
    SERVERS.add((await client.get(Namespace, "default")).metadata.uid)
    async with control_plane.running(manager, namespaces=[control_plane.namespace]) as operator:
        await client.create(page())
        await eventually(client, ConfigMap, "home", has={"data": {"title": "hello"}})
        await operator.drained()
        with control_plane.writes() as writes:
            await operator.drained()
        assert writes == []
        await client.delete(Page, "home")
        await eventually(client, Page, "home", gone=True)

def test_without_a_loop(control_plane, namespace):
    assert namespace == control_plane.namespace
    async def work(kubeconfig):
        async with Client.connect(kubeconfig=kubeconfig, namespace=namespace) as client:
            await client.create(ConfigMap(metadata=ObjectMeta(name="plain")))
        await eventually(control_plane.client, ConfigMap, "plain")
    # the kubeconfig is used before anything else: the namespace is made all the same
    asyncio.run(work(control_plane.kubeconfig))

async def test_groups(control_plane, crd_group):
    from steersman import Resource, Spec
    class BoatSpec(Spec):
        masts: int = 1
    class Boat(Resource[BoatSpec, None], group=crd_group, version="v1"):
        pass
    await control_plane.install(Boat)
    await control_plane.client.create(Boat(metadata=ObjectMeta(name="x"), spec=BoatSpec()))

async def test_time(control_plane, clock):
    async with control_plane.running(manager) as operator:
        await control_plane.client.create(page(behavior="hourly"))
        await operator.drained()
        await clock.advance(3600)
        await eventually(control_plane.client, Page, "home", has={"status": {"checks": 1}})

@pytest.fixture(scope="session")
def counted(session_control_plane):
    async def count():
        return len(await session_control_plane.client.list(Namespace))
    return asyncio.run(count())

async def test_fixtures_of_wider_scope(counted, session_control_plane, module_control_plane):
    assert counted >= 4
    assert await module_control_plane.client.get(Namespace, "default")
    assert await session_control_plane.client.get(Namespace, "default")
    assert session_control_plane.namespace == "default"

def test_how_many_servers_there_were(request):
    scope = request.config.getoption("--steersman-scope")
    assert len(SERVERS) == (1 if scope or request.config.getoption("--steersman-server") else 3)
"""


def run(folder: Path, tests: str, *arguments: str) -> str:
    (folder / "test_it.py").write_text(tests)
    settings = (
        "asyncio_mode=auto",
        "asyncio_default_fixture_loop_scope=function",
        f"pythonpath={Path(__file__).parents[1]}",
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-p", "no:cacheprovider", "--rootdir=.", "-rs", "--tb=short"]
        + [part for setting in settings for part in ("-o", setting)]
        + list(arguments),
        cwd=folder,
        env=os.environ | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [(), ("--steersman-scope=session",)], ids=str)
def test_one_suite_on_embedded_servers(tmp_path, arguments):
    """One server for each test, or one in a thread for all of them, whatever loops they run on."""
    shown = run(tmp_path, SUITE, *arguments)
    assert "8 passed" in shown, shown


@pytest.mark.slow
def test_the_same_suite_on_the_engine(tmp_path):
    """Tests with a clock say why they cannot run there."""
    shown = run(tmp_path, SUITE, "--steersman-server=engine")
    assert "7 passed, 1 skipped" in shown, shown
    assert "cannot skip the time of another process: tests with a clock run on the embedded server only" in shown


async def test_a_cluster_that_is_there_has_the_same_interface(engine):
    """By its kubeconfig; what a test made is deleted before it counts as done."""
    host = ExistingHost(str(engine.kubeconfig))
    plane = Plane(host, namespace=namespace_for("existing"))
    try:
        async with plane.running(manager, namespaces=[plane.namespace]) as operator:
            await plane.client.create(page())
            await operator.drained()
            assert (await plane.client.get(ConfigMap, "home")).data == {"title": "hello"}
        assert (plane.server, plane.url) == (str(engine.kubeconfig), engine.url)
        with pytest.raises(Forbidden):
            await plane.client_as("jane").get(ConfigMap, "home")
    finally:
        await asyncio.to_thread(plane.end)
        host.end()
    phase = await engine.kubectl("get", "namespace", plane.namespace, "--output=jsonpath={.status.phase}")
    assert phase == "Terminating"


WRONG = """
import pytest
from steersman import ObjectMeta
from steersman.kinds.core_v1 import ConfigMap, Namespace

@pytest.fixture(loop_scope="module")
async def prepared(control_plane):
    await control_plane.client.create(ConfigMap(metadata=ObjectMeta(name="x")))

async def test_on_another_loop(control_plane, prepared):
    await control_plane.client.get(ConfigMap, "x")

async def test_that_writes(control_plane):
    with control_plane.writes() as writes:
        await control_plane.client.create(ConfigMap(metadata=ObjectMeta(name="x")))
        await control_plane.client.create(ConfigMap(metadata=ObjectMeta(name="y")))
    assert writes == []
"""


def test_what_is_wrong_is_said_in_words(tmp_path):
    tests = WRONG.replace("@pytest.fixture(loop_scope", "@pytest_asyncio.fixture(loop_scope")
    shown = run(tmp_path, "import pytest_asyncio\n" + tests)
    assert "2 failed" in shown, shown
    assert "this control plane belongs to the event loop that used it first, and this is another loop." in shown
    assert "E   assert 2 writes were made:" in shown
    assert "create ConfigMap test-that-writes-" in shown


def test_a_server_that_is_none_is_said_in_words():
    with pytest.raises(EngineError, match="--steersman-server=nowhere: no such file; pass embedded, engine, the path"):
        ExistingHost("nowhere")
