"""What a test can do to an engine: one with two API servers over three etcd members serves this whole file."""

from __future__ import annotations

import asyncio

import pytest

from steersman.testing import Engine, EngineError


@pytest.fixture(scope="module")
def cluster():
    with Engine.start(api_servers=2, etcd_members=3) as engine:
        yield engine


async def _written(api, name: str) -> None:
    """Write until it is written: requests under way when a member is killed may fail."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    async with asyncio.timeout(60):
        while (await api.ask("POST", "/api/v1/namespaces/default/configmaps", body))[0] not in {201, 409}:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def test_two_api_servers_see_each_other_s_writes(cluster, api) -> None:
    """They share one etcd; each has its own address and kubeconfig."""
    one, two = cluster.api_servers
    assert one.url != two.url
    assert one.kubeconfig != two.kubeconfig
    async with api(cluster, 0) as first, api(cluster, 1) as second:
        await first.put_config_map("written-to-one", a="b")
        assert await second.config_map("written-to-one") == {"a": "b"}


async def test_etcd_survives_the_loss_of_a_member(cluster, api) -> None:
    """With one of three killed, writes go on; the member comes back and the engine is whole again."""
    lost = cluster.etcd[0]
    pid = lost.pid
    await lost.kill()
    assert not lost.running
    assert lost.pid is None
    async with api(cluster) as first:
        await _written(first, "written-by-two-of-three")
        await lost.restart()
        assert lost.running
        assert lost.pid != pid
        await cluster.etcd[1].kill()
        # Only with the returned member is this a majority.
        await _written(first, "written-with-the-returned")
        assert await first.config_map("written-by-two-of-three") == {"a": "b"}
    await cluster.etcd[1].start()


async def test_a_killed_api_server_comes_back_with_its_data(cluster, api) -> None:
    """Killed or stopped, it is gone at once; started again, it has the same address and everything written before."""
    server = cluster.api_servers[0]
    async with api(cluster, 0) as first, api(cluster, 1) as second:
        await first.put_config_map("before-the-kill", a="b")
        await server.kill()
        with pytest.raises(OSError, match="Connect call failed"):
            await first.ask("GET", "/readyz")
        assert await second.config_map("before-the-kill") == {"a": "b"}
        with pytest.raises(EngineError, match=r"cannot pause kube-apiserver-0: it was killed by SIGKILL"):
            await server.pause()
        await server.start()
        assert await first.config_map("before-the-kill") == {"a": "b"}
        with pytest.raises(EngineError, match="is already running"):
            await server.start()


async def test_a_paused_api_server_is_silent_until_it_is_resumed(cluster, api) -> None:
    """Its connections are accepted by the kernel, and nothing answers."""
    server = cluster.api_servers[1]
    async with api(cluster, 1) as second:
        await server.pause()
        assert server.paused
        with pytest.raises(TimeoutError):
            await second.ask("GET", "/version", seconds=0.3)
        await server.resume()
        assert not server.paused
        status, answer = await second.ask("GET", "/version")
        assert (status, answer["major"]) == (200, "1")


async def test_compaction_expires_what_is_older(cluster, api) -> None:
    """A list at a resourceVersion below the compaction is answered 410."""
    async with api(cluster) as first:
        old = await first.put_config_map("before-compaction", a="b")
        await first.put_config_map("after-compaction", a="b")
        path = f"/api/v1/configmaps?resourceVersion={old}&resourceVersionMatch=Exact"
        status, _ = await first.ask("GET", path)
        assert status == 200
        assert await cluster.compact() > int(old)
        await cluster.api_servers[0].restart()
        status, answer = await first.ask("GET", path)
        assert (status, answer["reason"]) == (410, "Expired")
        with pytest.raises(EngineError, match="etcd rejected /v3/kv/compaction"):
            await cluster.compact(int(old))


async def test_a_restarted_etcd_keeps_its_data(api) -> None:
    """A single member killed in the middle of everything has every write that was acknowledged."""
    async with Engine.start() as engine, api(engine) as first:
        for number in range(20):
            await first.put_config_map(f"before-{number}", a="b")
        await engine.etcd[0].kill()
        await engine.etcd[0].restart()
        for number in range(20):
            assert await first.config_map(f"before-{number}") == {"a": "b"}
        await first.put_config_map("after", a="b")
