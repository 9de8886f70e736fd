"""Actors: parts of one process that stand for separate machines, each with its own clock, randomness and host name.

Guarantees
- A task belongs to the actor in whose context it was started, and so does everything that it starts.
- Code outside every actor uses the clock and the generator of its loop.
- A dead actor never acts again: a loop that knows actors runs none of its callbacks (`SimulatedLoop`).
"""

from __future__ import annotations

import platform
import random
from contextvars import Context, ContextVar, copy_context


class Actor:
    """A machine within this process: ``actor.context.run(...)``, or a task with its context, acts as it."""

    __slots__ = ("alive", "context", "generator", "name", "skew")

    def __init__(self, name: str, *, seed: int, skew: float = 0.0) -> None:
        #: Its host name.
        self.name = name
        self.generator = random.Random(seed)
        #: Seconds by which its wall clock is ahead of the loop's.
        self.skew = skew
        #: Whether it still acts. A crash sets it to False.
        self.alive = True
        #: The context in which it acts.
        self.context: Context = copy_context()
        self.context.run(_current.set, self)

    def __repr__(self) -> str:
        return f"<Actor {self.name}{'' if self.alive else ' (dead)'}>"


_current: ContextVar[Actor | None] = ContextVar("steersman_actor", default=None)


def current_actor() -> Actor | None:
    """The actor that the running code belongs to; None outside every actor."""
    return _current.get()


def actor_in(context: Context) -> Actor | None:
    """The actor that acts in a context."""
    return context.get(_current)


def host_name() -> str:
    """The name of the machine, or of the actor that stands for one."""
    actor = _current.get()
    return actor.name if actor is not None else platform.node()
