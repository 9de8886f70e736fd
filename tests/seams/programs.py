"""Programs for a small world, drawn from a seed: each is a list of steps, and a step is data."""

from __future__ import annotations

from collections.abc import Callable
from random import Random  # noqa: TID251 - seeded by the test
from typing import Any, TypeAlias

#: The name of a method of `seams.worlds.World`, and its arguments.
Step: TypeAlias = tuple[Any, ...]
Program: TypeAlias = list[Step]

TEAMS, SECRETS = ("x", "y"), ("s", "t")
_OPERATORS = ("main", "side")
_VERSIONS = ("v1", "v2")
_CHILDREN = ("near", "side", "far", "kept", "part")


def _spec(chance: Random) -> dict[str, Any]:
    return {
        "text": chance.choice("abc"),
        "replicas": chance.choice((1, 5)),
        **{name: chance.random() < 0.6 for name in ("far", "kept", "part")},
    }


def _change(chance: Random) -> dict[str, Any]:
    name = chance.choice(("text", "replicas", "far", "kept", "part", "kept"))
    return {name: _spec(chance)[name]}


def _steps(*, restores: bool) -> dict[Callable[[Random], Step], float]:
    """What may happen, and how often."""
    steps: dict[Callable[[Random], Step], float] = {
        lambda r: ("create_team", r.choice(TEAMS), r.choice(_VERSIONS), _spec(r)): 3,
        lambda r: ("edit_team", r.choice(TEAMS), _change(r)): 5,
        lambda r: ("edit_old_team", r.choice(TEAMS), r.choice("abc"), r.choice(("small", "large"))): 2,
        lambda r: ("delete_team", r.choice(TEAMS), r.choice(_VERSIONS), r.choice(("Background", "Foreground"))): 2,
        lambda r: ("lose_annotations_of_team", r.choice(TEAMS)): 1,
        lambda r: ("lose_annotations", r.choice(TEAMS), r.choice((*_CHILDREN, "kept", "kept"))): 3,
        lambda r: ("delete_child", r.choice(TEAMS), r.choice(_CHILDREN)): 2,
        lambda r: ("change_child", r.choice(TEAMS), r.choice(_CHILDREN[:4])): 1,
        lambda r: ("create_secret", r.choice(SECRETS), r.choice(TEAMS)): 3,
        lambda r: ("label_secret", r.choice(SECRETS), r.choice((*TEAMS, "no-team"))): 2,
        lambda r: ("lose_annotations_of_secret", r.choice(SECRETS)): 2,
        lambda r: ("delete_secret", r.choice(SECRETS)): 0.5,
        lambda r: ("end_far",): 1,
        lambda r: ("begin_far",): 1.5,
        lambda r: ("uninstall_part",): 1,
        lambda r: ("install_part",): 1.5,
        lambda r: ("skew", r.choice(_OPERATORS), r.choice((-3600, -60, -5, 5, 60, 3600))): 1.5,
        lambda r: ("stop", r.choice(_OPERATORS)): 1,
        lambda r: ("kill", r.choice(_OPERATORS)): 1.5,
        lambda r: ("start", r.choice(_OPERATORS)): 3,
        lambda r: ("note",): 1,
    }
    if restores:
        steps[lambda r: ("back_up",)] = 1.5
        steps[lambda r: ("restore", r.choice((0, 0, 1000)), r.choice((0.0, 0.3, 3.0)))] = 1.5
    return steps


def drawn_program(chance: Random, *, restores: bool, pauses: tuple[float, ...]) -> Program:
    """A program of 8 to 15 steps, with pauses between some of them."""
    steps = _steps(restores=restores)
    program: Program = []
    for operator in _OPERATORS:
        if chance.random() < 0.8:
            program.append(("start", operator))
    program.append(("create_team", TEAMS[0], chance.choice(_VERSIONS), _spec(chance)))
    if restores:
        program.insert(chance.randrange(len(program) + 1), ("back_up",))
    length = chance.randrange(8, 16)
    while length:
        length -= 1
        program.append(chance.choices(list(steps), list(steps.values()))[0](chance))
        if chance.random() < 0.6:
            program.append(("wait", chance.choice(pauses)))
    return program


def shrunk(program: Program, fails: Callable[[Program], bool], *, plays: int) -> Program:
    """A shorter program that still fails: drop steps as long as that is so, with so many plays at most."""
    dropped = True
    while dropped:
        dropped = False
        for place in reversed(range(len(program))):
            shorter = program[:place] + program[place + 1 :]
            plays -= 1
            if plays < 0:
                return program
            if fails(shorter):
                program, dropped = shorter, True
    return program
