"""Random programs over the seams between operators, versions, namespaces, clocks, definitions and backups.

Each program plays in a world of its own: two operators on one kind in two versions, each with a finalizer and an outside.
In the end everything is as the model says: converged and quiet, nothing deleted that must be kept, no clean-up skipped, no
effect doubled, no field lost. The embedded server plays in virtual time, so a seed repeats a run. On the engine no backup is
restored: that takes seconds, and tests/faults/test_restored_server.py does it there.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random  # noqa: TID251 - seeded by the test

import pytest
from seams.programs import Program, drawn_program, shrunk
from seams.servers import Backup, EmbeddedServer, EngineServer, SkewedClock
from seams.teams import GROUP, OPERATORS, OldTeam, Team, converter, part_kind
from seams.worlds import Place, World

from samples import portions
from samples.virtual_time import run_virtual
from steersman import ObjectMeta, aio
from steersman.kinds.core_v1 import Namespace
from steersman.testing import Engine
from steersman.testing.webhook_registration import answered_on_a_port
from steersman.webhooks import WebhookServer

#: 2,000 runs on the embedded server, in shares that a test may take; 100 on the engine, several at a time.
SHARES, RUNS = portions.count(sample=1, of=20), 20 if not portions.ALL else 100
ENGINE_RUNS, AT_ONCE = portions.count(sample=2, of=100), 5
SEED = portions.seed_of("seams")
HOME, FAR = "home", "far"
PART = part_kind(f"parts.{GROUP}")
PAUSES, ENGINE_PAUSES = (0.0, 0.01, 0.1, 0.5, 2.0, 30.0), (0.0, 0.01, 0.1, 0.5)
CONTROLLERS = "garbage-collector-controller,namespace-controller"


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


def _played(seed: int, program: Program, begin: Backup, *, first_lag: float = 0.0) -> str:
    """Play a program in virtual time; returns what went wrong. ``first_lag`` is that of `Place`."""

    async def play() -> None:
        aio.bind(asyncio.get_running_loop(), clock=SkewedClock(), seed=seed)
        chance = Random(seed)
        server = EmbeddedServer(begin)
        await server.start()
        place = replace(_place(chance), first_lag=first_lag)
        world = World(server, server.client("user", HOME), place, chance)
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


@pytest.mark.parametrize(("bump", "first_lag"), [(0, 0.0), (1000, 5.0)])
def test_a_deletion_that_a_restore_takes_back_deletes_nothing(begin, bump, first_lag):
    """The operator reads that the team is being deleted, and the server goes away: only the restored one may be believed.

    If its revision was raised, it accepts the watch, and says only in the first frame that the version has expired.
    """
    spec = {"text": "a", "replicas": 1, "far": True, "kept": True, "part": False}
    team = [("start", "main"), ("create_team", "y", "v2", spec), ("create_secret", "s", "y"), ("wait", 30.0)]
    program: Program = [*team, ("back_up",), ("delete_team", "y", "v2", "Foreground"), ("restore", bump, 3.0)]
    assert not [
        wrong for seed in range(SEED, SEED + 8) if (wrong := _played(seed, program, begin, first_lag=first_lag))
    ]


@pytest.mark.slow
async def test_random_programs_on_the_engine():
    flags = {"kube-controller-manager": [f"--controllers={CONTROLLERS}"]}
    async with (
        Engine.start(controller_manager=True, flags=flags) as engine,
        engine.client(field_manager="user") as client,
    ):
        await client.install(Team, OldTeam, *(part_kind(f"part{slot}.{GROUP}") for slot in range(AT_ONCE)))
        # the garbage collector discovers kinds when it starts
        await engine.controller_manager.restart()
        loop = asyncio.get_running_loop()
        async with answered_on_a_port(WebhookServer([converter()]), client, "seams"):
            aio.bind(loop, clock=SkewedClock(), seed=SEED)
            try:
                seeds = iter(range(SEED, SEED + ENGINE_RUNS))
                failures = await asyncio.gather(*(_slot(engine, slot, seeds) for slot in range(AT_ONCE)))
            finally:
                aio.unbind(loop)
    assert not [each for some in failures for each in some]


async def _slot(engine, slot, seeds):
    """Play one program after the other; returns what went wrong."""
    failures = []
    for seed in seeds:
        program = drawn_program(Random(f"program {seed}"), restores=False, pauses=ENGINE_PAUSES)
        try:
            await _play_on_engine(engine, slot, seed, program)
        except Exception as error:  # noqa: BLE001 - told with its seed
            failures.append(f"seed {seed}: {type(error).__name__}: {error}{_shown(program)}")
    return failures


async def _play_on_engine(engine, slot, seed, program):
    home, far = f"home-{seed}", f"far-{seed}"
    place = Place(
        home=home,
        far=far,
        part=part_kind(f"part{slot}.{GROUP}"),
        namespaces=(home, far),
        delays=(0.0,),
        lag=0.0,
        quiet=2.0,
        patience=300.0,
    )
    server = EngineServer(engine)
    await server.start(home, ("user", *OPERATORS))
    client = server.client("user", home)
    for name in (home, far):
        await client.create(Namespace(metadata=ObjectMeta(name=name)))
    try:
        await World(server, client, place, Random(seed)).play(program)
    finally:
        for name in (home, far):
            await client.delete(Namespace, name, missing_ok=True)
        await server.stop()
