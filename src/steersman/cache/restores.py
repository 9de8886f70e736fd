"""Evidence in a list that the server was restored from a backup, whatever the version of the list.

Guarantees
- A list proves a restore if it has an older state of an object than the store, or an object that was deleted before the
  list began. Either happens only if the server has lost changes.
- A restored server may raise its revision (``etcdutl snapshot restore --bump-revision``). Its lists are then newer than
  anything seen before, and only the objects show it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from steersman.cache.contents import SLICE
from steersman.cache.overlay import Overlay
from steersman.cache.store import Store
from steersman.cache.stored_object import StoredObject
from steersman.cache.versions import is_older
from steersman.objects import Key


def shows_restore(
    store: Store, overlay: Overlay, listed: Mapping[Key, StoredObject], *, began: int
) -> Generator[None, None, bool]:
    """Return whether a list shows a restore, yielding after every few objects.

    ``began`` is `Overlay.deletions` when the list was requested.
    """
    for position, stored in enumerate(listed.values(), 1):
        old = store.get(stored.key)
        # Most objects have not changed, and comparing texts is cheaper than parsing them.
        if old is None or old.uid != stored.uid or old.resource_version == stored.resource_version:
            went_back = False
        else:
            went_back = is_older(stored.resource_version, old.resource_version)
        if went_back or overlay.is_deleted(stored.uid, before=began):
            return True
        if not position % SLICE:
            yield
    return False
