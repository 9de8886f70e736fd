"""What a simulation runs: an operator, and what its users do.

A scenario is called anew for each run and for each restart of the operator, so it must build everything itself. What it keeps
in module variables survives a crash, which a process does not: keep such state in the manager.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeAlias

from steersman.client import Client
from steersman.controller import Blueprint, SupportsBlueprint
from steersman.manager import Manager
from steersman.objects import Object
from steersman.simulation.checks import StateCheck
from steersman.simulation.programs import program
from steersman.webhooks import Hook

Parts: TypeAlias = "Manager | Blueprint | SupportsBlueprint | Hook | Iterable[Blueprint | SupportsBlueprint | Hook]"
#: Builds the operator, for its first start and after each crash.
Setup: TypeAlias = Callable[[], Parts]


class ScenarioUser(Protocol):
    """A person or another program, who uses the operator's kinds."""

    @property
    def client(self) -> Client:
        """The administrator's client."""
        ...

    async def settled(self) -> None:
        """Wait until the operator and the control plane have nothing left to do. The state of then is compared.

        A run with faults must have the same state here as the run without.
        """
        ...

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        ...


#: What users do.
Workload: TypeAlias = Callable[[ScenarioUser], Awaitable[None]]


class Scenario:
    """An operator and what its users do.

    ``setup`` builds the operator anew at each call, or is the name of a module that has a ``manager``.
    """

    def __init__(
        self,
        setup: Setup | str,
        workload: Workload,
        *,
        checks: Iterable[StateCheck] = (),
        kinds: Iterable[type[Object]] = (),
        replicas: int = 1,
        name: str = "",
    ) -> None:
        self.setup = program(setup) if isinstance(setup, str) else setup
        self.workload = workload
        #: What must hold beyond what holds for every operator.
        self.checks = tuple(checks)
        #: Kinds to install beside those of the operator.
        self.kinds = tuple(kinds)
        #: How many processes of the operator run.
        self.replicas = replicas
        self.name = name or (setup if isinstance(setup, str) else getattr(setup, "__name__", "scenario"))
        self._last: Manager | None = None

    def manager(self) -> Manager:
        """A new manager of the operator."""
        parts = self.setup()
        if isinstance(parts, Manager):
            if parts is self._last:
                raise TypeError(
                    "setup returned the same manager twice, and what it knows would survive a crash: build a new one in"
                    ' setup, or name the module, as in simulate("shop.operator", ...), which is then imported anew'
                )
            self._last = parts
            # Nothing listens in a simulation.
            parts.endpoints = parts.webhook_endpoint = None
            return parts
        manager = Manager(name=self.name)
        for part in parts if isinstance(parts, Iterable) else (parts,):
            manager.add(part)
        return manager
