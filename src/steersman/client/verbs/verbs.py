"""Writing: create, update, patch, apply, delete, and combinations of them.

Guarantees
- A write never drops a field that our types do not declare (see `steersman.objects`).
- `apply` sends an intent, never an object that was read; `update` never sends a partially read object.
- Our own resources' constraints are checked before sending, except for unchanged values that were already invalid.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Self, TypeAlias, TypedDict, TypeVar, Unpack, overload

import msgspec

from steersman.client.bindings import VerbCall
from steersman.client.checks import (
    OWNER_ENDS,
    STATUS_IGNORED,
    check_new,
    check_whole,
    ignored_status,
    touches_status,
)
from steersman.client.patch_documents import Patch, encode_patch
from steersman.client.results import OperationResult
from steersman.client.selections import Fields, KeyLike, Labels, selector_text
from steersman.client.stages.prepared_apply import owned_by, prepare_apply
from steersman.client.stages.senders import send_write
from steersman.client.verbs.reader import Reader
from steersman.client.verbs.saves import create_or_write, save
from steersman.errors import NotFound
from steersman.objects import (
    AnyObject,
    Key,
    Kind,
    Object,
    Unstructured,
    decode,
    differing_fields,
    encode_any,
    has_status_subresource,
    resource_version_of,
    tree_as_read,
    tree_of,
    uid_of,
)
from steersman.patches import merge_patch_between
from steersman.wire import (
    JSON,
    MERGE_PATCH,
    CollectionOptions,
    DeleteOptions,
    FieldValidation,
    HttpRequest,
    Preconditions,
    PropagationPolicy,
    WriteOptions,
)

ObjectT = TypeVar("ObjectT", bound=Object)
Tree: TypeAlias = dict[str, Any]

_JSON_BODY = (("Accept", JSON), ("Content-Type", JSON))


class PatchTarget(TypedDict, total=False):
    """Which part of an object to patch, and how strictly."""

    #: A subresource with the object's own kind, such as ``status``; see `Client.patch_subresource` for others.
    subresource: str
    dry_run: bool
    #: How the server treats unknown fields, such as misspelled ones.
    field_validation: FieldValidation | None


class Deletion(TypedDict, total=False):
    """How to delete an object, and with which preconditions."""

    #: What happens to the objects it owns.
    propagation: PropagationPolicy | None
    #: Delete only the object with this uid ...
    uid: str | None
    #: ... and with this version; any other is a `Conflict`.
    resource_version: str | None
    grace_period_seconds: int | None
    #: Return None if the object is already gone. With a uid, a successor under the same name is still a `Conflict`.
    missing_ok: bool
    dry_run: bool


class Verbs(Reader):
    """Reads and writes objects of any kind: the verbs that `Client` and a reconcile's ``ctx.client`` have in common.

    ```python
    async def restart(client: Verbs, deployment: Deployment) -> None:
        patch = MergePatch({"spec": {"template": {"metadata": {"annotations": {"restarted": str(utc_now())}}}}})
        await client.patch(Deployment, deployment.key, patch)
    ```
    """

    @property
    def live(self) -> Self:
        """The same client, without the cache: reads from the server and always sends applies.

        In a reconcile, it reads any key or namespace that you name, whatever the namespaces and selectors of the
        manager. A list without a namespace keeps them.
        """
        client = copy(self)
        client.pipeline = self.pipeline.live()
        return client

    @property
    def field_manager(self) -> str:
        """The name under which this program owns fields; empty if none is set."""
        return self.pipeline.settings.field_manager

    @property
    def field_managers(self) -> tuple[str, ...]:
        """The name under which this program owns fields, followed by its earlier names."""
        return self.pipeline.field_managers

    async def create(
        self,
        obj: AnyObject,
        *,
        owner: Object | Unstructured | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> AnyObject:
        """Create an object and return the server's version of it. Without a namespace it goes to the client's.

        ``owner=site`` adds a controller reference; an owner that is being deleted is a warning in the log.
        """
        binding = await self.pipeline.kinds.bind_object(obj)
        key = Key(obj.key.namespace or self.namespace if binding.namespaced else "", obj.key.name)
        tried = VerbCall("create", binding.gvk, key)
        check_new(obj, tried)
        if owner is not None:
            obj = owned_by(obj, owner, key)
            self._warn_of_end(owner, tried)
        self.pipeline.check(obj, tried)
        options = self.pipeline.settings.options(dry_run=dry_run, field_validation=field_validation)
        return await send_write(self.pipeline.sender, "create", binding, key, encode_any(obj), options)

    @overload
    async def create_subresource(
        self, kind: type[Object] | Kind, key: KeyLike, subresource: str, body: Object, *, returns: type[ObjectT]
    ) -> ObjectT: ...
    @overload
    async def create_subresource(
        self, kind: type[Object] | Kind, key: KeyLike, subresource: str, body: Object, *, returns: None
    ) -> None: ...

    async def create_subresource(
        self, kind: type[Object] | Kind, key: KeyLike, subresource: str, body: Object, *, returns: type[Any] | None
    ) -> Any:
        """Post to a subresource: a token of a ServiceAccount, an eviction or a binding of a Pod.

        Use ``returns=None`` if the server answers with a Status only, as for a binding.
        """

        def read(raw: bytes) -> Any:
            return Unstructured.decode(raw) if returns is None else decode(returns, raw)

        binding = (await self.pipeline.kinds.bind(kind)).reading(read)
        options, named = WriteOptions(field_manager=self.field_manager), self.pipeline.kinds.key(binding, key)
        answer = await send_write(
            self.pipeline.sender, "create", binding, named, encode_any(body), options, subresource=subresource
        )
        return None if returns is None else answer

    async def update_subresource(
        self, kind: type[Object] | Kind, key: KeyLike, subresource: str, body: ObjectT, *, dry_run: bool = False
    ) -> ObjectT:
        """Replace a subresource that is an object of its own kind: the scale of a Deployment."""
        binding = (await self.pipeline.kinds.bind(kind)).reading(lambda raw: decode(type(body), raw))
        options, named = self.pipeline.settings.options(dry_run=dry_run), self.pipeline.kinds.key(binding, key)
        return await send_write(
            self.pipeline.sender, "update", binding, named, encode_any(body), options, subresource=subresource
        )

    async def patch_subresource(
        self, kind: type[Object] | Kind, key: KeyLike, subresource: str, patch: Patch, *, returns: type[ObjectT]
    ) -> ObjectT:
        """Change part of a subresource that is an object of its own kind: the scale of a Deployment."""
        binding = (await self.pipeline.kinds.bind(kind)).reading(lambda raw: decode(returns, raw))
        media_type, body = encode_patch(patch)
        options, named = self.pipeline.settings.options(), self.pipeline.kinds.key(binding, key)
        return await send_write(
            self.pipeline.sender, "patch", binding, named, body, options, subresource=subresource, media_type=media_type
        )

    async def update(
        self,
        obj: AnyObject,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> AnyObject:
        """Replace an object with its read state plus your changes. A newer version on the server is a `Conflict`."""
        binding = await self.pipeline.kinds.bind_object(obj)
        key = self.pipeline.kinds.key(binding, obj.key)
        tried = VerbCall("update", binding.gvk, key)
        check_whole(obj, tried)
        self.pipeline.check(obj, tried, subresource=subresource)
        options = self.pipeline.settings.options(dry_run=dry_run, field_validation=field_validation)
        return await send_write(
            self.pipeline.sender, "update", binding, key, encode_any(obj), options, subresource=subresource
        )

    @overload
    async def patch(
        self, kind: type[ObjectT], key: KeyLike, patch: Patch, **options: Unpack[PatchTarget]
    ) -> ObjectT: ...
    @overload
    async def patch(self, kind: Kind, key: KeyLike, patch: Patch, **options: Unpack[PatchTarget]) -> Unstructured: ...

    async def patch(self, kind: type[Any] | Kind, key: KeyLike, patch: Patch, **options: Unpack[PatchTarget]) -> Any:
        """Change part of an object: ``await client.patch(Site, key, MergePatch({"spec": {"replicas": 3}}))``.

        Options: ``subresource``, ``dry_run`` and ``field_validation``.
        """
        binding = await self.pipeline.kinds.bind(kind)
        media_type, body = encode_patch(patch)
        sent = self.pipeline.settings.options(
            dry_run=options.get("dry_run", False), field_validation=options.get("field_validation")
        )
        subresource, named = options.get("subresource", ""), self.pipeline.kinds.key(binding, key)
        if not subresource and isinstance(kind, type) and has_status_subresource(kind) and touches_status(patch):
            self.pipeline.sender.warn(STATUS_IGNORED, VerbCall("patch", binding.gvk, named))
        return await send_write(
            self.pipeline.sender, "patch", binding, named, body, sent, subresource=subresource, media_type=media_type
        )

    async def patch_from(
        self, before: AnyObject, after: AnyObject, *, lock: bool = False, subresource: str = "", dry_run: bool = False
    ) -> AnyObject:
        """Send the difference between two states of an object as a merge patch; send nothing if they are equal.

        ``before`` is a copy made before changing the object, or the same object as ``after``: then its state as read
        is used. ``lock=True`` patches only if the object still has the version of ``before``.
        """
        binding = await self.pipeline.kinds.bind_object(after)
        tree_before, tree_after = _trees(before, after)
        difference = merge_patch_between(tree_before, tree_after)
        if not difference:
            return after
        if lock:
            version = resource_version_of(before)
            if not version:
                raise ValueError(
                    f"{VerbCall('patch', binding.gvk, before.key)}: lock=True needs an object that was read"
                )
            difference.setdefault("metadata", {})["resourceVersion"] = version
        options, key = self.pipeline.settings.options(dry_run=dry_run), self.pipeline.kinds.key(binding, after.key)
        if not subresource and ignored_status(after) and "status" in difference:
            self.pipeline.sender.warn(STATUS_IGNORED, VerbCall("patch", binding.gvk, key))
        body = msgspec.json.encode(difference)
        return await send_write(
            self.pipeline.sender, "patch", binding, key, body, options, subresource=subresource, media_type=MERGE_PATCH
        )

    async def apply(
        self,
        obj: AnyObject,
        *,
        owner: Object | Unstructured | None = None,
        force: bool = False,
        field_manager: str | None = None,
        subresource: str = "",
        dry_run: bool = False,
    ) -> AnyObject:
        """Server-side apply: set the fields of ``obj`` and own them.

        ``owner=site`` adds a controller reference; an owner that is being deleted is a warning in the log. Fields owned
        by other managers raise a `Conflict` that lists them; ``force=True`` takes them over.
        """
        pipeline = self.pipeline
        prepared = await prepare_apply(
            pipeline.kinds,
            pipeline.settings,
            obj,
            owner=owner,
            force=force,
            field_manager=field_manager,
            subresource=subresource,
            dry_run=dry_run,
        )
        known = pipeline.applies.known(prepared)
        if known is not None:
            return known
        if owner is not None:
            self._warn_of_end(owner, VerbCall("apply", prepared.binding.gvk, prepared.intent.key))
        return await pipeline.applies.send(prepared)

    @overload
    async def delete(
        self, kind: type[ObjectT], key: KeyLike | None = ..., **options: Unpack[Deletion]
    ) -> ObjectT | None: ...
    @overload
    async def delete(
        self, kind: Kind, key: KeyLike | None = ..., **options: Unpack[Deletion]
    ) -> Unstructured | None: ...
    @overload
    async def delete(
        self, kind: AnyObject, key: KeyLike | None = ..., **options: Unpack[Deletion]
    ) -> AnyObject | None: ...

    async def delete(
        self, kind: type[Any] | Kind | Object | Unstructured, key: KeyLike | None = None, **options: Unpack[Deletion]
    ) -> Any:
        """Delete an object: ``delete(Site, key)``, or ``delete(site)`` for that object (by uid) and no successor.

        Returns None if it is gone, or the marked object if it has finalizers or a grace period.
        Options: ``propagation``, ``uid``, ``resource_version``, ``grace_period_seconds``, ``dry_run``, and
        ``missing_ok``, which treats a missing object as deleted.
        """
        uid, resource_version = options.get("uid"), options.get("resource_version")
        if isinstance(kind, (Object, Unstructured)):
            uid = uid or uid_of(kind)
            key = kind.key
            binding = await self.pipeline.kinds.bind_object(kind)
        else:
            binding = await self.pipeline.kinds.bind(kind)
        if key is None:
            raise TypeError(f"delete {binding.gvk.kind}: pass a key, or call delete_collection() to delete many")
        key = self.pipeline.kinds.key(binding, key)
        sent = DeleteOptions(
            propagation_policy=options.get("propagation"),
            preconditions=Preconditions(uid=uid, resource_version=resource_version)
            if uid or resource_version
            else None,
            grace_period_seconds=options.get("grace_period_seconds"),
            dry_run=options.get("dry_run", False),
        )
        request = HttpRequest(method="DELETE", path=binding.path(*key), headers=_JSON_BODY, body=sent.to_body())
        tried = VerbCall("delete", binding.gvk, key)
        try:
            return await self.pipeline.sender.delete(request, binding.decode, tried=tried, reads=binding.reads)
        except NotFound:
            if not options.get("missing_ok", False):
                raise
            return None

    async def delete_collection(
        self,
        kind: type[Object] | Kind,
        *,
        namespace: str | None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        propagation: PropagationPolicy | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete all matching objects of a kind. ``namespace=None`` means cluster-wide and must be explicit.

        The server deletes one by one: a failure may come after some deletions, and objects created meanwhile stay.
        Afterwards a reconcile's next read of each deleted object goes to the server.
        """
        binding = await self.pipeline.kinds.bind(kind)
        options = DeleteOptions(propagation_policy=propagation, dry_run=dry_run)
        selection = CollectionOptions(label_selector=selector_text(labels), field_selector=selector_text(fields))
        request = HttpRequest(
            method="DELETE",
            path=binding.path(namespace or ""),
            query=selection.to_query(),
            headers=_JSON_BODY,
            body=options.to_body(),
        )
        tried = VerbCall("delete all matching", binding.gvk)
        await self.pipeline.sender.delete_many(request, tried=tried, namespace=namespace or "")

    async def create_or_update(self, obj: AnyObject, mutate: Callable[[AnyObject], None]) -> OperationResult[AnyObject]:
        """Run ``mutate`` on the existing object and update it, or run it on ``obj`` and create that.

        Sends nothing if ``mutate`` changes nothing. Starts over after a conflict, or if another writer creates first;
        raises `Conflict` after five tries.
        """
        # A cache cannot decide whether to create: another writer's object may not have arrived yet.
        live = self.live
        return await create_or_write(obj, mutate, get=live.get, create=live.create, write=live.update)

    async def create_or_patch(
        self, obj: AnyObject, mutate: Callable[[AnyObject], None], *, lock: bool = False
    ) -> OperationResult[AnyObject]:
        """Like `create_or_update`, but an existing object gets a merge patch of the difference.

        ``lock=True`` patches only the version that ``mutate`` was run on. If another writer is faster, it starts over, and
        raises `Conflict` after five tries. Without a lock, the patch changes whatever version it meets.
        """
        live = self.live

        async def patch(current: AnyObject) -> AnyObject:
            return await live.patch_from(current, current, lock=lock)

        return await create_or_write(obj, mutate, get=live.get, create=live.create, write=patch)

    async def save(self, obj: AnyObject) -> OperationResult[AnyObject]:
        """Write the changes of an object that was read: the object, then its status, each only if it changed.

        The server ignores a status written with the object, and everything else written with the status; the first
        write also makes the second one's version stale. This call keeps both changes. It raises a conflict, without
        retrying.
        """
        return await save(self.pipeline, obj)

    def _warn_of_end(self, owner: Object | Unstructured, tried: VerbCall) -> None:
        """Warn of a child of an owner that is being deleted, once for each owner and kind."""
        if owner.deleting:
            text = OWNER_ENDS.format(owner=f"{owner.kind} {owner.key}")
            self.pipeline.sender.warn_once((uid_of(owner) or "", str(tried.kind)), text, tried)


def _trees(before: Object | Unstructured, after: Object | Unstructured) -> tuple[Tree, Tree]:
    if isinstance(before, Object) and isinstance(after, Object):
        differing = differing_fields(before, after)
        if differing is not None:
            return differing
    earlier = tree_as_read(before) if before is after else tree_of(before)
    if earlier is None:
        raise ValueError(f"{before.kind} {before.key} was not read from the server: its earlier state is unknown")
    return earlier, tree_of(after)
