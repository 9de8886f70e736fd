"""An operator that leads and writes all the time, its requests counted: what an attack on its way to the server needs.

Eight ConfigMaps `tick-N` are reconciled five times a second each; a reconcile writes `log-N`. `Leader.asks` changes a
`tick` from outside and waits until the `log` says so, which takes a watch, a reconcile, a write and the Lease.
"""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from itertools import pairwise

from faults.workload import until

from steersman import Client, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.controller import Context, Done, Request, RequeueAfter
from steersman.kinds.core_v1 import ConfigMap
from steersman.kinds.events_v1 import Event
from steersman.manager import LeaderElection, Manager

KEYS = 8


class Sent:
    """One request of the operator: when it was sent, and with which code it was answered; 0 without an answer."""

    def __init__(self, when, method, path):
        self.when = when
        self.method = method
        self.path = path
        self.code = 0
        #: How long it took until it was answered or lost; None while it is under way.
        self.seconds = None

    def __repr__(self):
        return f"<{self.when:.1f} {self.method} {self.path} {self.code}>"

    @property
    def is_lost_write(self):
        return self.method != "GET" and self.code == 0 and self.seconds is not None

    @property
    def is_renewal(self):
        return self.method in {"PUT", "POST"} and "/leases" in self.path


class Requests:
    """A transport that remembers what was asked; those of the Lease, which has connections of its own, as well."""

    def __init__(self, transport, sent=None):
        self._transport = transport
        self.sent = [] if sent is None else sent
        #: Awaited with each request before it is sent.
        self.hook = None

    async def send(self, request, **options):
        if self.hook is not None:
            await self.hook(request)
        sent = Sent(asyncio.get_running_loop().time(), request.method, request.path)
        self.sent.append(sent)
        try:
            response = await self._transport.send(request, **options)
        finally:
            sent.seconds = now() - sent.when
        sent.code = response.status
        return response

    def separate(self):
        return Requests(self._transport.separate(), self.sent)

    async def close(self):
        await self._transport.close()


class Leader:
    """The operator, and what became of it so far."""

    def __init__(self, namespace, outside, requests):
        self.namespace = namespace
        self.outside = outside
        self.requests = requests
        self.manager = None
        self.terms = []
        #: When the server answered each write of a reconcile.
        self.written = []
        self._asked = 0

    async def reconcile(self, ctx: Context, request: Request) -> Done | RequeueAfter:
        kind, _, number = request.key.name.partition("-")
        if kind != "tick":
            return Done()
        if self.manager.controllers[0] not in self.terms:
            self.terms.append(self.manager.controllers[0])
        tick = await ctx.client.get(ConfigMap, request.key)
        asked = (tick.data or {}).get("asked", "")
        if asked:
            ctx.events.record(tick, "Normal", "Asked", "Answering", f"asked {asked}")
        data = {"asked": asked, "count": str(len(self.written))}
        await ctx.client.patch(ConfigMap, (self.namespace, f"log-{number}"), MergePatch({"data": data}))
        self.written.append(now())
        return RequeueAfter(0.2)

    async def asks(self, *, seconds=60.0) -> float:
        """Change every tick from outside; how long it took until every log says so."""
        self._asked += 1
        begun, asked = now(), str(self._asked)
        for number in range(KEYS):
            await self.outside.patch(ConfigMap, f"tick-{number}", MergePatch({"data": {"asked": asked}}))
        while await self._answers() != {asked}:
            if now() > begun + seconds:
                raise AssertionError(f"{await self._answers()} instead of {asked}: {self.manager.statistics()}"[:6000])
            await asyncio.sleep(0.1)
        return now() - begun

    async def _answers(self):
        logs = await self.outside.list(ConfigMap, namespace=self.namespace, labels={"part": "log"})
        return {(log.data or {}).get("asked") for log in logs}

    async def tells(self, *, seconds=60.0) -> None:
        """Wait until the server has an Event about what was asked last: events have a queue of their own."""
        begun, note = now(), f"asked {self._asked}"
        while note not in {each.note for each in await self.outside.list(Event, namespace=self.namespace)}:
            assert now() < begun + seconds, f"no Event says {note!r}"
            await asyncio.sleep(0.1)

    async def more(self, count, *, seconds=60.0) -> None:
        """Wait until so many more writes were made."""
        wanted = len(self.written) + count
        await until(lambda: len(self.written) >= wanted, f"{count} more writes were made", seconds=seconds)

    @property
    def failures(self) -> int:
        """How many reconciles failed."""
        return sum(each.results.get("error", 0) for each in self.manager.statistics().controllers)

    def leads_its_first_term(self) -> bool:
        return len(self.terms) == 1 and self.manager.statistics().leader.leading

    def codes(self, since: float = 0.0) -> Counter:
        """How often each code came, 0 for no answer."""
        return Counter(each.code for each in self.requests.sent if each.when >= since)

    def rate(self, begun: float, ended: float) -> float:
        """How many requests were sent in a second."""
        return sum(begun <= each.when < ended for each in self.requests.sent) / (ended - begun)

    def silence(self, since: float) -> float:
        """The longest time without a write."""
        moments = [since, *(each for each in self.written if each > since), now()]
        return max(after - before for before, after in pairwise(moments))


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def leading(engine, config, namespace, *, election=None, idle_timeout=None, endpoints=None, **options):
    """Run the operator with a configuration for a block; it leads and has written when the block begins."""
    async with (
        Client.connect(kubeconfig=engine.kubeconfig, namespace=namespace, field_manager="user") as outside,
        Client.connect(config, namespace=namespace, field_manager="operator", **options) as client,
    ):
        for number in range(KEYS):
            for part in ("tick", "log"):
                metadata = ObjectMeta(name=f"{part}-{number}", labels={"part": part})
                await outside.create(ConfigMap(metadata=metadata))
        requests = None

        def counted(transport):
            nonlocal requests
            requests = Requests(transport)
            return requests

        counting = client.with_transport(counted)
        leader = Leader(namespace, outside, requests)
        kinds = {ConfigMap: KindOptions(namespaces=(namespace,), idle_timeout=idle_timeout)}
        leader.manager = manager = Manager(
            counting, leader=election or LeaderElection("operator"), kinds=kinds, grace=5.0, endpoints=endpoints
        )
        manager.controller(ConfigMap).options(concurrency=KEYS).run_with(leader)
        async with Supervisor() as tasks:
            tasks.start(manager.run(signals=False), name="manager")
            await until(lambda: len(leader.written) >= 2 * KEYS, "it leads and writes")
            yield leader
            manager.stop()
