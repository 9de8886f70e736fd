"""A program's own resources and background jobs, around leading and while it leads.

Guarantees
- Stages are entered in the order in which they were added, and left in reverse.
- A stage of `Manager.while_leading` gets the client of the term: its writes fail once the term is over, as those of
  reconciles do. The stage ends before the term does, so it never runs in two processes at once.
- A stage that fails stops the manager with its error.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias, cast

from steersman.aio import Supervisor
from steersman.client import Client

#: A context manager that is entered before leading and left after the last controller. It gets the manager's client.
Stage: TypeAlias = Callable[[Client], AbstractAsyncContextManager[Any]]
#: A background job: an async function that runs until it is cancelled.
Job: TypeAlias = Callable[[Client], Awaitable[Any]]


class Stages:
    """The stages of a manager."""

    def __init__(self) -> None:
        self._before: list[Stage] = []
        self._leading: list[Stage] = []

    def copy(self, *, jobs: bool = True) -> Stages:
        """The same stages, for another manager; ``jobs=False`` omits those of the time in which it leads."""
        other = Stages()
        other._before, other._leading = list(self._before), list(self._leading) if jobs else []
        return other

    def add(self, stage: Stage | Job, *, leading: bool, started: bool) -> None:
        """Add a stage; ``leading`` says whether it is for the time in which the program leads."""
        method = "while_leading" if leading else "before_leading"
        if started:
            raise RuntimeError(f"call {method}() before manager.run()")
        if not callable(stage):  # pyright: ignore[reportUnnecessaryComparison]
            raise TypeError(f"{method}({stage!r}): pass a function that takes the client")
        if inspect.iscoroutinefunction(stage):
            if not leading:
                name = getattr(stage, "__name__", "job")
                raise TypeError(
                    f"before_leading({name}) needs an async context manager: decorate {name} with @asynccontextmanager;"
                    f" or, for a background job, call while_leading({name})"
                )
            stage = _stage_of(stage)
        (self._leading if leading else self._before).append(cast("Stage", stage))

    async def enter(self, stack: AsyncExitStack, client: Client) -> None:
        """Enter the stages before leading."""
        for stage in self._before:
            await stack.enter_async_context(stage(client))

    @asynccontextmanager
    async def led(self, client: Client) -> AsyncGenerator[None]:
        """Enter the stages of the time in which the program leads, for a block."""
        async with AsyncExitStack() as stack:
            for stage in self._leading:
                await stack.enter_async_context(stage(client))
            yield


def _stage_of(job: Callable[[Client], Any]) -> Stage:
    """A stage that runs a job."""
    name = getattr(job, "__name__", "job")

    @asynccontextmanager
    async def stage(client: Client) -> AsyncGenerator[None]:
        async with Supervisor() as tasks:
            tasks.start(job(client), name=f"while leading: {name}")
            yield
            tasks.cancel()

    return stage
