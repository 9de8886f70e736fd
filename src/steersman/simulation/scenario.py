"""What a simulation runs: an operator, and what its users do.

A simulation calls the setup for each run and for each restart of the operator, so the setup must build everything itself.
A restart resets numbers, strings and builtin containers in module variables (see `ModuleState`). Other objects there survive
a simulated crash, unlike a real one: keep them in the manager.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

from steersman.apiserver import Storage
from steersman.client import Client
from steersman.controller import Blueprint, SupportsBlueprint
from steersman.controlplane import ControlPlane
from steersman.manager import Manager
from steersman.objects import Object
from steersman.simulation.checks import StateCheck
from steersman.simulation.programs import program
from steersman.webhooks import Hook

Parts: TypeAlias = "Manager | Blueprint | SupportsBlueprint | Hook | Iterable[Blueprint | SupportsBlueprint | Hook]"
#: Builds the operator, for its first start and after each crash.
Setup: TypeAlias = Callable[[], Parts]
#: Makes a program that runs beside the operator, such as `PodRunner` or `WorkloadRunner`.
Companion: TypeAlias = Callable[[Client], AbstractAsyncContextManager[Any]]


class ScenarioUser(Protocol):
    """A user of the operator's kinds: a person or another program."""

    @property
    def client(self) -> Client:
        """The administrator's client."""
        ...

    async def settled(self) -> None:
        """Wait until the operator and the control plane have nothing left to do, and record the state.

        A run with faults must have the same state here as the run without faults.
        """
        ...

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        ...


#: What users do.
Workload: TypeAlias = Callable[[ScenarioUser], Awaitable[None]]


class Scenario:
    """An operator and what its users do.

    ``setup`` builds the operator anew at each call, or is the name of a module that has a ``manager``. ``beside`` names
    programs that run with it: ``beside={"kubelet": PodRunner}``. Each is an actor of its own, to which no fault happens.
    """

    def __init__(
        self,
        setup: Setup | str,
        workload: Workload,
        *,
        checks: Iterable[StateCheck] = (),
        kinds: Iterable[type[Object]] = (),
        replicas: int = 1,
        beside: Mapping[str, Companion] | None = None,
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
        self.beside = dict(beside or {})
        self.name = name or (setup if isinstance(setup, str) else getattr(setup, "__name__", "scenario"))
        self._last: Manager | None = None

    def control_plane(self, storage: Storage) -> ControlPlane:
        """The control plane of a run; a subclass may choose its controllers."""
        return ControlPlane(storage=storage)

    def manager(self) -> Manager:
        """A new manager of the operator."""
        parts = self.setup()
        if isinstance(parts, Manager):
            if parts is self._last:
                raise TypeError(
                    "setup returned the same manager twice, so its state would survive a crash: build a new one in"
                    ' setup, or name the module, as in simulate("shop.operator", ...), which is then imported again for each'
                    " start"
                )
            self._last = parts
            # Nothing listens in a simulation.
            parts.endpoints = parts.webhook_endpoint = None
            return parts
        manager = Manager(name=self.name)
        for part in parts if isinstance(parts, Iterable) else (parts,):
            manager.add(part)
        return manager
