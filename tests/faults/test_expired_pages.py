"""etcd's history is compacted in the middle of a list, and between a list and its watch: kube-apiserver answers 410.

The engine of this file serves lists from etcd and streams no lists, as Kubernetes did before 1.32: with its own memory the
server can answer from a history that etcd has forgotten.
"""

import asyncio

import pytest
from faults.leading import leading, now

from steersman import Client, MergePatch, ObjectMeta
from steersman.client import load_kubeconfig
from steersman.errors import Expired
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection
from steersman.testing import Engine
from steersman.testing.plugin import namespace_for

pytestmark = pytest.mark.slow

#: More than a page of a reflector.
MANY = 520


@pytest.fixture(scope="module")
def forgetful_engine():
    gates = "--feature-gates=WatchList=false,ListFromCacheSnapshot=false"
    with Engine.start(flags={"kube-apiserver": [gates]}) as engine:
        yield engine


@pytest.fixture
async def room(forgetful_engine, request):
    name = namespace_for(request.node.name)
    await forgetful_engine.create_namespace(name)
    async with forgetful_engine.client(namespace=name, field_manager="user") as client, asyncio.TaskGroup() as tasks:
        numbers = iter(range(MANY))

        async def create():
            for number in numbers:
                await client.create(ConfigMap(metadata=ObjectMeta(name=f"page-{number:04}")))

        for _ in range(8):
            tasks.create_task(create())
    return name


async def forget(engine, namespace):
    """Write, and have etcd forget everything before that."""
    async with engine.client(namespace=namespace, field_manager="user") as client:
        await client.patch(ConfigMap, "page-0000", MergePatch({"data": {"touched": str(now())}}))
    await engine.compact()


class Forgetting:
    """Has etcd forget between two pages of a list, so many times."""

    def __init__(self, engine, namespace, times):
        self._engine = engine
        self._namespace = namespace
        self.left = times
        self.pages = 0
        self.whole = 0

    async def __call__(self, request):
        query = dict(request.query)
        if "watch" in query or not request.path.endswith(f"/{self._namespace}/configmaps") or request.method != "GET":
            return
        self.pages += "limit" in query
        self.whole += "limit" not in query
        if "continue" in query and self.left:
            self.left -= 1
            await forget(self._engine, self._namespace)


async def test_a_list_of_a_client_is_whole_although_its_pages_expired(forgetful_engine, room):
    """`list` reads everything at once then; `pages` and `iterate`, which have handed out a part, say so."""
    forgetting = Forgetting(forgetful_engine, room, 1)
    async with Client.connect(kubeconfig=forgetful_engine.kubeconfig, namespace=room) as client:

        class Hooked:
            def __init__(self, transport):
                self._transport = transport

            async def send(self, request, **options):
                await forgetting(request)
                return await self._transport.send(request, **options)

            async def close(self):
                await self._transport.close()

        hooked = client.with_transport(Hooked)
        found = await hooked.list(ConfigMap, namespace=room, page_size=100)
        assert forgetting.left == 0
        assert sum(each.key.name.startswith("page-") for each in found) == MANY
        assert (forgetting.pages, forgetting.whole) == (2, 1)
        forgetting.left = 1
        with pytest.raises(Expired):
            [each async for each in hooked.iterate(ConfigMap, namespace=room, page_size=100)]


async def test_pages_expire_while_a_cache_lists_under_a_leader(forgetful_engine, room):
    """The reflector reads the list again, in one answer; the leader goes on meanwhile, and misses nothing."""
    forgetting = Forgetting(forgetful_engine, room, 3)
    async with leading(forgetful_engine, load_kubeconfig(forgetful_engine.kubeconfig), room) as leader:
        (informer,) = leader.manager.informers
        before = informer.statistics().scopes[0].lists
        leader.requests.hook = forgetting
        begun = now()
        await informer.refresh()
        assert forgetting.whole > 0
        await leader.outside.patch(ConfigMap, "page-0519", MergePatch({"data": {"late": "yes"}}))
        await leader.asks(seconds=60.0)
        scope = informer.statistics().scopes[0]
        assert leader.leads_its_first_term()
        assert leader.failures == 0
        assert leader.silence(begun) < 30
        assert scope.lists - before <= 4


async def test_a_watch_expires_between_its_list_and_its_beginning(forgetful_engine, room):
    """The server restarts in that moment, with a history that begins after the list; the list is read once more."""
    (server,) = forgetful_engine.api_servers
    reached, restarted = asyncio.Event(), asyncio.Event()

    async def hook(request):
        if dict(request.query).get("watch") and request.path.endswith(f"/{room}/configmaps"):
            reached.set()
            await restarted.wait()

    config = load_kubeconfig(forgetful_engine.kubeconfig)
    # a term that outlives the restart of a server on a busy machine
    election = LeaderElection("operator", lease=90.0, renew=60.0)
    async with leading(forgetful_engine, config, room, election=election) as leader:
        (informer,) = leader.manager.informers
        before = informer.statistics().scopes[0].lists
        leader.requests.hook = hook
        await informer.refresh()
        await reached.wait()
        await forget(forgetful_engine, room)
        # a stop would wait for the watches that are open
        await server.kill()
        await server.start()
        restarted.set()
        await leader.asks(seconds=60.0)
        assert leader.leads_its_first_term()
        assert 2 <= informer.statistics().scopes[0].lists - before <= 4
