"""The scopes of a referenced kind: which names have which watch, and when each can be read.

Guarantees
- A name has one scope at a time. While it moves to another, its object stays, and reads of it go to the server.
- A wide scope that the server denies is split: each of its names gets a watch of its own, and the log says so once.
- A name that is dropped leaves without a notification: it was not deleted.
- An answer that is older than its scope shows a server restored from a backup: every kind is listed again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from steersman.cache.intake import Intake, KindOptions
from steersman.cache.references.completeness import JoinedNames
from steersman.cache.references.joins import Joining
from steersman.cache.references.placement import EVERYWHERE, places
from steersman.cache.references.references import References
from steersman.cache.replica import Replica
from steersman.objects import Key

_log = logging.getLogger("steersman.cache")

#: How many seconds a reader waits for the begin of a watch. Then it reads the name from the server.
_BEGIN_MAX = 1.0
#: How many reads of a name a reader waits for.
_TRIES = 2


class Watches(Protocol):
    """Follows scopes, and reads single objects: what an informer does for its names."""

    def begin_scope(self, scope: str) -> None:
        """Follow a new scope."""
        ...

    def end_scope(self, scope: str) -> None:
        """Follow a scope no more."""
        ...

    def read_live(self, key: Key) -> Awaitable[tuple[bytes | None, str]]:
        """Read an object from the server: its bytes, or None, and the version of the answer."""
        ...

    def report_restore(self) -> None:
        """Begin a new epoch: the server was restored from a backup."""
        ...


class NamedScopes:
    """The names of one kind that are followed."""

    def __init__(self, kind: str, replica: Replica, intake: Intake, options: KindOptions, watches: Watches) -> None:
        self._kind = kind
        self._replica = replica
        self._scopes = replica.scopes
        self._intake = intake
        self._options = options
        self._watches = watches
        #: From when on the names of wide scopes are complete.
        self._joined = JoinedNames()
        #: How often each object is referred to.
        self.references = References(self._place, self._drop)
        #: Wide scopes that the server denies.
        self._denied: set[str] = set()
        #: None while the informer does not run.
        self._joining: Joining | None = None
        self._mentioned = False
        replica.names = self

    def open(self, start: Callable[[Coroutine[Any, Any, Any], str], asyncio.Task[Any]]) -> None:
        """Follow the names from now on; ``start`` starts a task."""
        self._joining = Joining(self._joined, self._read, start)
        self.references.open()

    def close(self) -> None:
        """Follow no further names."""
        self.references.close()
        if self._joining is not None:
            self._joining.close()
            self._joining = None

    def has(self, key: Key) -> bool:
        """Whether the store can answer for a key."""
        scope = self._scopes.placed().get(key)
        if scope is None or not self._replica.sync.answers(scope):
            return False
        return not self._scopes.is_wide(scope) or key in self._joined

    async def obtain(self, key: Key) -> bool:
        """Whether the store can answer for a key. Wait for its first read, or for the begin of its watch, but not long."""
        if self.has(key):
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(_BEGIN_MAX):
                while self._is_beginning(key):
                    await self._replica.wait_progress()
        for _ in range(_TRIES):
            if self._joining is None or self._joined.turn(key) is None:
                break
            await self._joining.now(key)
        return self.has(key)

    def _is_beginning(self, key: Key) -> bool:
        if key in self.references and self._joining is not None and key not in self._scopes.placed():
            return not self._options.namespaces or key.namespace in self._options.namespaces
        scope, sync = self._scopes.placed().get(key), self._replica.sync
        return scope is not None and sync.is_joining(scope) and not sync.is_absent(scope) and not sync.is_refused(scope)

    def mention_outside(self, key: Key) -> None:
        """Log, once, that an object is read to which nothing refers."""
        if key in self.references or self._mentioned:
            return
        self._mentioned = True
        _log.warning(
            "%s %s is not referred to, so each read of it is a request. Return its key from the function of refers_to(),"
            " or ignore this if it is rare",
            self._kind,
            key,
        )

    def doubt(self) -> None:
        """Let the next read of each name go to the server: all of them may have changed."""
        for key in self._scopes.placed():  # also one that is being read: the answer may be older than this call
            self._replica.overlay.record_unknown(key)

    # called by the replica

    def begun(self, scope: str) -> None:
        """A wide scope has begun: its names can join."""
        self._join([*self._scopes.keys(scope)])

    def withdrawn(self, scope: str) -> None:
        """The server no longer serves the kind in a scope: its names join when the scope begins again."""
        for key in self._scopes.keys(scope):
            self._joined.forget(key)

    def overtakes(self, key: Key, resource_version: str) -> bool:
        """Note an event of a wide scope. Return whether the store has a newer state."""
        return self._joined.overtakes(key, resource_version)

    def denied(self, scope: str) -> None:
        """The server denies a scope."""
        if self._scopes.is_wide(scope) and scope not in self._denied:
            self._denied.add(scope)
            asyncio.get_running_loop().call_soon(self._split, scope)

    # steps

    def _place(self, keys: Collection[Key], *, leaving: str | None = None) -> None:
        """Follow these names too; ``leaving`` is a scope that they leave."""
        allowed = self._options.namespaces
        wanted = [key for key in keys if not allowed or key.namespace in allowed]
        placed = {key: scope for key, scope in self._scopes.placed().items() if scope != leaving}
        denied = {*self._denied, EVERYWHERE} if allowed else self._denied
        moves = places(placed, wanted, limit=self._options.watches_by_name, denied=denied)
        new: list[str] = []
        for key, scope in moves.items():
            self._joined.forget(key)
            if self._scopes.place(key, scope):
                self._replica.sync.gain(scope)
                new.append(scope)
        self._end_vacant()
        for scope in new:
            if scope in self._scopes:
                self._watches.begin_scope(scope)
        answering = self._replica.sync.answers
        self._join([key for key, scope in moves.items() if self._scopes.is_wide(scope) and answering(scope)])

    def _split(self, scope: str) -> None:
        keys = [*self._scopes.keys(scope)]
        if self._joining is None or not keys:
            return
        _log.warning(
            "%s cannot be watched in %s, so each of %d objects that others refer to has a watch of its own; allow the verbs"
            " list and watch there, or refer to fewer objects",
            self._kind,
            f"namespace {scope}" if scope else "all namespaces",
            len(keys),
        )
        self._place(keys, leaving=scope)

    def _drop(self, key: Key) -> None:
        """Follow a name no more."""
        if self._joining is not None:
            self._joining.forget(key)
        self._joined.forget(key)
        self._replica.drop(key)
        self._end_vacant()

    def _end_vacant(self) -> None:
        for scope in self._replica.vacate():
            self._watches.end_scope(scope)

    def _join(self, keys: Collection[Key]) -> None:
        self._joined.begin(keys)
        if keys and self._joining is not None:
            self._joining.want(keys)

    async def _read(self, key: Key, turn: int) -> None:
        """Read a name of a wide scope, and store the answer."""
        replica, scope = self._replica, self._scopes.placed().get(key)
        before = replica.store.watermark(scope or "")
        raw, version = await self._watches.read_live(key)
        if scope is None or self._scopes.placed().get(key) != scope or not self._joined.admits(key, turn):
            return
        stored = None if raw is None else self._intake.admit(raw)
        if raw is not None and stored is not None and not self._intake.selects(stored, raw):
            stored = None
        if replica.went_back(stored, version, key=key, before=before):
            _log.warning("the server was restored from a backup or replaced: %s %s went back", self._kind, key)
            self._watches.report_restore()
        else:
            if self._joined.join(key, version):  # otherwise an event was newer
                replica.answer(key, stored)
            replica.advance()
