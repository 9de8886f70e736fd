"""Claim objects by labels, as a ReplicaSet claims its Pods: adopt orphans that match, release what no longer does.

Guarantees
- `claim` adopts an object only if the selector matches it, no owner controls it, and neither it nor its owner is being
  deleted. It reads the owner live before the first adoption, because a cache may still show an owner that is gone or
  was replaced.
- `claim` renews a reference that names the owner in another version of its kind: the garbage collector does not find an
  owner by a version that is no longer served.
- `claim` releases an object that it controls and the selector no longer matches. The object stays, without its owner.
- Each write names the uid and the resource version that was seen. If two owners want the same orphan, one gets it and
  the other gets a `Conflict`, which the runtime retries. A recreated object is a different object.
- An owner that is being deleted adopts and releases nothing.
- `claim` needs only metadata: of a kind that is cached so, it reads and returns `PartialObjectMetadata`.
- Empty labels would adopt everything. A function that returns them without reading its owner is rejected where it is
  declared, and any other one when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from steersman.cache import as_selector
from steersman.client import MergePatch
from steersman.controller.context import Context
from steersman.controller.internals import internal_client
from steersman.controller.sources.mappers import Labels, Stores
from steersman.controller.sources.views import KindLike, View
from steersman.errors import ApiStatus, Conflict, Invalid, NotFound, OwnershipError, is_exit
from steersman.objects import Key, Object, OwnerReference, Selector, kind_name, owner_reference, to_json

#: Returns the labels of the objects that an owner claims.
SelectorOf = Callable[[Any], Labels]


async def claim(
    ctx: Context, owner: Object, kind: type[Any], labels: Labels, *, mark: str = "", part: str = ""
) -> list[Any]:
    """Adopt the orphans that ``labels`` select, release what they no longer select, and return the owner's objects.

    Example: ``pods = await claim(ctx, site, Pod, {"app": site.key.name})``. With ``mark``, adopted objects get an
    annotation of this name, and only objects that have it are released. With ``part``, adoptions are written under the
    field manager ``NAME/PART``. Of a kind that is cached as metadata alone, the objects are `PartialObjectMetadata`.
    """
    selector = _checked(owner, kind, labels)
    namespace = owner.key.namespace or None
    metadata_alone = internal_client(ctx).has_metadata_alone(kind)
    reads: Any = ctx.client.metadata if metadata_alone else ctx.client
    candidates: dict[str, Any] = {candidate.uid: candidate for candidate in await reads.owned_by(kind, owner)}
    for candidate in await reads.list(kind, namespace=namespace, labels=selector):
        candidates.setdefault(candidate.uid, candidate)
    claims = _Claims(ctx, owner, kind, mark, part)
    kept: list[Any] = []
    for candidate in candidates.values():
        claimed = await claims.judge(candidate, matches=selector.matches(candidate.metadata.labels))
        if metadata_alone and claimed is not None and claimed is not candidate:
            claimed = await reads.find(kind, candidate.key)  # the response to an adoption is a whole object
        if claimed is not None and claimed.uid == candidate.uid:
            kept.append(claimed)
    if claims.conflicts:
        raise claims.conflicts[0]
    return kept


def claiming(owner: type[Object], labels: SelectorOf) -> Callable[[View[Any], Stores], Iterable[Key]]:
    """A mapper to the owners whose labels select an orphan: ``.watches(Pod, map=claiming(Site, pods_of))``.

    Use it with ``.owns(Pod)``, which reconciles the owners of objects that are already claimed. An owner that cannot be read,
    or whose labels cannot be selected, claims nothing; its own reconcile reports why.
    """
    check_claims(labels, f"claiming({owner.__name__}, ...)")

    def selects(candidate: View[Any], view: View[Any]) -> bool:
        try:
            return as_selector(labels(candidate.object)).matches(view.labels)
        except BaseException as error:
            if is_exit(error):
                raise
            return False

    def claimers(view: View[Any], stores: Stores) -> list[Key]:
        metadata = view.metadata
        if (
            any(reference.controller for reference in metadata.owner_references or ())
            or metadata.deletion_timestamp is not None
        ):
            return []
        namespace = view.key.namespace if owner.__resource__.namespaced else ""
        return [candidate.key for candidate in stores.list(owner, namespace=namespace) if selects(candidate, view)]

    return claimers


class _OwnerRead(BaseException):
    """The labels depend on the owner. Not an Exception, so that the function does not catch it."""


class _UnreadOwner:
    """Stands for any owner, as long as nothing of it is read."""

    def __getattribute__(self, name: str) -> Any:
        raise _OwnerRead(name)


def check_claims(labels: SelectorOf, where: str) -> None:
    """Reject a function that returns empty labels for every owner."""
    try:
        selected = labels(_UnreadOwner())
    except (_OwnerRead, Exception):  # noqa: BLE001 - what it returns, or raises, depends on the owner
        return
    if not as_selector(selected):
        raise ValueError(f"{where}: empty labels would adopt every object of the kind; return at least one label")


def _checked(owner: Object, kind: type[Any], labels: Labels) -> Selector:
    name = kind_name(cast("KindLike", kind))
    selector = as_selector(labels)
    if not selector:
        raise ValueError(
            f"claim({name}) for {owner.kind} {owner.key}: empty labels would adopt every {name}; pass at least one label"
        )
    if owner.key.namespace and not kind.__resource__.namespaced:
        raise OwnershipError(
            f"{owner.kind} {owner.key} cannot claim objects of kind {name}, which is cluster-scoped: the garbage collector would"
            " not find the owner"
        )
    return selector


class _Claims:
    """The claims of one owner in one reconcile."""

    def __init__(self, ctx: Context, owner: Object, kind: type[Any], mark: str, part: str) -> None:
        self._ctx = ctx
        self._owner = owner
        self._kind = kind
        self._name = kind_name(cast("KindLike", kind))
        self._mark = mark
        self._client = internal_client(ctx).writing_as(part) if part else ctx.client
        #: Whether the server still has the owner; None before it was read.
        self._may_adopt: bool | None = None
        self.conflicts: list[Conflict] = []

    async def judge(self, obj: Any, *, matches: bool) -> Any:
        """The object if it belongs to the owner, possibly after adoption; None otherwise."""
        controller = next(
            (reference for reference in obj.metadata.owner_references or () if reference.controller), None
        )
        if controller is not None:
            return await self._judge_controlled(obj, controller, matches=matches)
        near = not self._owner.key.namespace or obj.key.namespace == self._owner.key.namespace
        if not matches or not near or obj.deleting or self._owner.deleting:
            return None
        return await self._adopt(obj)

    async def _judge_controlled(self, obj: Any, controller: OwnerReference, *, matches: bool) -> Any:
        if controller.uid != self._owner.uid:
            return None
        # Without the mark, it belongs to the owner for another reason than its labels.
        strange = bool(self._mark) and self._mark not in (obj.metadata.annotations or {})
        if not matches:
            if not self._owner.deleting and not strange:
                await self._release(obj)
            return None
        if controller.api_version == self._owner.api_version or self._owner.deleting or strange or obj.deleting:
            return obj
        return await self._write(obj, self._with_owner(obj), mark="true")

    async def _adopt(self, obj: Any) -> Any:
        if self._may_adopt is None:
            live = await self._ctx.client.live.find(type(self._owner), self._owner.key)
            self._may_adopt = live is not None and live.uid == self._owner.uid and not live.deleting
        if not self._may_adopt:
            return None
        adopted = await self._write(obj, self._with_owner(obj), mark="true")
        if adopted is not None:
            self._ctx.logger.info("%s: adopted %s %s", self._ctx.request, self._name, obj.key)
        return adopted

    def _with_owner(self, obj: Any) -> list[dict[str, Any]]:
        others = [reference for reference in _references(obj) if reference.get("uid") != self._owner.uid]
        return [*others, to_json(owner_reference(self._owner))]

    async def _release(self, obj: Any) -> None:
        others = [reference for reference in _references(obj) if reference.get("uid") != self._owner.uid]
        if await self._write(obj, others or None, mark=None) is not None:
            self._ctx.logger.info("%s: released %s %s", self._ctx.request, self._name, obj.key)

    async def _write(self, obj: Any, references: list[dict[str, Any]] | None, *, mark: str | None) -> Any:
        metadata: dict[str, Any] = {
            "uid": obj.uid,
            "resourceVersion": obj.metadata.resource_version,
            "ownerReferences": references,
        }
        if self._mark:
            metadata["annotations"] = {self._mark: mark}
        try:
            return await self._client.patch(self._kind, obj.key, MergePatch({"metadata": metadata}))
        except NotFound:
            return None
        except Conflict as conflict:
            self.conflicts.append(conflict)
        except Invalid as error:
            if all(cause.field != "metadata.uid" for cause in error.causes):
                raise
            message = f"{self._name} {obj.key} was recreated: it no longer has uid {obj.uid}"
            self.conflicts.append(Conflict(ApiStatus(message=message, reason="Conflict", code=409), tried=error.tried))
        return None


def _references(obj: Any) -> list[dict[str, Any]]:
    metadata = cast("dict[str, Any]", to_json(obj).get("metadata") or {})
    return cast("list[dict[str, Any]]", metadata.get("ownerReferences") or [])
