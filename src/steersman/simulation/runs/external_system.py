"""External systems: services outside of the cluster, which keep their contents when the operator crashes.

Guarantees
- In a simulation, each call is a place where a fault can happen, as each request is. Outside of one, a call just happens.
- The contents of a system are compared like the state of the store: an effect that happened twice is a difference.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import msgspec

T = TypeVar("T")

_UID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


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


class _Metadata(msgspec.Struct):
    uid: str = ""


class _Identified(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def external_contents(store: Mapping[str, bytes]) -> dict[str, bytes]:
    """What all systems hold, under keys such as ``external/bank/1``, in an order that does not depend on uids."""
    values = {
        name: [msgspec.json.encode({"value": value}, order="sorted").decode() for value in objects.values()]
        for name, objects in sorted(_held.items())
    }
    names: dict[str, str] = {}
    if any(values.values()):
        names = {_uid_of(value): key for key, value in store.items()}

    def order(value: str) -> str:
        return _UID.sub(lambda uid: names.get(uid[0], uid[0]), value)

    return {
        f"external/{name}/{number}": value.encode()
        for name, found in values.items()
        for number, value in enumerate(sorted(found, key=order), start=1)
    }


def _uid_of(value: bytes) -> str:
    try:
        return msgspec.json.decode(value, type=_Identified).metadata.uid
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""  # a record of the server, and no object


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
