"""The objects a workload controls: its own objects that still match its selector, and matching orphans.

Guarantees
- An object that another controller owns is never touched.
- A matching orphan is adopted, and an object that no longer matches is released, each by its uid.
- A workload that is being deleted neither adopts nor releases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from steersman.client import StrategicPatch
from steersman.controller import Context, MapFunction, Stores, View
from steersman.errors import Invalid, NotFound
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import Key, Object, Selector, controller_of

ObjectT = TypeVar("ObjectT", bound=Object)
OwnerT = TypeVar("OwnerT", bound=Object)

#: The cache index that finds objects by their controller; see `index_values`.
INDEX = "controller"


async def claim(
    ctx: Context,
    owner: Object,
    found: Iterable[ObjectT],
    selector: LabelSelector,
    *,
    matches: Callable[[ObjectT], bool] = lambda _: True,
    finalizer: str = "",
) -> list[ObjectT]:
    """The objects among ``found`` that ``owner`` controls, after adopting orphans and releasing the others.

    ``finalizer`` is added on adoption and removed on release.
    """
    labels = Selector.from_label_selector(selector)
    ours: list[ObjectT] = []
    leaving = owner.metadata.deletion_timestamp is not None
    for each in found:
        reference = controller_of(each)
        fits = labels.matches(each.metadata.labels) and matches(each)
        if reference is None:
            if fits and not leaving and each.metadata.deletion_timestamp is None:
                ours += await _adopt(ctx, owner, each, finalizer)
        elif reference.uid == owner.metadata.uid:
            if fits:
                ours.append(each)
            elif not leaving:
                await _release(ctx, owner, each, finalizer)
    return ours


async def _adopt(ctx: Context, owner: Object, orphan: ObjectT, finalizer: str) -> list[ObjectT]:
    # The cache may still hold a deleted owner: only the server can decide whether it may adopt.
    fresh = await ctx.client.live.find(type(owner), owner.key)
    if fresh is None or fresh.metadata.uid != owner.metadata.uid or fresh.metadata.deletion_timestamp is not None:
        return []
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: dict[str, Any] = {"ownerReferences": [reference], "uid": orphan.metadata.uid}
    if finalizer:
        metadata["finalizers"] = [finalizer]
    patch = StrategicPatch({"metadata": metadata})
    try:
        return [await ctx.client.patch(type(orphan), orphan.key, patch)]
    except NotFound:
        return []


async def _release(ctx: Context, owner: Object, held: Object, finalizer: str) -> None:
    removed = [{"$patch": "delete", "uid": owner.metadata.uid}]
    metadata: dict[str, Any] = {"ownerReferences": removed, "uid": held.metadata.uid}
    if finalizer:
        metadata["$deleteFromPrimitiveList/finalizers"] = [finalizer]
    patch = StrategicPatch({"metadata": metadata})
    try:
        await ctx.client.patch(type(held), held.key, patch)
    except (NotFound, Invalid):
        # It is gone, or its successor has another uid.
        return


def index_values(held: Object) -> list[str]:
    """The index value of an object: the uid of its controller, empty for an orphan."""
    reference = controller_of(held)
    return [reference.uid if reference is not None else ""]


async def candidates(ctx: Context, kind: type[ObjectT], owner: Object) -> list[ObjectT]:
    """The objects that ``owner`` could claim: those it controls, and all orphans of its namespace."""
    namespace = owner.metadata.namespace
    own = await ctx.client.by_index(kind, INDEX, owner.metadata.uid, namespace=namespace)
    return [*own, *await ctx.client.by_index(kind, INDEX, "", namespace=namespace)]


def adopters(owners: type[OwnerT], selector: Callable[[OwnerT], LabelSelector | None]) -> MapFunction[Object]:
    """A mapper from an orphan to the workloads whose selector matches it."""

    def matching(view: View[Object], stores: Stores) -> list[Key]:
        if any(owner.controller for owner in view.metadata.owner_references or ()):
            return []
        return [
            each.key
            for each in stores.list(owners, namespace=view.key.namespace)
            if Selector.from_label_selector(selector(each.object)).matches(view.labels)
        ]

    return matching
