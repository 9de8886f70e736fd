"""External systems: services outside of the cluster, which keep their contents when the operator crashes.

Guarantees
- In a simulation, each call is a place where a fault can happen, as each request is. Outside of one, a call just happens.
- The contents of a system are compared like the state of the store: an effect that happened twice is a difference.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class ExternalFailure(ConnectionError):
    """A call of an external system failed: its effect may or may not have happened."""


class Calls(Protocol):
    """How a simulation carries out calls of external systems."""

    async def call(self, system: ExternalSystem, verb: str, key: str, effect: Callable[[], T]) -> T:
        """Carry out a call, with the fault that is decided for it."""
        ...


#: The calls of the running simulation.
simulated_calls: ContextVar[Calls | None] = ContextVar("steersman_simulated_calls", default=None)


#: What each system holds, and how many ids it has given, by its name.
_held: dict[str, dict[str, Any]] = {}
_given: Counter[str] = Counter()


def external_objects() -> dict[str, dict[str, Any]]:
    """What each system holds, by its name."""
    return _held


class ExternalSystem:
    """A service outside of the cluster, for a scenario.

    ```python
    bank = ExternalSystem("bank")

    async def open_account(name: str) -> str:
        return await bank.call("open", name, lambda: bank.add({"owner": name}))
    ```

    ``objects`` is what it holds, by ids that it gives. Systems with the same name share it: a module that is imported again
    after a crash finds what it left.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.objects = _held.setdefault(name, {})

    def add(self, value: Any, id_: str = "") -> str:
        """Hold a value, under a new id unless one is given; returns the id."""
        if not id_:
            _given[self.name] += 1
            id_ = f"{self.name}-{_given[self.name]}"
        self.objects[id_] = value
        return id_

    async def call(self, verb: str, key: str, effect: Callable[[], T]) -> T:
        """Call the service; the effect is a function that reads or changes `objects`."""
        calls = simulated_calls.get()
        if calls is None:
            await asyncio.sleep(0)
            return effect()
        return await calls.call(self, verb, key, effect)
