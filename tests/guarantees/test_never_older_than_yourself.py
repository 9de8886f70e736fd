"""Guarantee 3: what a reconcile reads is never older than what it wrote, however late the watch is."""

import asyncio
import json

import pytest

from samples.site import Site, site
from steersman import MergePatch, ObjectMeta
from steersman.controller import Done
from steersman.errors import ApiError, Conflict, NotFound, OutcomeUnknown
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import Manager

#: Writes, each followed by all four ways to read.
WRITES = 1000


def by_value(each):
    return [each.data["value"]] if each.data else []


class Once:
    """Runs a scenario in the first reconcile of each key and keeps what it failed with."""

    def __init__(self, scenario):
        self._scenario = scenario
        self._begun = set()
        self.ended = asyncio.Event()
        self.failure = None

    async def reconcile(self, ctx, request):
        if request in self._begun:
            return Done()
        self._begun.add(request)
        try:
            await self._scenario(ctx, request)
        except Exception as error:  # noqa: BLE001 - the test raises it
            self.failure = error
        self.ended.set()
        return Done()


class Child:
    """The object that a scenario writes, read in every way there is."""

    def __init__(self, ctx, request):
        self.client = ctx.client
        self.key = request.key
        self.value = 0
        self.owner = None

    async def start(self):
        self.owner = await self.client.get(Site, self.key)

    def intent(self):
        self.value += 1
        metadata = ObjectMeta(
            name=self.key.name, namespace=self.key.namespace, labels={"half": str(self.value % 2), "all": "yes"}
        )
        return ConfigMap(metadata=metadata, data={"value": str(self.value)})

    async def expect(self, value, uid=None):
        """All four reads show the value."""
        wanted = str(value)
        got = await self.client.get(ConfigMap, self.key)
        assert got.data["value"] == wanted
        assert uid is None or got.metadata.uid == uid
        listed = await self.client.list(ConfigMap, namespace=self.key.namespace, labels=f"half={value % 2}")
        assert [each.data["value"] for each in listed] == [wanted]
        others = await self.client.list(ConfigMap, namespace=self.key.namespace, labels=f"half={(value + 1) % 2}")
        assert list(others) == []
        assert [each.key for each in await self.client.by_index(ConfigMap, "value", wanted)] == [self.key]
        assert list(await self.client.by_index(ConfigMap, "value", str(value - 1))) == []
        owned = await self.client.owned_by(ConfigMap, self.owner)
        assert [each.data["value"] for each in owned] == [wanted]

    async def expect_nothing(self):
        assert await self.client.find(ConfigMap, self.key) is None
        assert list(await self.client.list(ConfigMap, namespace=self.key.namespace)) == []
        assert list(await self.client.by_index(ConfigMap, "value", str(self.value))) == []
        assert list(await self.client.owned_by(ConfigMap, self.owner)) == []


def manager_of(client, namespace, reconciler, **options):
    manager = Manager(client, namespaces=[namespace])
    manager.index(ConfigMap, "value", by_value)
    manager.controller(Site).owns(ConfigMap).options(timeout=60.0, **options).run_with(reconciler)
    return manager


@pytest.fixture
def play(client, namespace, line, running):
    """Plays a scenario in a reconcile whose watches come late, and raises what it failed with."""

    async def play(scenario):
        await client.create(site("own", namespace))
        once = Once(scenario)
        async with running(manager_of(client.with_transport(line.wrap), namespace, once)):
            await once.ended.wait()
        if once.failure is not None:
            raise once.failure

    return play


async def test_never_older_than_yourself(play, line):
    """A thousand writes of every kind, each read back at once in all ways, with the watch a quarter second behind."""

    async def scenario(ctx, request):
        child = Child(ctx, request)
        await child.start()
        line.delay = 0.25
        await ctx.client.apply(child.intent(), owner=child.owner)
        for number in range(WRITES):
            match number % 10:
                case 0:
                    await ctx.client.delete(ConfigMap, child.key)
                    await child.expect_nothing()
                    made = await ctx.client.apply(child.intent(), owner=child.owner)
                    await child.expect(child.value, made.metadata.uid)
                case 1 | 2 | 3:
                    current = await ctx.client.get(ConfigMap, child.key)
                    intent = child.intent()
                    current.data, current.metadata.labels = intent.data, intent.metadata.labels
                    await ctx.client.update(current)
                case 4 | 5 | 6:
                    intent = child.intent()
                    patch = {"data": intent.data, "metadata": {"labels": intent.metadata.labels}}
                    await ctx.client.patch(ConfigMap, child.key, MergePatch(patch))
                case _:
                    await ctx.client.apply(child.intent(), owner=child.owner, force=True)
            await child.expect(child.value)

    await play(scenario)


async def test_never_older_than_yourself_when_the_answer_is_lost(play, line):
    """The write happened and its answer did not arrive: the next read of any form shows it."""

    async def scenario(ctx, request):
        child = Child(ctx, request)
        await child.start()
        await ctx.client.apply(child.intent(), owner=child.owner)
        line.delay = 0.25
        line.loses = lambda sent: "configmaps" in sent.path
        for _ in range(20):
            with pytest.raises(OutcomeUnknown):
                await ctx.client.apply(child.intent(), owner=child.owner, force=True)
            await child.expect(child.value)
        with pytest.raises(OutcomeUnknown):
            await ctx.client.delete(ConfigMap, child.key)
        await child.expect_nothing()
        with pytest.raises(OutcomeUnknown):
            await ctx.client.apply(child.intent(), owner=child.owner)
        await child.expect(child.value)

    await play(scenario)
    assert line.lost == 22


FAILURE = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": "etcdserver: request timed out",
    "code": 500,
}
UNREADABLE = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "own"}, "data": ["not", "a", "map"]}


@pytest.mark.parametrize("answer", [(500, FAILURE), (200, UNREADABLE)], ids=["failure", "unreadable"])
async def test_never_older_than_yourself_when_the_answer_tells_nothing(play, line, answer):
    """The write happened, and the answer is a failure of the server's, or nothing that our type can hold."""
    code, body = answer

    async def scenario(ctx, request):
        child = Child(ctx, request)
        await child.start()
        await ctx.client.apply(child.intent(), owner=child.owner)
        line.delay = 5.0
        line.garbles = lambda sent: (code, json.dumps(body).encode()) if "configmaps" in sent.path else None
        for _ in range(3):
            with pytest.raises(ApiError):
                await ctx.client.apply(child.intent(), owner=child.owner, force=True)
            await child.expect(child.value)

    await play(scenario)


async def test_never_older_than_yourself_when_a_write_is_cancelled(play, line):
    """A write that was given up in the middle may have happened: the next read asks the server."""

    async def scenario(ctx, request):
        child = Child(ctx, request)
        await child.start()
        await ctx.client.apply(child.intent(), owner=child.owner)
        line.delay = 5.0
        inner = line._inner
        arrived = asyncio.Event()

        class Late:
            """Does the write and keeps its answer."""

            async def send(self, sent, **options):
                response = await inner.send(sent, **options)
                if sent.method != "GET":
                    await response.read()
                    arrived.set()
                    await asyncio.Event().wait()
                return response

        line._inner = Late()
        writing = asyncio.ensure_future(  # noqa: TID251 - cancelled below
            ctx.client.apply(child.intent(), owner=child.owner, force=True)
        )
        await arrived.wait()
        writing.cancel()
        await asyncio.wait((writing,))
        line._inner = inner
        await child.expect(child.value)

    await play(scenario)


async def test_never_older_than_yourself_after_a_conflict(play, line, other):
    """A refused write changes nothing; what is read is still one's own last write, or the newer one it met."""

    async def scenario(ctx, request):
        child = Child(ctx, request)
        await child.start()
        await ctx.client.apply(child.intent(), owner=child.owner)
        line.delay = 0.25
        for _ in range(10):
            before = await ctx.client.get(ConfigMap, child.key)
            await ctx.client.apply(child.intent(), owner=child.owner, force=True)
            before.data = {"value": "lost update"}
            with pytest.raises(Conflict):
                await ctx.client.update(before)
            await child.expect(child.value)
        await other.patch(ConfigMap, child.key, MergePatch({"data": {"value": "-1"}}))
        mine = await ctx.client.get(ConfigMap, child.key)
        assert mine.data["value"] in {str(child.value), "-1"}

    await play(scenario)


async def test_never_older_than_yourself_after_deleting_many(play, line):
    """What a deletion of all matching objects took is not shown again."""

    async def scenario(ctx, request):
        child = Child(ctx, request)
        await child.start()
        for number in range(5):
            metadata = ObjectMeta(name=f"many-{number}", namespace=child.key.namespace, labels={"many": "yes"})
            await ctx.client.create(ConfigMap(metadata=metadata, data={"value": "many"}))
        line.delay = 5.0
        await ctx.client.delete_collection(ConfigMap, namespace=child.key.namespace, labels="many=yes")
        assert list(await ctx.client.list(ConfigMap, namespace=child.key.namespace, labels="many=yes")) == []
        assert list(await ctx.client.by_index(ConfigMap, "value", "many")) == []
        with pytest.raises(NotFound):
            await ctx.client.get(ConfigMap, (child.key.namespace, "many-0"))

    await play(scenario)


async def test_never_older_than_yourself_when_the_last_finalizer_goes(play, line):
    """The write that removes it removes the object, and its answer shows the version from before."""

    async def scenario(ctx, request):
        child = Child(ctx, request)
        await child.start()
        intent = child.intent()
        intent.metadata.finalizers = ["example.com/one", "example.com/two"]
        made = await ctx.client.apply(intent, owner=child.owner)
        line.delay = 0.25
        assert await ctx.client.delete(made) is not None
        one = MergePatch({"metadata": {"finalizers": ["example.com/one"]}})
        await ctx.client.patch(ConfigMap, child.key, one)
        assert (await ctx.client.get(ConfigMap, child.key)).metadata.finalizers == ["example.com/one"]
        await ctx.client.patch(ConfigMap, child.key, MergePatch({"metadata": {"finalizers": None}}))
        await child.expect_nothing()
        again = await ctx.client.apply(child.intent(), owner=child.owner)
        await child.expect(child.value, again.metadata.uid)

    await play(scenario)


async def test_never_older_than_yourself_without_waiting_for_others(client, namespace, line, running, until):
    """While one key's watch is far behind its writes, other keys read and write as fast as ever."""
    await client.create(site("slow", namespace))
    done, seconds = set(), []

    class Writes:
        async def reconcile(self, ctx, request):
            if request in done:
                return Done()
            began = asyncio.get_running_loop().time()
            found = await ctx.client.get(Site, request.key)
            metadata = ObjectMeta(name=request.key.name, namespace=request.key.namespace)
            await ctx.client.apply(ConfigMap(metadata=metadata, data={"value": "1"}), owner=found)
            assert (await ctx.client.get(ConfigMap, request.key)).data == {"value": "1"}
            seconds.append(asyncio.get_running_loop().time() - began)
            done.add(request)
            return Done()

    manager = manager_of(client.with_transport(line.wrap), namespace, Writes())
    async with running(manager):
        await until(lambda: len(done) == 1)
        for number in range(20):
            await client.create(site(f"other-{number}", namespace))
        line.delay = 5.0
        await until(lambda: len(done) == 21)
    # none of them waited for a watch that is five seconds behind
    assert max(seconds) < 5.0


async def test_never_older_than_yourself_and_no_echo(client, namespace, line, running, until, runs_when_quiet):
    """One reconcile and two writes an object: the events of one's own writes, however late, make no further run."""

    class Publishes:
        async def reconcile(self, ctx, request):
            found = await ctx.client.get(Site, request.key)
            metadata = ObjectMeta(name=request.key.name, namespace=request.key.namespace)
            await ctx.client.apply(ConfigMap(metadata=metadata, data={"image": found.spec.image}), owner=found)
            await ctx.client.patch(
                Site, request.key, MergePatch({"status": {"replicas": 1, "readyReplicas": 1}}), subresource="status"
            )
            return Done()

    line.delay = 0.05
    manager = manager_of(client.with_transport(line.wrap), namespace, Publishes())
    async with running(manager):
        for number in range(30):
            await client.create(site(f"s{number}", namespace))
        statistics = manager.controllers[0].statistics
        await until(lambda: statistics().echoes == 60)
        assert await runs_when_quiet(manager) == 30
        assert statistics().results == {"success": 30}
    assert len(line.writes) == 60
