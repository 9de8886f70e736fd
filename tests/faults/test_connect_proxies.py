"""An operator that leads through an HTTP proxy: every connection of it is a tunnel, those of the Lease as well."""

import dataclasses

import pytest
import yaml
from faults.connect_proxy import ConnectProxy
from faults.leading import KEYS, leading, now
from faults.workload import until

from steersman.client import load_kubeconfig
from steersman.client.configuration.config import hidden
from steersman.testing import FaultProxy

pytestmark = pytest.mark.slow


def through(engine, proxy, server=""):
    """The configuration of the engine's kubeconfig, with a proxy before its server."""
    config = load_kubeconfig(engine.kubeconfig)
    return dataclasses.replace(config, server=server or config.server, proxy_url=hidden(proxy.url))


async def test_every_connection_goes_through_the_proxy_of_the_kubeconfig(broken_engine, room, tmp_path):
    """The server is behind a second door that only the proxy knows: what passed it is what the proxy let through."""
    async with ConnectProxy(password="s3cret").serve() as proxy, FaultProxy(broken_engine.url) as door:
        document = yaml.safe_load(broken_engine.kubeconfig.read_text())
        document["clusters"][0]["cluster"] |= {"proxy-url": proxy.url, "server": door.url}
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(document))
        async with leading(broken_engine, load_kubeconfig(kubeconfig), room) as leader:
            await leader.asks()
            await leader.tells()
            assert leader.leads_its_first_term()
            # reconciles, a watch of ConfigMaps, the Lease, the watch of the Lease
            assert len(proxy.opened) == door.accepted >= 4
            assert {f"https://{target}" for target in proxy.opened} == {door.url}
            assert proxy.refused == []
            proxy.cut()
            await leader.asks()
            assert leader.leads_its_first_term()
            assert len(proxy.opened) == door.accepted


async def test_a_proxy_closes_what_is_idle(broken_engine, room):
    """Watches that say nothing for a second, and the Lease between two renewals: no term ends, no write fails."""
    async with (
        ConnectProxy(idle=1.0).serve() as proxy,
        leading(broken_engine, through(broken_engine, proxy), room) as leader,
    ):
        begun = now()
        await until(lambda: proxy.closed_idle >= 4, "idle tunnels were closed")
        await leader.asks()
        await leader.tells()
        assert leader.leads_its_first_term()
        lost = [each for each in leader.requests.sent if each.is_lost_write]
        # A tunnel with a request is idle too if the server takes longer than a second, on a machine that stands still.
        assert [each for each in lost if each.seconds < 1.0] == []
        assert leader.failures <= len(lost)
        opened = len(proxy.opened)
        # the Lease: one tunnel for each renewal at most; its watch and those of quiet kinds wait, each time longer
        assert opened / (now() - begun) < 5


@pytest.mark.parametrize("refusal", ["502 Bad Gateway", "407 Proxy Authentication Required"])
async def test_a_proxy_refuses_for_a_while(broken_engine, room, refusal):
    """For six seconds there is no tunnel: no request is retried in a loop, the term outlives it, and writes go on."""
    async with (
        ConnectProxy().serve() as proxy,
        leading(broken_engine, through(broken_engine, proxy), room) as leader,
    ):
        proxy.refusal = refusal
        proxy.cut()
        begun = now()
        await until(lambda: now() > begun + 6, "six seconds have passed")
        proxy.refusal = ""
        ended, refused = now(), len(proxy.refused)
        await leader.more(KEYS, seconds=60.0)
        recovered = now() - ended
        await leader.asks(seconds=60.0)
        await leader.tells()
        assert leader.leads_its_first_term()
        assert 0 < refused < 150
        assert recovered < 45


async def test_the_environment_names_the_proxy_and_what_needs_none(broken_engine, room, another_room, monkeypatch):
    """HTTPS_PROXY is for servers elsewhere: NO_PROXY, by name, and the machine's own addresses are reached directly."""
    async with ConnectProxy().serve() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        config = load_kubeconfig(broken_engine.kubeconfig)
        port = config.server.rpartition(":")[2]
        async with leading(broken_engine, config, room) as leader:
            await leader.more(1)
        assert proxy.opened == []
        # the name is in the server's certificate, and the proxy resolves it
        proxy.names["kubernetes.default.svc"] = "127.0.0.1"
        elsewhere = dataclasses.replace(config, server=f"https://kubernetes.default.svc:{port}")
        async with leading(broken_engine, elsewhere, another_room) as leader:
            await leader.asks()
            assert leader.leads_its_first_term()
        assert set(proxy.opened) == {f"kubernetes.default.svc:{port}"}
