"""A process of the operator, as a run sees it."""

from __future__ import annotations

import asyncio

from steersman.aio import Actor
from steersman.controller import Controller, KeyRecord
from steersman.manager import Manager


class Process:
    """One process of the operator: it may crash and start again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.starts = 0
        self.actor: Actor | None = None
        self.manager: Manager | None = None
        self.task: asyncio.Task[None] | None = None
        #: The reconciles of all incarnations, with the names of their controllers.
        self.records: list[tuple[str, KeyRecord]] = []

    @property
    def running(self) -> tuple[Actor, Manager] | None:
        """Its actor and manager, unless it has crashed or not begun."""
        if self.actor is None or not self.actor.alive or self.manager is None:
            return None
        return self.actor, self.manager

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The controllers that run now."""
        return () if self.running is None else self.running[1].controllers

    @property
    def is_starting(self) -> bool:
        """Whether it runs and has not begun to work."""
        return self.running is not None and self.running[1].phase in {"starting", "syncing"}
