"""Which objects refer to which, according to a function of the owners.

Guarantees
- The references of an owner are those of its last state that the function could read.
- An owner that is gone, or left with its range, refers to nothing.
- A failing function is logged with the owner, and concerns that owner alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias, cast

from steersman.cache.informer import Informer
from steersman.cache.object_events import ObjectEvent
from steersman.errors import is_exit
from steersman.objects import Key, Kind
from steersman.telemetry import FailureLog

_log = logging.getLogger("steersman.cache")

#: Returns what an owner refers to: names in its namespace, or keys.
ReferenceFunction: TypeAlias = Callable[[Any], Iterable[Key | str] | Key | str | None]


class Referrers:
    """The references of the owners of one kind to the objects of another."""

    def __init__(self, target: Informer[Any], function: ReferenceFunction) -> None:
        self._target = target
        self._function = function
        self._referred: dict[Key, frozenset[Key]] = {}
        self._owners: dict[Key, dict[Key, None]] = {}
        self._failure_log = FailureLog()

    def owners(self, key: Key) -> Collection[Key]:
        """Return the owners that refer to an object."""
        return [*self._owners.get(key, ())]

    def handle(self, event: ObjectEvent) -> None:
        """Note the state of an owner."""
        if event.new is None:
            self.forget(event.key)
            return
        try:
            referred = frozenset(self._keys(event.key, self._function(event.new)))
        except BaseException as error:
            # User code: any error concerns this owner only.
            if is_exit(error):
                raise
            self._failure_log.report(
                _log,
                error,
                asyncio.get_running_loop().time(),
                "%s failed on %s %s",
                getattr(self._function, "__name__", self._function),
                event.kind.kind,
                event.key,
                then="; it keeps its former references",
            )
            return
        self._refer(event.key, referred)

    def forget(self, owner: Key) -> None:
        """The owner refers to nothing any more."""
        self._refer(owner, frozenset())

    def clear(self) -> None:
        """No owner refers to anything any more."""
        for owner in [*self._referred]:
            self.forget(owner)

    def _refer(self, owner: Key, referred: frozenset[Key]) -> None:
        before = self._referred.get(owner, frozenset())
        if referred:
            self._referred[owner] = referred
        else:
            self._referred.pop(owner, None)
        for key in sorted(referred - before):
            self._owners.setdefault(key, {})[owner] = None
        for key in before - referred:
            owners = self._owners[key]
            del owners[owner]
            if not owners:
                del self._owners[key]
        if (names := self._target.names) is not None:  # else all of the kind is cached
            names.references.begin(sorted(referred - before))
            names.references.end(sorted(before - referred))

    def _keys(self, owner: Key, returned: object) -> Iterable[Key]:
        if returned is None:
            return
        several = (returned,) if isinstance(returned, str | Key) else cast("Iterable[object]", returned)
        kind = self._target.kind
        namespaced = isinstance(kind, Kind) or kind.__resource__.namespaced
        for each in several:
            match each:
                case None | "":
                    continue  # an optional field that is not set
                case Key():
                    yield each
                case str():
                    if namespaced and not owner.namespace:
                        raise ValueError(
                            f"it returned {each!r}, but {owner} is in no namespace: return Key(namespace, name)"
                        )
                    yield Key(owner.namespace if namespaced else "", each)
                case _:
                    raise TypeError(f"it returned {each!r}; it must return names or keys")
