"""Guarantees 4 and 5 while an operator is updated: two versions of it, with other fields and children, at the same objects.

The old version knows neither `spec.theme` nor `status.theme`, which the new one's CRD has, and makes another child.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from steersman import Done, Kind, ObjectMeta, Resource, Spec, Status
from steersman.aio import Supervisor
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection, Manager
from steersman.patterns import Outputs, reconciles

GROUP = "rolling.test.steersman.dev"
#: Half of the seconds that two versions fight: the longer they do, the longer the last one waits before it writes again.
HALF = 3.0
BLOG = Kind(f"{GROUP}/v1", "Blog")


class OldSpec(Spec):
    title: str


class OldStatus(Status):
    pages: int | None = None


class OldBlog(Resource[OldSpec, OldStatus], group=GROUP, version="v1", kind="Blog", plural="blogs"):
    """A Blog as the old version knows it."""


class NewSpec(Spec):
    title: str
    theme: str | None = None


class NewStatus(Status):
    pages: int | None = None
    theme: str | None = None


class Blog(Resource[NewSpec, NewStatus], group=GROUP, version="v1"):
    """A Blog as the new version knows it."""


def page(name, **data):
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def old_version():
    @reconciles(OldBlog, children=(ConfigMap,))
    async def blogs(blog: OldBlog, out: Outputs) -> Done:
        out.apply(page(f"{blog.key.name}-index", title=blog.spec.title))
        out.apply(page(f"{blog.key.name}-robots", all="yes"))
        blog.status = blog.status or OldStatus()
        blog.status.pages = 1
        return Done()

    return blogs


def new_version():
    @reconciles(Blog, children=(ConfigMap,))
    async def blogs(blog: Blog, out: Outputs) -> Done:
        theme = blog.spec.theme or "plain"
        out.apply(page(f"{blog.key.name}-index", title=blog.spec.title, theme=theme))
        out.apply(page(f"{blog.key.name}-feed", rss="yes"))
        blog.status = blog.status or NewStatus()
        blog.status.pages, blog.status.theme = 2, theme
        return Done()

    return blogs


class Writes:
    """A transport that counts the writes to objects."""

    def __init__(self, transport, made):
        self._transport = transport
        self.made = made

    async def send(self, request, **options):
        if request.method != "GET" and "/leases" not in request.path and "/events" not in request.path:
            self.made.append((asyncio.get_running_loop().time(), request.method, request.path))
        return await self._transport.send(request, **options)

    async def close(self):
        await self._transport.close()


@asynccontextmanager
async def running(client, namespace, operator, *, identity=None):
    """One version at work; what it wrote."""
    made = []
    election = LeaderElection("blogs", namespace=namespace, identity=identity) if identity else None
    writing = client.with_transport(lambda inner: Writes(inner, made), field_manager="blogs")
    manager = Manager(writing, name="blogs", leader=election, namespaces=[namespace], grace=5)
    manager.add(operator)
    async with Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name=f"manager {identity}")
        yield made
        manager.stop()


@pytest.fixture
async def blog(client, install, namespace):
    await install(Blog)
    metadata = ObjectMeta(name="home", annotations={"theirs": "kept"})
    return await client.create(Blog(metadata=metadata, spec=NewSpec(title="Home", theme="dark")))


async def children(client, namespace):
    found = await client.list(ConfigMap, namespace=namespace)
    return {each.key.name: dict(each.data or {}) for each in found if each.key.name.startswith("home-")}


NEW = {"home-index": {"title": "Home", "theme": "dark"}, "home-feed": {"rss": "yes"}}
OLD = {"home-index": {"title": "Home"}, "home-robots": {"all": "yes"}}


async def converged(client, namespace, wanted, pages, *, seconds=60.0):
    """Wait until children and status are those of one version."""
    async with asyncio.timeout(seconds):
        while True:
            status = (await client.get(BLOG, "home")).tree.get("status") or {}
            if await children(client, namespace) == wanted and status.get("pages") == pages:
                return status
            await asyncio.sleep(0.1)


async def becomes_quiet(*writes, seconds=3.0, rounds=5):
    """Wait until nothing is written for a while; on a slow machine, the last status may still be on its way."""
    for _ in range(rounds):
        before = [len(each) for each in writes]
        await asyncio.sleep(seconds)
        if [len(each) for each in writes] == before:
            return
    raise AssertionError(f"still writing: {writes}")


async def test_a_rolling_update_hands_over(client, blog, namespace):
    """The new version waits for the lease of the old one; then it adds its fields and removes what is no longer made."""
    async with running(client, namespace, new_version(), identity="new") as new:
        # the new pod may have led before the old one was gone: one leads first, and the other follows
        await converged(client, namespace, NEW, 2)
        async with running(client, namespace, old_version(), identity="old") as old:
            await becomes_quiet(new, old)
            assert old == []
    async with running(client, namespace, old_version(), identity="old") as old:
        status = await converged(client, namespace, OLD, 1)
        # rolled back: what the old version does not know, it does not touch
        assert status["theme"] == "dark"
        assert (await client.get(BLOG, "home")).tree["spec"] == {"title": "Home", "theme": "dark"}
        async with running(client, namespace, new_version(), identity="new") as new:
            await becomes_quiet(new, old)
            assert new == []
    async with running(client, namespace, new_version(), identity="new") as new:
        status = await converged(client, namespace, NEW, 2)
        assert status["theme"] == "dark"
        await becomes_quiet(new)
        assert len(new) <= 8, new


@pytest.mark.slow
async def test_two_versions_without_an_election_fight_within_bounds(client, blog, namespace):
    """By mistake both write: the user's fields stay, the fight slows down, and it ends with the old version."""
    loop = asyncio.get_running_loop()
    async with running(client, namespace, new_version()) as new:
        await converged(client, namespace, NEW, 2)
        async with running(client, namespace, old_version()) as old:
            while not old:  # noqa: ASYNC110 - a write sets no event
                await asyncio.sleep(0.01)
            begun = loop.time()
            # how much is written in a time is what is measured
            await asyncio.sleep(2 * HALF)
            early = sum(at < begun + HALF for at, _, _ in [*old, *new])
            late = sum(at >= begun + HALF for at, _, _ in [*old, *new])
            assert 0 < early + late < 400
            assert late < early
            found = (await client.get(BLOG, "home")).tree
            assert found["spec"] == {"title": "Home", "theme": "dark"}
            assert found["metadata"]["annotations"] == {"theirs": "kept"}
        ended = loop.time(), len(new)
        status = await converged(client, namespace, NEW, 2)
        assert status["theme"] == "dark"
        assert len(new) - ended[1] < 20
        await becomes_quiet(new)
        assert (await client.get(BLOG, "home")).tree["spec"] == {"title": "Home", "theme": "dark"}
