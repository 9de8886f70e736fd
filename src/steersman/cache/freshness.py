"""Proof that a store has caught up with the server, without listing whole objects.

Guarantees
- `Freshness.holds` is true only if the store has every change in its scope up to the version of the server's response.
- For a small collection, one page of metadata shows which objects the store lacks; no bookmark is needed.
- For a large collection, the server sends the metadata of one object, and a bookmark must prove the rest.
- Non-numeric versions and a server restored from a backup prove nothing: `reach` then relists.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import msgspec

from steersman.aio import Backoff, Supervisor, randomness
from steersman.cache.intake import KindOptions
from steersman.cache.reflector import SHORT_SECONDS
from steersman.cache.replica import Replica
from steersman.cache.scopes import Scopes
from steersman.cache.store import Store
from steersman.client import RawReads
from steersman.errors import ApiError, Forbidden, Unauthorized
from steersman.objects import Key, version_number
from steersman.wire import ListOptions, RawList

#: Collections up to this size are compared object by object.
COMPARED_MAX = 500
#: How many seconds an open watch may lag behind the server's response before it is reopened.
_PROMPT = 1.0
#: How many short watches to try before a relist.
_SHORT_WATCHES_MAX = 3

_log = logging.getLogger("steersman.cache")


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Identified(msgspec.Struct, gc=False):
    metadata: _Metadata


_decoder = msgspec.json.Decoder(_Identified)


class ScopeReads(msgspec.Struct, frozen=True):
    """Reads the metadata of one scope; ``reads`` must request metadata only."""

    reads: RawReads
    scope: str
    options: KindOptions = KindOptions()
    scopes: Scopes = Scopes()

    async def page(self, limit: int) -> RawList:
        """The first page."""
        options = self.options
        query = ListOptions(
            label_selector=str(options.labels),
            field_selector=str(options.fields),
            limit=limit,
            shards=self.scopes.selector(self.scope),
        )
        return await self.reads.page(self.scopes.namespace(self.scope), query)

    def selects(self, key: Key, uid: str) -> bool:
        """Whether a listed object is in the scope: the server may not select shards."""
        return self.scopes.selects(self.scope, key, uid=uid)


class Freshness:
    """The server's state of one scope at the time of a request, and whether the store has caught up with it."""

    def __init__(self, store: Store, scope: str) -> None:
        self._store = store
        self._scope = scope
        #: The store's version before the request: an older response means that the server was restored from a backup.
        self._before = 0
        self._number: int | None = None
        #: Every object that the server listed, with uid and version; None if there are too many to compare.
        self._listed: dict[Key, tuple[str, int]] | None = None
        #: The listed objects that the store does not have yet.
        self._awaited: dict[Key, tuple[str, int]] = {}

    async def ask(self, reads: ScopeReads) -> None:
        """Ask the server for its current state."""
        self._before = version_number(self._store.watermark(self._scope)) or 0
        small = len(self._store) <= COMPARED_MAX
        page = await reads.page(COMPARED_MAX if small else 1)
        self._number = version_number(page.resource_version)
        self._listed = None
        if small and not page.continue_:
            found = (identity for raw in page.items if (identity := _identity(raw)) is not None)
            self._listed = {key: (uid, version) for key, (uid, version) in found if reads.selects(key, uid)}
            self._awaited = dict(self._listed)

    @property
    def is_comparable(self) -> bool:
        """Whether the version of the response can be compared with the store's."""
        return self._number is not None and self._number >= self._before and self._seen is not None

    @property
    def is_compared(self) -> bool:
        """Whether objects are compared one by one. Otherwise, without changes, only a bookmark is proof."""
        return self._listed is not None

    def holds(self) -> bool:
        """Whether the store is at least as new as the response."""
        number, seen = self._number, self._seen
        if number is None or seen is None:
            return False
        if seen >= number:
            return True
        if self._listed is None:
            return False
        for key, (uid, version) in [*self._awaited.items()]:
            stored = self._store.get(key)
            if stored is not None and stored.uid == uid and (version_number(stored.resource_version) or 0) >= version:
                del self._awaited[key]
        # An object that the server did not list is deleted, unless it was created after the response.
        return not self._awaited and all(
            key in self._listed or (version_number(stored.resource_version) or 0) > number
            for key, stored in self._store.of_scope(self._scope)
        )

    @property
    def _seen(self) -> int | None:
        return version_number(self._store.watermark(self._scope))


def _identity(raw: bytes) -> tuple[Key, tuple[str, int]] | None:
    try:
        metadata = _decoder.decode(raw).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    version = version_number(metadata.resource_version or "") or 0
    return Key(metadata.namespace or "", metadata.name), (metadata.uid or "", version)


async def reach_all(
    tasks: Supervisor,
    replica: Replica,
    scopes: Iterable[ScopeReads],
    *,
    hurry: Callable[[str], None],
    refresh: Callable[[], Awaitable[None]],
) -> None:
    """Wait until all scopes are as new as the server is now, or their informer, the owner of ``tasks``, ends.

    Reads of the kind wait as well.
    """
    if tasks.stopping:
        return
    replica.sync.catch_up()
    reaching = [
        tasks.start(reach(replica, reads, hurry=hurry, refresh=refresh), name=f"reach {reads.scope}".rstrip())
        for reads in scopes
    ]
    try:
        if reaching:
            await asyncio.wait(reaching)
    finally:
        for task in reaching:
            task.cancel()
        replica.sync.caught_up()
        replica.advance()


async def reach(
    replica: Replica,
    reads: ScopeReads,
    *,
    hurry: Callable[[str], None],
    refresh: Callable[[], Awaitable[None]],
) -> None:
    """Wait until a scope is as new as the server is now. Relist only if nothing less is proof.

    ``hurry`` makes the server send a bookmark for a scope soon, and ``refresh`` relists everything.
    """
    scope = reads.scope
    backoff = Backoff(initial=0.25, maximum=15.0)
    while True:
        await replica.wait_synced()
        freshness = Freshness(replica.store, scope)
        try:
            await freshness.ask(reads)
        except ApiError as error:
            if isinstance(error, Forbidden | Unauthorized):
                replica.deny(scope, error)
            _log.debug("cannot read the current version: %s", error)
            replica.failed_asks += 1
            replica.advance()
            await asyncio.sleep(backoff.next_delay(randomness()))
            continue
        replica.failed_asks = 0
        if scope not in reads.scopes:
            return  # lost meanwhile
        if freshness.is_comparable and await _proved(replica, freshness, lambda: hurry(scope)):
            return
        if scope not in reads.scopes:
            return
        if replica.sync.synced:
            # The versions cannot be compared, or the server sends no bookmarks: only a list is proof.
            await refresh()
            return


async def _proved(replica: Replica, freshness: Freshness, hurry: Callable[[], None]) -> bool:
    if freshness.is_compared and await _shows(replica, freshness, within=_PROMPT):
        return True
    for _ in range(_SHORT_WATCHES_MAX):
        if not freshness.holds():
            hurry()
        if await _shows(replica, freshness, within=SHORT_SECONDS + _PROMPT):
            return True
        if not replica.sync.synced:
            break
    return False


async def _shows(replica: Replica, freshness: Freshness, *, within: float) -> bool:
    """Wait up to ``within`` seconds for the store to catch up; return whether it has."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            while replica.sync.synced and not freshness.holds():
                await replica.wait_progress()
    return replica.sync.synced and freshness.holds()
