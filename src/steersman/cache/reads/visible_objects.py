"""The objects of a kind as readers see them: the store with our own writes over it, or the server.

Guarantees
- A key in doubt is read from the server first, which settles it.
- The store answers a list only if it has all objects that the list may return at the moment when it is read: a range may
  leave while the list waits for an index or for a key in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from steersman.cache.contents import IndexName
from steersman.cache.informer import Informer
from steersman.cache.store import Found
from steersman.cache.stored_object import StoredObject
from steersman.objects import Key, Selector
from steersman.wire import ListOptions

#: Up to this many keys in doubt are read one by one; more cause a relist.
_ONE_BY_ONE = 32
#: The page size of a read that only the server can answer.
_PAGE = 500


async def visible_object(informer: Informer[Any], key: Key) -> StoredObject | None:
    """Return the visible state of a key, with a live read if the overlay requires one."""
    overlay, store = informer.overlay, informer.store
    while overlay.needs_live(key, store.get(key)):
        epoch, doubts = overlay.epoch, overlay.doubts(key)
        raw, version = await informer.read_live(key)
        stored = None if raw is None else informer.intake.admit(raw)
        if informer.scopes.is_outside(key):
            return stored  # the cache holds it no longer
        if overlay.epoch != epoch:
            continue  # the response may be from before the server was restored
        if raw is None or stored is None:
            overlay.record_absent(key, version, doubts=doubts, base=store.get(key))
        else:
            overlay.record_read(stored, doubts=doubts, selected=informer.intake.selects(stored, raw))
        break
    return overlay.visible(key, store.get(key))


async def visible_objects(
    informer: Informer[Any],
    index: IndexName | None,
    found: Callable[[], Iterable[StoredObject]],
    belongs: Callable[[StoredObject], bool],
    *,
    namespace: str | None = None,
) -> Found | None:
    """Return the matching objects of the store and of our own writes, each in its visible state.

    Return None if the store does not have all objects of the namespace: then only the server can answer.
    """
    overlay, store = informer.overlay, informer.store
    if informer.covers(namespace):
        await informer.prepare(index)
        if not overlay.is_empty:
            await _settle(informer)
            await informer.prepare(index)  # a list may have replaced the contents meanwhile
    if not informer.covers(namespace):  # nothing is awaited from here on
        informer.outside_reads += 1
        return None
    if overlay.is_empty:
        return [*found()]
    shown: dict[Key, StoredObject] = {}
    for stored in found():
        seen = overlay.visible(stored.key, stored)
        if seen is not None and (seen is stored or belongs(seen)):
            shown[seen.key] = seen
    for written in overlay.writes():
        key = written.key
        if key not in shown and belongs(written) and overlay.visible(key, store.get(key)) is written:
            shown[key] = written
    return [*shown.values()]


async def objects_outside(informer: Informer[Any], namespace: str | None, labels: Selector) -> Found:
    """Read objects from the server because the store lacks some; what the cache leaves out is left out here too."""
    options = informer.options
    query = ListOptions(label_selector=str(options.labels & labels), field_selector=str(options.fields), limit=_PAGE)
    found: list[StoredObject] = []
    while True:
        page = await informer.reads.page(namespace or "", query)
        found += [stored for raw in page.items if (stored := informer.intake.admit(raw)) is not None]
        if not page.continue_:
            return found
        query = replace(query, continue_=page.continue_)


async def _settle(informer: Informer[Any]) -> None:
    """Settle the keys in doubt: read them one by one, or relist if there are many."""
    overlay = informer.overlay
    keys = overlay.live_keys()
    if len(keys) <= _ONE_BY_ONE:
        for key in keys:
            await visible_object(informer, key)
        return
    while True:
        epoch, doubts = overlay.epoch, {key: overlay.doubts(key) for key in keys}
        await informer.refresh()
        if overlay.epoch == epoch:
            break  # a list that begins an epoch may be older than our writes to the restored server
    for key, count in doubts.items():
        overlay.record_refreshed(key, doubts=count)
