"""resourcequota-controller: copies the limits of a quota to its status, where the server enforces them, and counts usage.

Guarantees
- A new or changed quota gets the usage of the objects that exist.
- A deletion, and the end of a Pod, lowers the usage soon after.
- A write that was charged and then failed stays charged for at most `RECOUNT` seconds.
- A quota whose status is right is not written.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from steersman.apiserver import DEVICE_CLASSES, Definition, counted_resources, recounted
from steersman.client import retry_on_conflict
from steersman.controller import Cause, Context, Done, Reconciler, Request, RequeueAfter
from steersman.controlplane.object_changes import ObjectChange, ObjectChanges, Watcher
from steersman.errors import KindNotServed, NotFound
from steersman.objects import Key, Kind, Quantity, Unstructured

QUOTA: Final = Kind("v1", "ResourceQuota")
_QUOTAS: Final = "core/resourcequotas/"
#: Objects whose changes can lower the usage.
_CHANGING: Final = frozenset({"core/pods/", "core/services/", "core/persistentvolumeclaims/"})
#: Attempts to write a quota that writes are charged to at the same time.
_ATTEMPTS: Final = 10
#: After how many seconds a quota is counted again, as by kube-controller-manager.
RECOUNT: float = 300

Tree = dict[str, Any]


class QuotaUsage(Watcher, Reconciler[Unstructured]):
    """Keeps the status of quotas up to date."""

    def __init__(self, changes: ObjectChanges) -> None:
        self._changes = changes
        #: The names of the quotas in each namespace.
        self._quotas: dict[str, dict[str, None]] = {}
        #: Quotas to recount even though their limits have not changed.
        self._stale: set[Key] = set()
        #: When each quota is counted again in any case.
        self._due: dict[Key, float] = {}
        #: The uids of known objects that can use less later: their creation lowers no usage.
        self._known: set[str] = set()

    def seen(self, change: ObjectChange) -> None:
        """Queue a changed quota, or all quotas in the namespace of an object whose usage may have dropped."""
        namespace, name, prefix = change.metadata.namespace, change.metadata.name, change.definition.prefix
        uses_less = self._may_use_less(change)
        if prefix == _QUOTAS and change.gone:
            self._quotas.get(namespace, {}).pop(name, None)
        elif prefix == _QUOTAS:
            self._quotas.setdefault(namespace, {})[name] = None
            self._queue(Key(namespace, name), "the quota changed")
        if uses_less:
            for quota in self._quotas.get(namespace, ()):
                self._stale.add(Key(namespace, quota))
                self._queue(Key(namespace, quota), f"{change.definition.gvk.kind} {name} changed")

    def _may_use_less(self, change: ObjectChange) -> bool:
        uid = change.metadata.uid
        if change.gone:
            self._known.discard(uid)
            return True
        if change.definition.prefix not in _CHANGING:
            return False
        is_new = uid not in self._known
        self._known.add(uid)
        return not is_new

    def _queue(self, key: Key, note: str) -> None:
        assert self._add is not None
        self._add(Request(key), Cause(what="external", note=note))

    async def reconcile(self, ctx: Context, request: Request) -> Done | RequeueAfter:
        """Correct the status of one quota."""
        key, now = request.key, asyncio.get_running_loop().time()
        is_stale = key in self._stale or now >= self._due.get(key, now + RECOUNT)
        self._stale.discard(key)
        try:
            exists = await self._correct(ctx, key, is_stale=is_stale)
        except NotFound:
            exists = False
        except BaseException:
            self._stale.add(key)
            raise
        if not exists:
            self._due.pop(key, None)
            return Done()
        if is_stale:
            self._due.pop(key, None)
        return RequeueAfter(self._due.setdefault(key, now + RECOUNT) - now)

    async def _correct(self, ctx: Context, key: Key, *, is_stale: bool) -> bool:
        """Write the status, if it is wrong; again after a conflict with a write that was charged meanwhile.

        Returns whether the quota exists.
        """

        async def write() -> bool:
            quota = await ctx.client.find(QUOTA, key)
            if quota is not None and (is_stale or _is_outdated(quota.tree)):
                await self._count(ctx, quota)
            return quota is not None

        return await retry_on_conflict(write, attempts=_ATTEMPTS)

    async def _count(self, ctx: Context, quota: Unstructured) -> None:
        tree = quota.tree
        spec: Tree = tree.get("spec") or {}
        status: Tree = tree.get("status") or {}
        namespace: str = tree["metadata"]["namespace"]
        served = {(each.gvk.group, each.resource): each for each in self._changes.definitions()}
        objects = {
            name: await _listed(ctx, served[name], namespace)
            for name in counted_resources(spec.get("hard") or {})
            if name in served and served[name].namespaced
        }
        classes = await _listed(ctx, served[DEVICE_CLASSES], "") if DEVICE_CLASSES in served else []
        used = recounted(spec, objects, classes)
        if _is_outdated(tree) or not _are_equal(used, status.get("used") or {}):
            tree["status"] = {"hard": spec.get("hard") or {}, "used": used}
            await ctx.client.update(quota, subresource="status")


async def _listed(ctx: Context, definition: Definition, namespace: str) -> list[Tree]:
    kind = Kind(definition.gvk.api_version, definition.gvk.kind)
    try:
        found = await ctx.client.list(kind, namespace=namespace or None)
    except (KindNotServed, NotFound):
        return []
    return [each.tree for each in found]


def _is_outdated(quota: Tree) -> bool:
    """Whether the limits in the status are not those of the spec, or their usage is missing."""
    status: Tree = quota.get("status") or {}
    spec: Tree = quota.get("spec") or {}
    hard: Tree = spec.get("hard") or {}
    return (status.get("used") is None and bool(hard)) or not _are_equal(hard, status.get("hard") or {})


def _are_equal(left: Tree, right: Tree) -> bool:
    return left.keys() == right.keys() and all(Quantity(left[name]) == Quantity(right[name]) for name in left)
