"""Random programs over the seams between operators, versions, namespaces, clocks, definitions and backups.

Each program plays in a world of its own: two operators on one kind in two versions, each with a finalizer and an outside.
In the end everything is as the model says: converged and quiet, nothing deleted that must be kept, no clean-up skipped, no
effect doubled, no field lost. The embedded server plays in virtual time, so a seed repeats a run.
"""

from __future__ import annotations

import asyncio
from random import Random  # noqa: TID251 - seeded by the test

import pytest
from seams.programs import Program, drawn_program, shrunk
from seams.servers import Backup, EmbeddedServer, SkewedClock
from seams.teams import GROUP, OldTeam, Team, part_kind
from seams.worlds import Place, World

from samples import portions
from samples.virtual_time import run_virtual
from steersman import ObjectMeta, aio
from steersman.kinds.core_v1 import Namespace

#: 2,000 runs on the embedded server, in shares.
SHARES, RUNS = portions.count(sample=1, of=20), 20 if not portions.ALL else 100
SEED = portions.seed_of("seams")
HOME, FAR = "home", "far"
PART = part_kind(f"parts.{GROUP}")
PAUSES = (0.0, 0.01, 0.1, 0.5, 2.0, 30.0)


async def _first_backup() -> Backup:
    """A store in which every world begins."""
    server = EmbeddedServer()
    await server.start()
    client = server.client("user", HOME)
    for name in (HOME, FAR):
        await client.create(Namespace(metadata=ObjectMeta(name=name)))
    await client.install(Team, OldTeam, PART)
    backup = await server.backup()
    await server.stop()
    return backup


def _place(chance: Random) -> Place:
    return Place(
        home=HOME,
        far=FAR,
        part=PART,
        namespaces=chance.choice(((), (HOME, FAR))),
        delays=chance.choice(((0.0,), (0.0, 0.001, 0.02), (0.0, 0.01, 0.3))),
        lag=chance.choice((0.0, 0.0, 0.05, 1.0)),
        quiet=20.0,
        patience=300.0,
    )


def _played(seed: int, program: Program, begin: Backup) -> str:
    """Play a program in virtual time; returns what went wrong."""

    async def play() -> None:
        aio.bind(asyncio.get_running_loop(), clock=SkewedClock(), seed=seed)
        chance = Random(seed)
        server = EmbeddedServer(begin)
        await server.start()
        world = World(server, server.client("user", HOME), _place(chance), chance)
        try:
            await world.play(program)
        finally:
            await server.stop()
            await asyncio.get_running_loop().shutdown_asyncgens()

    try:
        run_virtual(play(), seed=seed)
    except Exception as error:  # noqa: BLE001 - told with its seed
        return f"{type(error).__name__}: {error}"
    return ""


def _program(seed: int) -> Program:
    return drawn_program(Random(f"program {seed}"), restores=True, pauses=PAUSES)


def _shown(program: Program) -> str:
    return "".join(f"\n  {each}" for each in program)


@pytest.fixture(scope="module")
def begin() -> Backup:
    return run_virtual(_first_backup())[0]


@pytest.mark.parametrize("share", range(SHARES))
def test_random_programs_end_as_the_model_says(begin, share):
    for seed in range(SEED + share * RUNS, SEED + (share + 1) * RUNS):
        program = _program(seed)
        if wrong := _played(seed, program, begin):
            short = shrunk(program, lambda each, seed=seed: bool(_played(seed, each, begin)), plays=100)
            again = _played(seed, short, begin)
            pytest.fail(f"seed {seed}: {wrong}{_shown(program)}\nand a shorter program:{_shown(short)}\n{again}")
