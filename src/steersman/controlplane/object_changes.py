"""All changes in the server, as its controllers see them.

Guarantees
- One watch on the store serves all kinds; it costs nothing while nothing is written.
- Changes come in the order they were made, over all kinds: an object not seen so far did not exist at the revision
  reached.
- A change carries an object's metadata and tells controllers what to check. They decide on responses of the server.
- A newly served kind is shown with all its objects; after a gap in the store's history everything is shown again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec

from steersman.aio import Supervisor
from steersman.apiserver import ApiServer, Change, Compacted, Definition, Record
from steersman.controller import Cause, Request
from steersman.objects import GroupVersionKind

_log = logging.getLogger("steersman.controlplane")

#: Queues a request.
Add = Callable[[Request, Cause], None]


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """A reference to an owner, as stored in an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata that tells controllers what to check."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: str | None = None


class _Stored(msgspec.Struct, frozen=True):
    metadata: Metadata


_decoder = msgspec.json.Decoder(_Stored)


def metadata_of(stored: bytes) -> Metadata:
    """The metadata of a stored object; raises msgspec's error if it is missing."""
    return _decoder.decode(stored).metadata


class ObjectChange(msgspec.Struct, frozen=True):
    """An object after a change, or its last state before deletion."""

    definition: Definition
    metadata: Metadata
    gone: bool = False


class Watcher:
    """Called with every change, to queue what it affects. Its methods must not block."""

    _add: Add | None = None

    def feeds(self, add: Add) -> None:
        """Set where requests are queued."""
        self._add = add

    def seen_all(self, changes: Sequence[ObjectChange]) -> None:
        """These are all existing objects."""
        for change in changes:
            self.seen(change)

    def seen(self, change: ObjectChange) -> None:
        """An object was created, changed or deleted."""
        raise NotImplementedError

    def kinds_changed(self) -> None:
        """Kinds were added or removed; objects of new kinds are shown after this."""


class ObjectChanges:
    """Follows the store of a server for its watchers: call `begin`, then `run` in a task."""

    def __init__(self, server: ApiServer, on_news: Callable[[], None]) -> None:
        self._server = server
        #: Called after watchers were notified.
        self._on_news = on_news
        self._watchers: list[Watcher] = []
        #: The served kinds, by key prefix and by kind, and the registry revision they are from.
        self._definitions: dict[str, Definition] = {}
        self._by_kind: dict[GroupVersionKind, Definition] = {}
        self._looked_at = -1
        #: The kinds that watchers have been shown.
        self._shown: frozenset[str] = frozenset()
        self._shown_of = -1
        self._kinds_changed = asyncio.Event()
        #: How many objects each resource has in each namespace, by key prefix.
        self._counts: dict[str, dict[str, int]] = {}
        self._turns: dict[asyncio.Future[None], None] = {}
        #: Watchers have seen everything up to this revision.
        self.reached = 0

    def add(self, watcher: Watcher) -> None:
        """Add a watcher, before `begin`."""
        self._watchers.append(watcher)

    # served kinds

    def definitions(self) -> Iterable[Definition]:
        """The served kinds, one version of each."""
        self._look_at_kinds()
        return list(self._definitions.values())

    def definition(self, prefix: str) -> Definition | None:
        """The definition of the objects with this key prefix; None if not served."""
        self._look_at_kinds()
        return self._definitions.get(prefix)

    def of_kind(self, gvk: GroupVersionKind) -> Definition | None:
        """The definition of a kind in exactly this version; None if not served."""
        self._look_at_kinds()
        return self._by_kind.get(gvk)

    def is_empty(self, definition: Definition, namespace: str) -> bool:
        """Whether a namespace had no object of a kind at the revision reached."""
        return not self._counts.get(namespace, {}).get(definition.prefix)

    def _look_at_kinds(self) -> None:
        registry = self._server.registry
        if self._looked_at == registry.revision:
            return
        self._looked_at = registry.revision
        self._by_kind = {each.gvk: each for each in registry if "get" in each.verbs}
        self._definitions = {}
        for definition in registry:
            if "delete" in definition.verbs:
                # Groups may share objects, and a kind has versions: the first one served represents all.
                self._definitions.setdefault(definition.prefix, definition)

    # following

    async def begin(self) -> None:
        """Show all existing objects."""
        self._look_at_kinds()
        self._shown, self._shown_of = frozenset(self._definitions), self._looked_at
        page = await self._server.storage.list("")
        self._counts.clear()
        for record in page.records:
            self._count(record.key, 1)
        found = [change for record in page.records if (change := self._change(record)) is not None]
        for watcher in self._watchers:
            watcher.seen_all(found)
        self.reached = page.revision

    async def run(self) -> None:
        """Follow the store forever."""
        self._server.registry.listeners.append(self._kinds_changed.set)
        try:
            async with Supervisor() as tasks:
                tasks.start(self._follow_kinds(), name="control plane: kinds")
                await self._follow_objects()
        finally:
            self._server.registry.listeners.remove(self._kinds_changed.set)

    async def _follow_objects(self) -> None:
        while True:
            try:
                async with self._server.storage.watch("", after=self.reached) as watch:
                    async for change in watch:
                        self._take(change)
                        self.reached = max(self.reached, change.revision)
                        self._wake()
            except Compacted as gone:
                if self.reached < gone.oldest:
                    _log.info("the store was compacted past revision %d: reading everything again", self.reached)
                    await self.begin()
                    self._wake()

    async def _follow_kinds(self) -> None:
        while True:
            self._kinds_changed.clear()
            if self._shown_of != self._server.registry.revision:
                await self._show_kinds()
                self._wake()
            else:
                await self._kinds_changed.wait()

    async def _show_kinds(self) -> None:
        """Announce added and removed kinds, and show objects stored before their kind was served."""
        self._look_at_kinds()
        looked_at, before = self._looked_at, self._shown
        self._shown = frozenset(self._definitions)
        for watcher in self._watchers:
            watcher.kinds_changed()
        for prefix in [prefix for prefix in self._definitions if prefix not in before]:
            page = await self._server.storage.list(prefix)
            for record in page.records:
                self._show(record)
        self._shown_of = looked_at

    async def wait_for(self, revision: int) -> None:
        """Wait until a revision is reached, and all kinds served by then have been shown."""
        kinds = self._server.registry.revision
        while self.reached < revision or self._shown_of < kinds:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns[turn] = None
            try:
                await turn
            finally:
                self._turns.pop(turn, None)

    def _wake(self) -> None:
        self._on_news()
        if self._turns:
            waiting, self._turns = self._turns, {}
            for turn in waiting:
                if not turn.done():
                    turn.set_result(None)

    def _take(self, change: Change) -> None:
        self._look_at_kinds()
        if change.previous is None:
            self._count(change.key, 1)
        elif change.record is None:
            self._count(change.key, -1)
        record = change.record or change.previous
        if record is not None:
            self._show(record, gone=change.record is None)

    def _show(self, record: Record, *, gone: bool = False) -> None:
        change = self._change(record, gone=gone)
        if change is not None:
            for watcher in self._watchers:
                watcher.seen(change)

    def _change(self, record: Record, *, gone: bool = False) -> ObjectChange | None:
        """A change of a record; None if it is not an object, or of no served kind."""
        key = record.key
        definition = self._definitions.get(key[: key.find("/", key.find("/") + 1) + 1])
        if definition is None:
            return None
        try:
            return ObjectChange(definition, metadata_of(record.value), gone)
        except msgspec.MsgspecError:
            _log.warning("%s has no readable metadata: controllers ignore it", key)
            return None

    def _count(self, key: str, change: int) -> None:
        group, _, rest = key.partition("/")
        resource, _, rest = rest.partition("/")
        namespace, slash, _ = rest.partition("/")
        if slash:
            counts = self._counts.setdefault(namespace, {})
            prefix = f"{group}/{resource}/"
            counts[prefix] = counts.get(prefix, 0) + change
            if not counts[prefix]:
                del counts[prefix]
                if not counts:
                    del self._counts[namespace]
