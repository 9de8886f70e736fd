"""Children that this program created under a former name: ``Manager(name="new", formerly=("old",))``.

Guarantees
- A child with the mark of a former name is ours like any other: Steersman applies, prunes and deletes it.
- Every child that a reconcile sees, declared or not, is moved to the current name. Once all objects were reconciled,
  ``formerly=`` can be removed.
"""

from __future__ import annotations

from steersman.cache import StoredView
from steersman.controller import InternalClient, KindLike
from steersman.patterns.children.memory import ChildMemory


async def taken_over(
    client: InternalClient, memory: ChildMemory, kind: KindLike, view: StoredView
) -> StoredView | None:
    """The child after its ``managedFields`` entries of former names were renamed; None if it was deleted meanwhile."""
    if len(client.field_managers) < 2 or not memory.takes_over_first(view.uid):
        return view
    if not await client.take_over(kind, view.key):
        return view
    return await client.view(kind, view.key)
