"""Which objects refer to which, according to a function of the owners.

Guarantees
- The references of an owner are those of its last state that the function could read.
- An owner that is gone, or left with its range, refers to nothing.
- A name alone is never guessed to be in a namespace: of a kind without a class, only a `Key` says where the object is.
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
from steersman.objects import Key, Kind, kind_name
from steersman.telemetry import FailureLog

_log = logging.getLogger("steersman.cache")

#: Returns what an owner refers to: names in its namespace, or keys.
ReferenceFunction: TypeAlias = Callable[[Any], Iterable[Key | str] | Key | str | None]


class Referrers:
    """The references of the owners of one kind to the objects of another."""

    def __init__(self, target: Informer[Any], function: ReferenceFunction) -> None:
        self._target = target
        self._function = function
        self._namespaced = _is_namespaced(target.kind)
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
        for each in several:
            match each:
                case None | "":
                    continue  # an optional field that is not set
                case Key():
                    self._check(each)
                    yield each
                case str():
                    yield Key(self._namespace(owner, each), each)
                case _:
                    raise TypeError(f"it returned {each!r}; it must return names or keys")

    def _check(self, key: Key) -> None:
        """Raise `ValueError` for a key that no object of the kind can have."""
        if self._namespaced is not None and self._namespaced != bool(key.namespace):
            where, form = ("a namespace", "namespace") if self._namespaced else ("no namespace", "''")
            name = kind_name(self._target.kind)
            raise ValueError(f"it returned {key!r}, but each {name} is in {where}: return Key({form}, name)")

    def _namespace(self, owner: Key, name: str) -> str:
        """The namespace of an object that an owner refers to by its name alone."""
        if self._namespaced is None:
            raise ValueError(
                f"it returned {name!r}, but only the server knows whether {kind_name(self._target.kind)} is in a"
                " namespace: return Key(namespace, name), or Key('', name)"
            )
        if self._namespaced and not owner.namespace:
            raise ValueError(f"it returned {name!r}, but {owner} is in no namespace: return Key(namespace, name)")
        return owner.namespace if self._namespaced else ""


def _is_namespaced(kind: type[Any] | Kind) -> bool | None:
    """Whether a kind is namespaced; None if only the server can tell."""
    if not isinstance(kind, Kind):
        return kind.__resource__.namespaced
    from steersman.kinds import class_of  # noqa: PLC0415 - only kinds without a class need it

    try:
        return cast("Any", class_of(kind.gvk())).__resource__.namespaced
    except LookupError:
        return None
