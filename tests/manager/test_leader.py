"""Leader election: who leads, who takes over, and that a deposed leader writes nothing."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from steersman import Client, ControlPlane, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.apiserver import Plugin
from steersman.client import RateLimit
from steersman.errors import NotLeading
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.manager import Campaign, LeaderElection, Term
from steersman.objects import Key
from steersman.testing import Engine


def election(namespace: str, *, identity: str | None = None, lease: float = 30.0) -> LeaderElection:
    """An election with terms that outlast the pauses of a busy machine, unless the lease is short."""
    return LeaderElection("ship", namespace=namespace, identity=identity, lease=lease, renew=0.7 * lease, retry=0.5)


def config_map(namespace: str, name: str = "log") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace))


async def test_a_released_lease_is_taken_at_once(client, namespace) -> None:
    """The successor does not wait for the next attempt, let alone for the lease to run out."""
    patient = LeaderElection("ship", namespace=namespace, lease=900.0, renew=600.0, retry=300.0)
    async with (
        asyncio.timeout(60),
        Supervisor() as tasks,
        AsyncExitStack() as campaigns,
        patient.campaign(client) as first,
    ):
        async with await anext(first) as term:
            second = await campaigns.enter_async_context(patient.campaign(client))
            assert first.leading
            await term.client.create(config_map(namespace))
            waiting = tasks.start(_next_term(second), name="successor")
            await asyncio.wait([waiting], timeout=1.0)
            assert not waiting.done()
            assert not second.leading
            assert second.leader == first.identity
        successor = await waiting
        assert successor.valid
        assert not term.valid


async def _next_term(campaign: Campaign) -> Term:
    return await anext(campaign)


async def test_a_candidate_that_hesitates_leaves_the_lease_to_another(client, namespace) -> None:
    async with asyncio.timeout(60), Supervisor() as tasks, AsyncExitStack() as campaigns:
        patient = LeaderElection("ship", namespace=namespace, lease=40.0, renew=20.0, retry=0.5)
        stale = await campaigns.enter_async_context(patient.campaign(client, hesitates=lambda: True))
        waiting = tasks.start(_next_term(stale), name="stale")
        await asyncio.wait([waiting], timeout=2.0)
        assert not waiting.done()
        healthy = await campaigns.enter_async_context(patient.campaign(client))
        term = await anext(healthy)
        assert term.valid
        assert not stale.leading
        waiting.cancel()


async def test_a_candidate_that_hesitates_leads_if_there_is_no_other(client, namespace) -> None:
    """Not before the Lease has been free for its duration."""
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(60), election(namespace, lease=3.0).campaign(client, hesitates=lambda: True) as campaign:
        term = await anext(campaign)
        assert asyncio.get_running_loop().time() - began >= 3.0
        assert term.valid


async def test_leaving_the_campaign_clears_the_holder(client, namespace) -> None:
    async with election(namespace, identity="me").campaign(client) as campaign, await anext(campaign):
        lease = await client.get(Lease, Key(namespace, "ship"))
        assert lease.spec.holder_identity == "me"
        assert lease.spec.lease_duration_seconds == 30
    lease = await client.get(Lease, Key(namespace, "ship"))
    assert lease.spec.holder_identity is None
    assert lease.spec.lease_duration_seconds == 1


async def test_what_others_put_on_the_lease_stays(client, namespace) -> None:
    """Annotations and fields that we do not set survive renewals and the release, and cost no term."""
    renewed = False
    async with election(namespace).campaign(client) as campaign, await anext(campaign) as term:
        key = Key(namespace, "ship")
        before = await client.patch(Lease, key, MergePatch({"metadata": {"annotations": {"note": "kept"}}}))
        await _changed(client, key, before.metadata.resource_version)
        renewed = term.valid
    assert renewed
    assert (await client.get(Lease, key)).metadata.annotations == {"note": "kept"}


async def _changed(client: Client, key: Key, version: str | None) -> None:
    async with asyncio.timeout(60), client.watch(Lease, namespace=key.namespace, resource_version=version) as events:
        await anext(aiter(events))


async def test_leadership_is_lost_and_regained_in_process(client, namespace) -> None:
    """A stolen lease cancels the body, refuses the old term's writes, and can be won again as a new term."""
    cancelled = asyncio.Event()
    terms = []
    async with asyncio.timeout(60), election(namespace).campaign(client) as campaign:
        async for term in campaign:
            terms.append(term)
            if len(terms) == 2:
                break
            async with term:
                thief = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 1}}
                await client.patch(Lease, Key(namespace, "ship"), MergePatch(thief))
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()
            assert not campaign.leading
        old, new = terms
        assert cancelled.is_set()
        assert new.valid
        with pytest.raises(NotLeading, match=r"create configmaps.*not sent.* no longer leads"):
            await old.client.create(config_map(namespace))
        assert (await old.client.list(ConfigMap, namespace=namespace)).items == []
        await new.client.create(config_map(namespace))


async def test_a_stolen_lease_ends_the_term_at_once(client, namespace) -> None:
    """A leader that sees another name on its Lease does not wait for its next renewal."""
    patient = LeaderElection("ship", namespace=namespace, lease=900.0, renew=600.0, retry=300.0)
    async with asyncio.timeout(60), patient.campaign(client) as campaign:
        async with await anext(campaign) as term:
            await client.patch(Lease, Key(namespace, "ship"), MergePatch({"spec": {"holderIdentity": "thief"}}))
            await asyncio.Event().wait()
        assert not term.valid
        assert campaign.leader == "thief"


@pytest.mark.parametrize("supervised", [True, False], ids=["in a task", "in the block"])
async def test_a_last_write_that_is_refused_is_no_failure(client, namespace, supervised) -> None:
    """Clean-up often writes; the program must campaign again, not end."""
    patient = LeaderElection("ship", namespace=namespace, lease=900.0, renew=600.0, retry=300.0)

    async def sail(term: Term) -> None:
        try:
            await client.patch(Lease, Key(namespace, "ship"), MergePatch({"spec": {"holderIdentity": "thief"}}))
            await asyncio.Event().wait()
        finally:
            await term.client.create(config_map(namespace))

    async with asyncio.timeout(60), patient.campaign(client) as campaign:
        async with await anext(campaign) as term, Supervisor() as tasks:
            if supervised:
                tasks.start(sail(term), name="sail")
            else:
                await sail(term)
        await asyncio.sleep(0)  # raises if a cancellation is left over
        assert campaign.leader == "thief"
    assert not await client.exists(ConfigMap, namespace=namespace, fields={"metadata.name": "log"})


async def test_a_stopped_process_cannot_write_when_it_goes_on(api_server, client, namespace) -> None:
    """SIGSTOP, another leads, SIGCONT: every write of the old leader is refused, also from a task without an owner."""
    key = Key(namespace, "log")
    await client.create(config_map(namespace))
    program = Path(__file__).with_name("stopped_leader.py")
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(program), str(api_server.kubeconfig), namespace, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(60):
            assert await child.stdout.readline() == b"leading\n"
            async with election(namespace).campaign(client) as campaign:
                child.send_signal(signal.SIGUSR1)  # it stops itself
                async with await anext(campaign) as term:
                    ours = await term.client.patch(ConfigMap, key, MergePatch({"data": {"writer": "the new one"}}))
                    child.send_signal(signal.SIGCONT)
                    assert await child.stdout.readline() == b"refused\n"
                    assert await child.stdout.readline() == b"lost\n"
                    found = await client.get(ConfigMap, key)
                    assert found.data == {"writer": "the new one"}
                    assert found.metadata.resource_version == ours.metadata.resource_version
            assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def _renewals(client: Client, key: Key, count: int) -> None:
    """Wait until the Lease was renewed so often."""
    before = (await client.get(Lease, key)).metadata.resource_version
    async with client.watch(Lease, namespace=key.namespace, resource_version=before) as events:
        seen = aiter(events)
        for _ in range(count):
            await anext(seen)


async def test_renewals_do_not_wait_for_a_connection(api_server, client, namespace) -> None:
    """A leader whose connections are all taken by slow requests keeps its term."""
    taken = Client.connect(kubeconfig=api_server.kubeconfig, namespace=namespace, max_connections=1)
    async with asyncio.timeout(60), taken as crowded, Supervisor() as tasks:
        # an answer without an end, read as a whole: it keeps the only connection
        endless = f"/api/v1/namespaces/{namespace}/configmaps?watch=true&timeoutSeconds=60"
        tasks.start(crowded.request("GET", endless), name="slow request")
        async with election(namespace).campaign(crowded) as campaign, await anext(campaign) as term:
            await _renewals(client, Key(namespace, "ship"), 4)
            assert term.valid
            assert term.number == 1
        tasks.cancel()
    assert (await client.get(Lease, Key(namespace, "ship"))).spec.holder_identity is None


async def test_renewals_do_not_wait_for_the_rate_limit(api_server, client, namespace) -> None:
    limit = RateLimit(per_second=0.01, burst=1)
    async with asyncio.timeout(60), api_server.client(rate_limit=limit) as limited, Supervisor() as tasks:
        for number in range(100):
            tasks.start(limited.create(config_map(namespace, f"queued-{number}")), name=f"queued {number}")
        async with election(namespace).campaign(limited) as campaign, await anext(campaign) as term:
            await _renewals(client, Key(namespace, "ship"), 4)
            assert term.valid
            assert term.number == 1
        tasks.cancel()


class SlowUpdates(Plugin):
    """An admission plugin that takes its time, as webhooks do."""

    operations = frozenset({"UPDATE"})

    async def validate(self, attributes) -> None:
        if attributes.name == "log":
            await asyncio.sleep(3.0)


async def test_a_write_may_take_longer_than_a_term_without_renewal() -> None:
    """A leader that renews can write to a server whose webhooks are slow."""
    slow = LeaderElection("ship", namespace="default", lease=30.0, renew=2.0, retry=0.5)
    async with asyncio.timeout(60), ControlPlane(admission=[SlowUpdates()], controllers=[]) as plane:
        client = Client(plane.transport(), namespace="default")
        await client.create(config_map("default"))
        async with slow.campaign(client) as campaign, await anext(campaign) as term:
            written = await term.client.patch(ConfigMap, Key("default", "log"), MergePatch({"data": {"a": "b"}}))
            assert written.data == {"a": "b"}
            assert term.valid


def test_a_pool_needs_a_place() -> None:
    with pytest.raises(ValueError, match="max_connections must be at least 1"):
        Client.connect(max_connections=0)


@pytest.mark.slow
async def test_a_server_that_does_not_answer_ends_the_term_in_time() -> None:
    """The term ends before the lease does, and is won again when the server goes on."""
    async with Engine.start() as engine, engine.client() as client, asyncio.timeout(60):
        loop = asyncio.get_running_loop()
        numbers = []
        async with election("default", lease=10.0).campaign(client) as campaign:
            async for term in campaign:
                numbers.append(term.number)
                if len(numbers) == 2:
                    break
                async with term:
                    await engine.api_servers[0].pause()
                    paused = loop.time()
                    await asyncio.Event().wait()
                assert not term.valid
                assert loop.time() - paused < 10.0
                await engine.api_servers[0].resume()
        assert numbers == [1, 2]


async def test_a_campaign_outlives_what_it_may_not_write(client, api_server, namespace, caplog) -> None:
    """Without its namespace there is no Lease: it complains once, and leads as soon as there is one."""
    missing = f"late-{namespace[-50:].lstrip('-')}"
    async with asyncio.timeout(60), election(missing).campaign(client) as campaign:
        while not caplog.messages:  # noqa: ASYNC110 - a log sets no event
            await asyncio.sleep(0.05)
        await client.create(Namespace(metadata=ObjectMeta(name=missing)))
        async with await anext(campaign) as term:
            assert term.number == 1
    assert len([message for message in caplog.messages if "cannot read or write" in message]) == 1
    await api_server.delete_namespace(missing)


async def test_leaving_the_campaign_ends_work_in_other_tasks_before_the_release(client, namespace) -> None:
    """A task that is still in the block of a term is cancelled, and the lease is held until it has ended."""
    holders: list[str | None] = []
    entered = asyncio.Event()
    key = Key(namespace, "ship")

    async def work(term: Term) -> None:
        async with term:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                holders.append((await client.get(Lease, key)).spec.holder_identity)

    async with asyncio.timeout(60), Supervisor() as tasks:
        async with election(namespace, identity="me").campaign(client) as campaign:
            tasks.start(work(await anext(campaign)), name="work")
            await entered.wait()
        holders.append((await client.get(Lease, key)).spec.holder_identity)
    assert holders == ["me", None]


async def test_a_failure_in_a_term_releases_the_lease_and_goes_on(client, namespace) -> None:
    async def fail() -> None:
        async with election(namespace).campaign(client) as campaign, await anext(campaign):
            raise KeyError("aground")

    with pytest.raises(KeyError, match="aground"):
        await fail()
    assert (await client.get(Lease, Key(namespace, "ship"))).spec.holder_identity is None


async def test_cancelling_the_leader_releases_the_lease(client, namespace) -> None:
    """A cancellation from outside is not mistaken for a lost term."""
    leading = asyncio.Event()

    async def lead() -> None:
        async with election(namespace).campaign(client) as campaign:
            async for term in campaign:
                async with term:
                    leading.set()
                    await asyncio.Event().wait()

    async with asyncio.timeout(60), Supervisor() as tasks:
        task = tasks.start(lead(), name="lead")
        await leading.wait()
        task.cancel()
    assert task.cancelled()
    assert (await client.get(Lease, Key(namespace, "ship"))).spec.holder_identity is None


async def test_three_candidates_lead_one_after_the_other(client, namespace) -> None:
    """Each leads once; no two at a time."""
    leading: list[str] = []
    most = 0

    async def take_part(name: str) -> None:
        nonlocal most
        async with election(namespace, identity=name).campaign(client) as campaign, await anext(campaign):
            leading.append(name)
            most = max(most, len(leading))
            await asyncio.sleep(0.1)
            leading.remove(name)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for name in ("one", "two", "three"):
            group.create_task(take_part(name))
    assert most == 1
    lease = await client.get(Lease, Key(namespace, "ship"))
    assert lease.spec.holder_identity is None


def test_an_election_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="name of the Lease"):
        LeaderElection("")


def test_patience_is_checked_where_it_is_written() -> None:
    with pytest.raises(ValueError, match=r"lease > renew > 1\.2 x retry"):
        LeaderElection("ship", lease=10.0)
