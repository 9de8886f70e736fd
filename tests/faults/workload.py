"""A world to break: Sites that become two children and a status each, by a manager that must not notice much.

`Operator` is the manager under test with its requests counted; `Changes` goes on changing specs whatever happens;
`World` says whether everything is as it should be, and whether nothing happens any more.
"""

import asyncio
import re
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from samples import portions
from samples.raw_server import open_files
from samples.site import Site, site
from steersman import Client, MergePatch, ObjectMeta, aio
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.client import Config, Impersonation, RetryPolicy, load_kubeconfig
from steersman.controller import Context, Done, Request
from steersman.errors import ApiError, NotFound
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.manager import Manager

#: Whom the operator acts as: administrators are exempt from the limits of the server.
OPERATOR = "operator"
CONCURRENCY = 8
#: How long nothing may happen once everything is as it should be.
QUIET_SECONDS = 30.0 if portions.ALL else 3.0
#: How long healing may take; far more than it does, for machines that are busy.
PATIENCE = 90.0

_COUNTED = re.compile(r"^apiserver_request_total\{(?P<labels>[^}]*)\} (?P<count>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITING = {"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
_RESOURCES = {"sites", "configmaps", "secrets"}


class Publisher:
    """A ConfigMap and a Secret for each Site, and a status that says for which spec."""

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        try:
            found = await ctx.client.get(Site, request.key)
        except NotFound:
            return Done()
        metadata = ObjectMeta(name=request.key.name, namespace=request.key.namespace)
        await ctx.client.apply(ConfigMap(metadata=metadata, data={"image": found.spec.image}), owner=found)
        await ctx.client.apply(Secret(metadata=metadata, data={"image": found.spec.image.encode()}), owner=found)
        if found.status is None or found.status.replicas != found.spec.replicas:
            patch = MergePatch({"status": {"replicas": found.spec.replicas, "readyReplicas": 0}})
            await ctx.client.patch(Site, request.key, patch, subresource="status")
        return Done()


class Counting:
    """A transport that remembers what was asked, and when."""

    def __init__(self, transport):
        self._transport = transport
        self.sent = []

    async def send(self, request, **options):
        what = dict(request.query).get("fieldSelector", "")
        self.sent.append((asyncio.get_running_loop().time(), request.method, f"{request.path} {what}".strip()))
        return await self._transport.send(request, **options)

    async def close(self):
        await self._transport.close()

    def between(self, begun, ended):
        """How often each thing was asked in a time."""
        return Counter((method, path) for when, method, path in self.sent if begun <= when <= ended)


class Operator:
    """The manager under test."""

    def __init__(self, manager: Manager, counting: Counting):
        self.manager = manager
        self.counting = counting

    @property
    def reconciles(self) -> int:
        return sum(sum(each.results.values()) for each in self.manager.statistics().controllers)

    @property
    def lists(self) -> int:
        """How often a collection was read from the start, all kinds together."""
        return sum(scope.lists for informer in self.manager.statistics().informers for scope in informer.scopes)

    @property
    def watermarks(self) -> list[int]:
        """Up to which version each collection is known."""
        scopes = [scope for informer in self.manager.statistics().informers for scope in informer.scopes]
        return [int(scope.watermark or 0) for scope in scopes]

    def was_patient(self, begun: float, ended: float) -> None:
        """While nothing answered, each thing was asked for a few times only.

        A key's backoff doubles from 20 ms, so that it runs about ten times in ten seconds; a read in such a run is tried
        five times within one and a half. A collection is asked for once, at once, and then after seconds.
        """
        asked, seconds = self.counting.between(begun, ended), ended - begun
        assert max(asked.values(), default=0) <= 10 + 4 * seconds, asked.most_common(5)
        assert sum(asked.values()) <= (10 + seconds) * len(asked), asked.most_common(5)

    @property
    def idle(self) -> bool:
        """Whether every kind is followed and no key waits."""
        statistics = self.manager.statistics()
        scopes = [scope for informer in statistics.informers for scope in informer.scopes]
        waiting = sum(each.queue.ready + each.queue.delayed + each.queue.running for each in statistics.controllers)
        pending = sum(sum(informer.pending) for informer in statistics.informers)
        working = bool(statistics.controllers) and all(each.working for each in statistics.controllers)
        return working and bool(scopes) and all(each.phase == "watching" for each in scopes) and not waiting + pending


class World:
    """The Sites of one namespace, and what must be true of them."""

    def __init__(self, engine, client: Client, namespace: str, count: int):
        self.engine = engine
        self.client = client
        self.namespace = namespace
        self.names = [f"site-{number}" for number in range(count)]

    async def create(self) -> None:
        names = iter(self.names)

        async def worker():
            for name in names:
                await self.client.create(site(name, self.namespace, image="v0"))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(CONCURRENCY):
                tasks.create_task(worker())

    def config(self, server: str = "") -> Config:
        """How the operator reaches the server, or something before it."""
        config = load_kubeconfig(self.engine.kubeconfig)
        return replace(config, server=server or config.server, impersonation=Impersonation(user=OPERATOR))

    @asynccontextmanager
    async def operator(self, *, server: str = "", idle_timeout: float | None = None, leader=None, **client):
        """Run the manager for a block, until it has nothing to do; nothing of it is left afterwards."""
        port = urlsplit(server or self.engine.url).port
        tasks_before, files_before = asyncio.all_tasks(), open_files({port})
        only = KindOptions(namespaces=(self.namespace,), idle_timeout=idle_timeout)
        options = {"timeout": 5.0, "field_manager": "site-operator", "namespace": self.namespace} | client
        async with Client.connect(self.config(server), **options) as plain:
            counting = None

            def counted(transport):
                nonlocal counting
                counting = Counting(transport)
                return counting

            manager = Manager(
                plain.with_transport(counted),
                leader=leader,
                kinds=dict.fromkeys((Site, ConfigMap, Secret), only),
                grace=5.0,
            )
            builder = manager.controller(Site, name="sites").owns(ConfigMap).owns(Secret)
            builder.options(concurrency=CONCURRENCY).run_with(Publisher())
            operator = Operator(manager, counting)
            async with Supervisor() as tasks:
                tasks.start(manager.run(), name="manager")
                await until(lambda: operator.idle, "the manager has nothing to do")
                yield operator
                manager.stop()
        await until(lambda: asyncio.all_tasks() <= tasks_before, "every task has ended", seconds=10)
        # two: the engine itself may have asked its server meanwhile, in this process
        await until(lambda: len(open_files({port}) - files_before) <= 2, "every socket is closed", seconds=10)

    async def problems(self) -> list[str]:
        """What is not as it should be, as the server has it."""
        options = {"namespace": self.namespace}
        sites = {each.metadata.name: each for each in await self.client.list(Site, **options)}
        pages = {each.metadata.name: each for each in await self.client.list(ConfigMap, **options)}
        secrets = {each.metadata.name: each for each in await self.client.list(Secret, **options)}
        found = []
        if sites.keys() != set(self.names):
            found.append(f"{len(sites)} Sites instead of {len(self.names)}")
        for kind, children in (("ConfigMap", pages), ("Secret", secrets)):
            if children.keys() != sites.keys():
                found.append(f"{kind}s without a Site or missing: {sorted(children.keys() ^ sites.keys())[:5]}")
        for name, each in sites.items():
            page, secret = pages.get(name), secrets.get(name)
            if page is not None and page.data != {"image": each.spec.image}:
                found.append(f"ConfigMap {name} has {page.data}, not {each.spec.image}")
            if secret is not None and secret.data != {"image": each.spec.image.encode()}:
                found.append(f"Secret {name} is not that of {each.spec.image}")
            if each.status is None or each.status.replicas != each.spec.replicas:
                found.append(f"the status of {name} is that of another spec")
            owners = [child.metadata.owner_references for child in (page, secret) if child is not None]
            if any(len(refs or ()) != 1 or refs[0].uid != each.metadata.uid for refs in owners):
                found.append(f"a child of {name} is not owned by it")
        return found

    async def writes(self) -> int:
        """How many writes of our kinds the API server has counted since its start, from all clients."""
        return sum([count for labels, count in await self._requests() if labels["verb"] in _WRITING])

    async def refusals(self) -> int:
        """How many requests for our kinds the API server has refused because it had too much to do."""
        return sum([count for labels, count in await self._requests() if labels["code"] == "429"])

    async def _requests(self) -> list[tuple[dict[str, str], int]]:
        """What the API server has counted of our kinds since its start."""
        (server,) = self.engine.api_servers
        found = [
            (dict(_LABEL.findall(match["labels"])), int(float(match["count"])))
            for match in _COUNTED.finditer(await server.metrics())
        ]
        return [(labels, count) for labels, count in found if labels["resource"] in _RESOURCES]

    async def written(self) -> int:
        """The same, once what was under way has been counted."""
        before = -1
        while before != (before := await self.writes()):  # noqa: ASYNC110 - the server does not tell
            await asyncio.sleep(0.5)
        return before

    async def settles(self, operator: Operator) -> None:
        """Wait until everything is as it should be; then nothing may happen for a while."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not operator.idle or await self.problems():
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(
                    f"not healed: {(await self.problems())[:5]}; {operator.manager.statistics()}"[:4000]
                )
            await asyncio.sleep(0.1)
        reconciles, writes = operator.reconciles, await self.writes()
        # nothing can be waited for: that nothing happens is what is measured
        await asyncio.sleep(QUIET_SECONDS)
        assert (operator.reconciles - reconciles, await self.writes() - writes) == (0, 0)
        assert await self.problems() == []


class Changes:
    """Changes one spec after the other; a change that fails is given up, and another Site is changed."""

    def __init__(self, world: World, client: Client):
        self.world = world
        self.client = client
        self.made = 0
        self.failed = 0
        self._number = 0

    async def run(self) -> None:
        while True:
            self._number += 1
            name = aio.randomness().choice(self.world.names)
            patch = MergePatch({"spec": {"image": f"v{self._number}", "replicas": self._number % 50}})
            try:
                await self.client.patch(Site, f"{self.world.namespace}/{name}", patch)
                self.made += 1
            except ApiError:
                self.failed += 1
                await asyncio.sleep(0.1)
            await asyncio.sleep(0.05)

    async def more(self, count: int) -> None:
        """Wait until so many more changes were made."""
        wanted = self.made + count
        await until(lambda: self.made >= wanted, f"{count} more changes were made")


@asynccontextmanager
async def changing(world: World, *, writers: int = 3):
    """Change specs during a block, past whatever is done to the operator's own connections."""
    async with (
        Client.connect(
            kubeconfig=world.engine.kubeconfig, field_manager="user", retry=RetryPolicy(attempts=1), timeout=2.0
        ) as client,
        Supervisor() as tasks,
    ):
        changes = Changes(world, client)
        for number in range(writers):
            tasks.start(changes.run(), name=f"changes {number}")
        await changes.more(50)
        yield changes
        await changes.more(20)
        tasks.cancel()


async def until(condition, what: str, *, seconds: float = PATIENCE) -> None:
    """Wait until a condition holds: a program does not announce that it has healed, so it polls."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"for {seconds:g} s it did not come about that {what}") from None
