"""An exhibit of the gallery: a wrong controller and its corrected twin, with the work of a user that shows the difference."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from steersman import Manager
from steersman.simulation import ScenarioUser, StateCheck


class Setup(Protocol):
    """Builds the operator, with the defect or without."""

    def __call__(self, *, wrong: bool) -> Manager: ...


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """One classic failure."""

    #: What is wrong, in one sentence.
    defect: str
    #: Builds the operator. The defect is the only difference that its flag makes.
    setup: Setup
    workload: Callable[[ScenarioUser], Awaitable[None]]
    #: Part of a violation that the simulation reports.
    words: str
    #: The faults that show the defect; none if the operator is wrong without any fault.
    shown_by: tuple[str, ...] = ()
    #: How many pairs of faults it takes to find it; none if single faults show it.
    pairs: int = 0
    #: What a user of the operator demands beyond what holds for every operator.
    checks: tuple[StateCheck, ...] = ()
    #: How many processes of the operator run.
    replicas: int = 1

    @property
    def wrong(self) -> Callable[[], Manager]:
        """Builds the wrong operator."""
        return partial(self.setup, wrong=True)

    @property
    def corrected(self) -> Callable[[], Manager]:
        """Builds its corrected twin."""
        return partial(self.setup, wrong=False)
