"""A defect that Steersman once had, with a scenario of a user that meets it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from simulation.calibration.mutation import Mutation

from steersman import Manager
from steersman.simulation import Fault, ScenarioUser, StateCheck


@dataclass(frozen=True, kw_only=True)
class Defect:
    """A defect that was fixed, and how a simulation shows it."""

    #: What was wrong, in one sentence.
    was: str
    #: The commit of the fix.
    fixed_in: str
    #: Takes the fix out of today's code.
    mutations: tuple[Mutation, ...]
    setup: Callable[[], Manager]
    workload: Callable[[ScenarioUser], Awaitable[None]]
    #: The oracle that finds it, and part of its words.
    oracle: str
    words: str
    #: The faults that show it; none if it shows without any.
    faults: tuple[Fault, ...] = ()
    #: How many pairs of faults it takes to find it; none if single faults show it.
    pairs: int = 0
    checks: tuple[StateCheck, ...] = ()
    replicas: int = 1
