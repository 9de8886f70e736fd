from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import pytest
import yaml

from steersman.aio import name_suffix
from steersman.testing import Engine, EngineError, KubectlError


async def test_the_kubeconfig_is_private_and_complete(engine) -> None:
    """Only its owner can read it, and it works without any other file."""
    assert engine.kubeconfig.stat().st_mode & 0o777 == 0o600
    document = yaml.safe_load(engine.kubeconfig.read_text())
    assert document["clusters"][0]["cluster"]["server"] == engine.url
    assert set(document["clusters"][0]["cluster"]) == {"server", "certificate-authority-data"}
    assert set(document["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    for context in ("admin", "admin-token"):
        answer = await engine.kubectl("--context", context, "auth", "whoami", "--output=jsonpath={.status.userInfo}")
        assert '"username":"admin"' in answer
        assert '"system:masters"' in answer


async def test_keys_are_private(engine) -> None:
    """No file in the engine's folder can be read by others, nor can the folder."""
    folder = engine.kubeconfig.parent
    assert folder.stat().st_mode & 0o077 == 0
    assert engine.admin_key_file.stat().st_mode & 0o077 == 0


async def test_the_server_proves_itself_and_wants_proof(engine) -> None:
    """Its certificate is good for the engine's authority alone; a token is as good as a certificate; nothing is not."""
    context = ssl.create_default_context(cafile=str(engine.ca_file))
    path = f"{engine.url}/api/v1/namespaces/default"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        async with session.get(path) as response:
            assert response.status == 403
        async with session.get(path, headers={"Authorization": f"Bearer {engine.admin_token}"}) as response:
            assert response.status == 200
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(path)


async def test_kubectl_gives_what_it_printed_or_what_it_complained_of(engine) -> None:
    """Input is passed on; a failure carries kubectl's own words."""
    name = f"by-kubectl-{name_suffix()}"
    manifest = f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}, "data": {{"a": "b"}}}}'
    assert "created" in await engine.kubectl("create", "--filename=-", stdin=manifest)
    assert await engine.kubectl("get", "configmap", name, "--output=jsonpath={.data.a}") == "b"
    with pytest.raises(KubectlError, match=r'kubectl get configmap absent .* "absent" not found') as caught:
        await engine.kubectl("get", "configmap", "absent")
    assert caught.value.code == 1


def test_one_engine_serves_many_loops(engine) -> None:
    """An engine belongs to no loop: each of these has its own, two of them at the same time."""

    def ask(_: int) -> str:
        return asyncio.run(engine.kubectl("version", "--output=json"))

    with ThreadPoolExecutor(2) as threads:
        assert all("serverVersion" in answer for answer in threads.map(ask, range(3)))
    asyncio.run(engine.wait_ready())


async def test_two_engines_at_once_are_strangers_and_leave_nothing(engine_folders, processes_of, api) -> None:
    """Each has its own address, data and authority; after the block no process and no file is left."""
    async with Engine.start() as one, Engine.start() as two:
        assert one.url != two.url
        async with api(one) as first, api(two) as second:
            await first.put_config_map("mine", a="b")
            status, _ = await second.ask("GET", "/api/v1/namespaces/default/configmaps/mine")
            assert status == 404
        context = ssl.create_default_context(cafile=str(one.ca_file))
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await session.get(two.url)
        programs = [line.split()[0].rpartition("/")[2] for line in processes_of(engine_folders).values()]
        assert sorted(programs)[:4] == ["etcd", "etcd", "kube-apiserver", "kube-apiserver"]
    assert processes_of(engine_folders) == {}
    assert list(engine_folders.iterdir()) == []


async def test_a_start_that_is_cancelled_leaves_nothing(engine_folders, processes_of) -> None:
    """A time-out of the test's own, in the middle of the start, ends what was begun."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.7), Engine.start():
            pytest.fail("an API server cannot be ready so soon")
    assert processes_of(engine_folders) == {}
    assert list(engine_folders.iterdir()) == []


async def test_what_an_engine_cannot_be_is_refused(engine) -> None:
    """Mistaken options fail before anything is started; a part that was not asked for says how to get it."""
    with pytest.raises(ValueError, match="one etcd member or three"):
        Engine.start(etcd_members=2)
    with pytest.raises(ValueError, match="at least one API server"):
        Engine.start(api_servers=0)
    with pytest.raises(ValueError, match="unknown: kube-scheduler"):
        Engine.start(flags={"kube-scheduler": ["--v=2"]})
    with pytest.raises(EngineError, match="controller_manager=True"):
        _ = engine.controller_manager


async def test_a_client_comes_with_the_engine(engine) -> None:
    """The engine's client is connected as its administrator."""
    async with engine.client() as client:
        assert b'"gitVersion"' in await client.request("GET", "/version")
