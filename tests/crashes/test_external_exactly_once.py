# ruff: noqa: T201 - the full form takes minutes, and tells what it did
"""Two candidates with an `External`, killed while they lead: for every object one thing is made outside, ever.

`samples.portions` says how often the leader is killed, and when.
"""

from __future__ import annotations

import asyncio
import os
import random  # noqa: TID251 - a campaign is repeated by its seed
import signal
import sys
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from crashes.external_operator import LATE, Ticket, TicketSpec
from crashes.victim import ROOT

from samples import portions
from steersman import ObjectMeta
from steersman.errors import NotFound
from steersman.kinds.coordination_v1 import Lease
from steersman.testing import Engine

KILLS = portions.count(sample=5, of=60)
SEED = portions.seed_of("exactly once")
PROGRAM = Path(__file__).with_name("external_operator.py")
#: Tickets that are made before each kill.
TICKETS = 4


class Outside:
    """A service that makes a thing each time it is asked to, a while later, and keeps a log."""

    def __init__(self, dice):
        self._dice = dice
        self._things = {}
        #: Every effect: "create" or "delete", and for whom.
        self.log = []
        #: Creations that were asked for and have not happened yet.
        self.pending = 0
        #: Set by a creation that is asked for.
        self.asked = asyncio.Event()
        self.url = ""

    @asynccontextmanager
    async def serve(self):
        app = web.Application()
        app.router.add_get("/{uid}", self._find)
        app.router.add_post("/{uid}", self._create)
        app.router.add_delete("/{uid}/{thing}", self._delete)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _find(self, request):
        return web.json_response([thing for thing, uid in self._things.items() if uid == request.match_info["uid"]])

    async def _create(self, request):
        uid = request.match_info["uid"]
        self.pending += 1
        self.asked.set()
        # it happens, whether or not the operator still waits for it
        await asyncio.sleep(self._dice.uniform(0.0, 0.6 * LATE))
        thing = f"thing-{len(self.log)}"
        self.log.append(("create", uid))
        self._things[thing] = uid
        self.pending -= 1
        await asyncio.sleep(self._dice.uniform(0.0, 0.3 * LATE))
        return web.json_response([thing])

    async def _delete(self, request):
        if self._things.pop(request.match_info["thing"], None) is not None:
            self.log.append(("delete", request.match_info["uid"]))
        return web.json_response([])

    def things(self):
        return Counter(self._things.values())


class Candidates:
    """Operators by name, each in a process of its own, and one program that forks them."""

    def __init__(self, environment, log):
        self._environment = os.environ | environment
        self._log = log
        self._program = None
        self._running = {}

    @asynccontextmanager
    async def forking(self):
        with self._log.open("ab") as log:
            self._program = await asyncio.create_subprocess_exec(
                sys.executable, str(PROGRAM),
                cwd=ROOT, env=self._environment, stderr=log, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
        try:
            assert await self._program.stdout.readline() == b"ready\n", self._log.read_text()
            yield self
        finally:
            self._program.kill()
            await self._program.communicate()

    async def start(self, name):
        self._program.stdin.write(f"{name}\n".encode())
        self._running[name] = int(await self._program.stdout.readline())

    def signal(self, name, number):
        os.kill(self._running[name], number)


class Play:
    """Tickets come and go; the leader is killed."""

    def __init__(self, client, outside, candidates, dice):
        self._client = client
        self._outside = outside
        self._candidates = candidates
        self._dice = dice
        self._number = 0
        self.figures = Counter()
        #: Every Ticket that ever was.
        self.uids = set()

    async def leader(self):
        """The holder of the Lease; empty if it is free."""
        try:
            lease = await self._client.get(Lease, ("default", "tickets"))
        except NotFound:
            return ""
        return lease.spec.holder_identity or ""

    async def another_leads(self, former):
        async with asyncio.timeout(60):
            while (found := await self.leader()) in {"", former}:  # noqa: ASYNC110 - a Lease sets no event
                await asyncio.sleep(0.05)
        return found

    async def change(self):
        for _ in range(TICKETS):
            self._number += 1
            metadata = ObjectMeta(name=f"ticket-{self._number}", namespace="default")
            made = await self._client.create(Ticket(metadata=metadata, spec=TicketSpec(title="x")))
            self.uids.add(made.metadata.uid)
        if self._number > 2 * TICKETS:
            gone = self._dice.randrange(1, self._number)
            await self._client.delete(Ticket, ("default", f"ticket-{gone}"), missing_ok=True)

    async def kill(self, name, number):
        """Kill -9, or now and then a SIGTERM, after which the other one leads at once."""
        self.figures[number.name] += 1
        self.figures["with creations under way"] += self._outside.pending > 0
        self._candidates.signal(name, number)
        # under another name, as a new Pod has one: with the same name it could lead again, unnoticed
        await self._candidates.start(f"operator-{self.figures.total()}")

    async def rounds(self):
        former = ""
        for number in range(KILLS):
            former = await self.another_leads(former)
            await self.change()
            if number % 3:
                async with asyncio.timeout(60):
                    await self._outside.asked.wait()
            # at any moment of the work: the length is part of the attack
            await asyncio.sleep(self._dice.uniform(0.0, 0.6 if number % 3 else 1.5))
            await self.kill(former, signal.SIGTERM if number % 4 == 3 else signal.SIGKILL)
            self._outside.asked.clear()

    async def settles(self):
        """Wait until every Ticket has its thing and nothing is left over."""
        async with asyncio.timeout(90):
            while True:
                tickets = await self._client.list(Ticket, namespace="default")
                made = all((each.status and each.status.thing) and not each.deleting for each in tickets)
                if made and self._outside.things().keys() == {each.metadata.uid for each in tickets}:
                    return tickets
                await asyncio.sleep(0.2)


@pytest.fixture(scope="module")
async def engine():
    async with Engine.start() as engine:
        async with engine.client(field_manager="crashes") as client:
            await client.install(Ticket)
        yield engine


@pytest.mark.slow
async def test_every_object_gets_one_thing_from_leaders_that_are_killed(engine, tmp_path):
    dice = random.Random(SEED)
    async with Outside(dice).serve() as outside, engine.client(field_manager="user") as client:
        environment = {"KUBECONFIG": str(engine.kubeconfig), "OUTSIDE": outside.url}
        log = tmp_path / "operators.log"
        async with Candidates(environment, log).forking() as candidates:
            await candidates.start("one")
            await candidates.start("two")
            play = Play(client, outside, candidates, dice)
            await play.rounds()
            tickets = await play.settles()
            # nothing is made later either, by a request that was held up or by a look that came too early
            await asyncio.sleep(2 * LATE)
        made = Counter(uid for verb, uid in outside.log if verb == "create")
        print(f"\n{dict(play.figures)}, {len(play.uids)} Tickets, {sum(made.values())} creations")
        assert {uid: count for uid, count in made.items() if count > 1} == {}, log.read_text()[-3000:]
        assert {each.metadata.uid for each in tickets} <= made.keys() <= play.uids
        assert outside.things() == Counter(each.metadata.uid for each in tickets)
