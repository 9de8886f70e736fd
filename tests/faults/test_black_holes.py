"""Connections that go silent without an error: reads, writes, watches and the Lease of a leader.

The times are those of the defaults: a renewal waits half of `renew`, a write what the lease leaves it, a stream its
`idle_timeout`. A test on a busy machine gets some seconds more.
"""

import pytest
from faults.leading import KEYS, leading, now
from faults.workload import until

from steersman import Client
from steersman.errors import DeadlineExceeded
from steersman.kinds.core_v1 import ConfigMap

pytestmark = pytest.mark.slow

#: For a machine that is busy with other tests.
SLACK = 30.0


async def test_connections_become_black_holes_under_a_leader(broken_engine, proxy, room):
    """A renewal finds a new connection in time, so the term goes on; writes go on before a lease has passed."""
    config = proxy.config(broken_engine.kubeconfig)
    async with leading(broken_engine, config, room, idle_timeout=12.0) as leader:
        begun = now()
        assert proxy.freeze() >= 4
        renewed = [each for each in leader.requests.sent if each.is_renewal]
        await until(
            lambda: any(each.code == 200 for each in leader.requests.sent if each.is_renewal and each not in renewed),
            "the Lease is renewed on a new connection",
        )
        renewal = now() - begun
        await leader.more(KEYS)
        writing = now() - begun
        await leader.asks(seconds=60.0)
        watching = now() - begun
        await leader.tells()
        assert leader.leads_its_first_term()
        assert renewal < 10 + SLACK
        assert writing < 15 + SLACK
        assert watching < 15 + SLACK
        await proxy.heal()


async def test_nothing_comes_for_longer_than_a_term(broken_engine, proxy, room):
    """New connections are black holes, too: the term ends, and when the network is back the operator leads again."""
    config = proxy.config(broken_engine.kubeconfig)
    async with leading(broken_engine, config, room, idle_timeout=12.0) as leader:
        begun = now()
        proxy.stall()
        await until(lambda: not leader.manager.statistics().leader.leading, "the term ends")
        deposed = now() - begun
        assert not leader.manager.statistics().leader.leading
        written = len(leader.written)
        await until(lambda: now() > begun + 14, "fourteen seconds have passed")
        assert len(leader.written) == written
        healed = now()
        proxy.cut()
        await proxy.heal()
        await until(lambda: len(leader.terms) == 2, "it leads again")
        again = now() - healed
        await leader.asks(seconds=60.0)
        assert 0 < deposed < 10 + SLACK
        assert again < 10 + SLACK
        assert leader.rate(begun, healed) < 10


async def test_a_read_past_the_cache_ends_with_its_timeout(broken_engine, proxy, room):
    """`Client.connect(timeout=...)`, a minute by default; the next read has a new connection."""
    config = proxy.config(broken_engine.kubeconfig)
    async with Client.connect(config, namespace=room, timeout=3.0) as client:
        await client.list(ConfigMap, namespace=room)
        assert proxy.freeze() == 1
        begun = now()
        with pytest.raises(DeadlineExceeded, match="did not respond in time"):
            await client.list(ConfigMap, namespace=room)
        assert 3 <= now() - begun < 3 + SLACK
        await client.list(ConfigMap, namespace=room)
        assert proxy.accepted == 2
        await proxy.heal()
