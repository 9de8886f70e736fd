"""Bodies that repeat one thing: none keeps other clients waiting, and none takes much more memory than its size.

`samples.portions` says how many, and which; a failure says the seed.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random  # noqa: TID251 - seeded by the test, which says with what

import pytest
from hostile import heavy
from hostile.loop_gauge import LoopGauge
from hostile.playing import running_server, sweep
from hostile.repetition import Generated, Repetitions

from samples import portions
from steersman.wire import HttpRequest

#: Small bodies, of up to 16 KiB, and bodies of the full size.
COUNT = portions.count(sample=250, of=5_000)
FULL = portions.count(sample=6, of=100)
SEED = portions.seed_of("hostile bodies")
BODY_MAX = 3 * 1024 * 1024
#: Seconds of CPU time that another client may have to wait, and how many bytes of memory a byte of a body may take.
BLOCKED_MAX, MEMORY_MAX = 0.5, 30
#: How many small bodies are looked at together: a look takes longer than a body.
TOGETHER = 50
#: What a small body may take, whatever its size: Python asks the system for memory in large pieces.
SPARE = 8 * 1024 * 1024
#: kube-apiserver answers 500 to a strategic merge patch whose items lack their key, too (conformance: container-without-key).
OWN_500 = b"does not contain declared merge key"


class Worst:
    """What was the worst, and of which body."""

    def __init__(self) -> None:
        self.blocked = (0.0, "")
        self.ratio = (0.0, "")
        self.wrong: list[str] = []
        self.statuses: dict[int, int] = {}

    async def look(self, server, *bodies: Generated) -> None:
        """Send bodies one after another; what is wrong is said of all of them.

        On a host whose CPU others use too, CPU time is counted too high now and then: the best of five counts.
        """
        size = max(len(each.body) for each in bodies)
        for _ in range(5):
            async with LoopGauge() as gauge:
                await self._send(server, bodies, gauge)
            if gauge.blocked <= BLOCKED_MAX and gauge.memory <= MEMORY_MAX * size + SPARE:
                break
            await sweep(server)
        told = "; ".join(
            f"{each.method} {each.path} {each.content_type} {len(each.body)} bytes: {each.made_of}" for each in bodies
        )
        ratio = gauge.memory / size
        self.blocked = max(self.blocked, (gauge.blocked, told[:1000]))
        if size > BODY_MAX // 2:
            self.ratio = max(self.ratio, (ratio, told))
        if gauge.blocked > BLOCKED_MAX or gauge.memory > MEMORY_MAX * size + SPARE:
            self.wrong.append(f"blocked {gauge.blocked:.2f} s, {gauge.memory >> 20} MiB = {ratio:.0f} times: {told}")

    async def _send(self, server, bodies: tuple[Generated, ...], gauge: LoopGauge) -> None:
        for each in bodies:
            request = HttpRequest(each.method, each.path, (), (("Content-Type", each.content_type),), each.body)
            reply = await server.handler(request)
            await asyncio.sleep(0)
            gauge.look()
            self.statuses[reply.status] = self.statuses.get(reply.status, 0) + 1
            if reply.status >= 500 and OWN_500 not in bytes(reply.body):
                self.wrong.append(f"{bytes(reply.body)[:300]!r}: {each.method} {each.path}: {each.made_of}")

    def told(self) -> str:
        return f"seed {SEED}: {self.statuses}; longest block {self.blocked}; most memory {self.ratio}\n" + "\n".join(
            self.wrong
        )


@pytest.mark.slow
async def test_generated_bodies_delay_no_other_request():
    sizes, repetitions, worst = Random(SEED), Repetitions(SEED), Worst()
    async with running_server() as server:
        for number in range(COUNT // TOGETHER):
            made = [repetitions.make(int(2 ** sizes.uniform(7, 14))) for _ in range(TOGETHER)]
            await worst.look(server, *made)
            if number % 10 == 9:
                await sweep(server)
    if portions.ALL:
        sys.stderr.write(f"\n{worst.told()}\n")
    assert not worst.wrong, worst.told()


@pytest.mark.slow
async def test_generated_bodies_of_the_full_size_delay_no_other_request():
    repetitions, worst = Repetitions(SEED + 1), Worst()
    async with running_server() as server:
        for number in range(FULL):
            await worst.look(server, repetitions.make(BODY_MAX))
            if number % 10 == 9:
                await sweep(server)
    if portions.ALL:
        sys.stderr.write(f"\n{worst.told()}\n")
    assert not worst.wrong, worst.told()


@pytest.mark.parametrize("name", heavy.texts())
async def test_a_heavy_body_delays_no_other_request(name):
    path, content_type, body = heavy.texts()[name]
    worst = Worst()
    async with running_server() as server:
        # The update replaces the created object, so both are sent again if one seems to take too long.
        bodies = (
            Generated("POST", path, content_type, body, name),
            Generated("PUT", f"{path}/heavy", content_type, body, name),
        )
        await worst.look(server, *bodies)
    assert not worst.wrong, worst.told()
