"""Writing: create, update, patch, apply, delete.

Guarantees
- A write never drops a field that our types do not declare (see `steersman.objects`).
- `apply` sends an intent, never an object that was read; `update` never sends a partially read object.
- Our own resources' constraints are checked before sending, except for unchanged values that were already invalid.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack, overload

import msgspec

from steersman.client.bindings import Attempt, Binding
from steersman.client.verbs.checks import (
    STATUS_IGNORED,
    check_constraints,
    check_new,
    check_whole,
    ignored_status,
    touches_status,
)
from steersman.client.verbs.observers import Intent
from steersman.client.verbs.patch_documents import Patch, encode_patch
from steersman.client.verbs.prepared_apply import PreparedApply, another_uid
from steersman.client.verbs.reads import Fields, KeyLike, Labels, Reader, selector_text
from steersman.errors import Invalid, NotAnIntent, NotFound
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
    replace,
    resource_version_of,
    set_owner,
    tree_as_read,
    tree_of,
    uid_of,
    was_read,
)
from steersman.patches import merge_patch_between
from steersman.wire import (
    APPLY_PATCH,
    JSON,
    MERGE_PATCH,
    DeleteOptions,
    FieldValidation,
    HttpRequest,
    ListOptions,
    PatchOptions,
    Preconditions,
    PropagationPolicy,
    WriteOptions,
)

ObjectT = TypeVar("ObjectT", bound=Object)
Tree: TypeAlias = dict[str, Any]

_JSON_BODY = (("Accept", JSON), ("Content-Type", JSON))
#: Methods by verb; all others patch.
_METHODS = {"create": "POST", "update": "PUT"}


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


class Writer(Reader):
    """The writing verbs."""

    _field_manager: str = ""
    _formerly: tuple[str, ...] = ()
    _field_validation: FieldValidation | None = None
    _validate: bool = True

    @property
    def field_manager(self) -> str:
        """The name under which this program owns fields; empty if none is set."""
        return self._field_manager

    @property
    def field_managers(self) -> tuple[str, ...]:
        """The name under which this program owns fields, followed by its earlier names."""
        return (self._field_manager, *self._formerly)

    async def _bind_object(self, obj: Object | Unstructured) -> Binding[Any]:
        if isinstance(obj, Unstructured):
            return await self._bind(Kind(obj.api_version, obj.kind))
        kind = type(obj)
        return self._bindings.get(kind) or await self._bind(kind)

    def _check(
        self, obj: Object | Unstructured, tried: Attempt, *, intent: bool = False, subresource: str = ""
    ) -> None:
        if self._validate:
            check_constraints(obj, tried, intent=intent, subresource=subresource)
        if not subresource and ignored_status(obj):
            self._session.warn(STATUS_IGNORED, tried)

    async def create(
        self,
        obj: AnyObject,
        *,
        owner: Object | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> AnyObject:
        """Create an object and return the server's version of it. Without a namespace it goes to the client's.

        ``owner=site`` adds a controller reference.
        """
        binding = await self._bind_object(obj)
        key = Key(obj.key.namespace or self.namespace if binding.namespaced else "", obj.key.name)
        tried = Attempt("create", binding.gvk, key)
        check_new(obj, tried)
        if owner is not None:
            obj = self._owned(obj, owner, key, tried)
        self._check(obj, tried)
        options = self._options(dry_run=dry_run, field_validation=field_validation)
        return await self._send("create", binding, key, encode_any(obj), options)

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

        binding = (await self._bind(kind)).reading(read)
        options, named = WriteOptions(field_manager=self._field_manager), self._key(binding, key)
        answer = await self._send("create", binding, named, encode_any(body), options, subresource=subresource)
        return None if returns is None else answer

    async def update_subresource(
        self, kind: type[Object] | Kind, key: KeyLike, subresource: str, body: ObjectT, *, dry_run: bool = False
    ) -> ObjectT:
        """Replace a subresource that is an object of its own kind: the scale of a Deployment."""
        binding = (await self._bind(kind)).reading(lambda raw: decode(type(body), raw))
        options, named = self._options(dry_run=dry_run), self._key(binding, key)
        return await self._send("update", binding, named, encode_any(body), options, subresource=subresource)

    async def patch_subresource(
        self, kind: type[Object] | Kind, key: KeyLike, subresource: str, patch: Patch, *, returns: type[ObjectT]
    ) -> ObjectT:
        """Change part of a subresource that is an object of its own kind: the scale of a Deployment."""
        binding = (await self._bind(kind)).reading(lambda raw: decode(returns, raw))
        media_type, body = encode_patch(patch)
        options, named = self._options(), self._key(binding, key)
        return await self._send("patch", binding, named, body, options, subresource=subresource, media_type=media_type)

    async def update(
        self,
        obj: AnyObject,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> AnyObject:
        """Replace an object with its read state plus your changes. A newer version on the server is a `Conflict`."""
        binding = await self._bind_object(obj)
        key = self._key(binding, obj.key)
        tried = Attempt("update", binding.gvk, key)
        check_whole(obj, tried)
        self._check(obj, tried, subresource=subresource)
        options = self._options(dry_run=dry_run, field_validation=field_validation)
        return await self._send("update", binding, key, encode_any(obj), options, subresource=subresource)

    def _options(self, *, dry_run: bool = False, field_validation: FieldValidation | None = None) -> PatchOptions:
        return PatchOptions(
            dry_run=dry_run,
            field_manager=self._field_manager,
            field_validation=field_validation or self._field_validation,
        )

    def _send(
        self,
        verb: str,
        binding: Binding[Any],
        key: Key,
        body: bytes,
        options: WriteOptions,
        *,
        subresource: str = "",
        media_type: str = JSON,
    ) -> Coroutine[Any, Any, Any]:
        """Send a write of one object or subresource and decode the answer.

        Not an async function: its frame would hold the body, perhaps that of a Secret, in the traceback of a failure.
        """
        name = "" if verb == "create" and not subresource else key.name
        request = HttpRequest(
            method=_METHODS.get(verb, "PATCH"),
            path=binding.path(key.namespace, name, subresource),
            query=options.to_query(),
            headers=(("Accept", JSON), ("Content-Type", media_type)),
            body=body,
        )
        tried = Attempt(verb, binding.gvk, key, subresource)
        return self._session.fetch(request, binding.decode, tried=tried, reads=binding.reads)

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
        binding = await self._bind(kind)
        media_type, body = encode_patch(patch)
        sent = self._options(dry_run=options.get("dry_run", False), field_validation=options.get("field_validation"))
        subresource, named = options.get("subresource", ""), self._key(binding, key)
        if not subresource and isinstance(kind, type) and has_status_subresource(kind) and touches_status(patch):
            self._session.warn(STATUS_IGNORED, Attempt("patch", binding.gvk, named))
        return await self._send("patch", binding, named, body, sent, subresource=subresource, media_type=media_type)

    async def patch_from(
        self, before: AnyObject, after: AnyObject, *, lock: bool = False, subresource: str = "", dry_run: bool = False
    ) -> AnyObject:
        """Send the difference between two states of an object as a merge patch; send nothing if they are equal.

        ``before`` is a copy made before changing the object, or the same object as ``after``: then its state as read
        is used. ``lock=True`` patches only if the object still has the version of ``before``.
        """
        binding = await self._bind_object(after)
        tree_before, tree_after = self._trees(before, after)
        difference = merge_patch_between(tree_before, tree_after)
        if not difference:
            return after
        if lock:
            version = resource_version_of(before)
            if not version:
                raise ValueError(
                    f"{Attempt('patch', binding.gvk, before.key)}: lock=True needs an object that was read"
                )
            difference.setdefault("metadata", {})["resourceVersion"] = version
        options, key = self._options(dry_run=dry_run), self._key(binding, after.key)
        if not subresource and ignored_status(after) and "status" in difference:
            self._session.warn(STATUS_IGNORED, Attempt("patch", binding.gvk, key))
        body = msgspec.json.encode(difference)
        return await self._send("patch", binding, key, body, options, subresource=subresource, media_type=MERGE_PATCH)

    @staticmethod
    def _trees(before: Object | Unstructured, after: Object | Unstructured) -> tuple[Tree, Tree]:
        if isinstance(before, Object) and isinstance(after, Object):
            differing = differing_fields(before, after)
            if differing is not None:
                return differing
        earlier = tree_as_read(before) if before is after else tree_of(before)
        if earlier is None:
            raise ValueError(f"{before.kind} {before.key} was not read from the server: its earlier state is unknown")
        return earlier, tree_of(after)

    async def apply(
        self,
        obj: AnyObject,
        *,
        owner: Object | None = None,
        force: bool = False,
        field_manager: str | None = None,
        subresource: str = "",
        dry_run: bool = False,
    ) -> AnyObject:
        """Server-side apply: set the fields of ``obj`` and own them.

        ``owner=site`` adds a controller reference. Fields owned by other managers raise a `Conflict` that lists them;
        ``force=True`` takes them over.
        """
        prepared = await self._prepare_apply(
            obj, owner=owner, force=force, field_manager=field_manager, subresource=subresource, dry_run=dry_run
        )
        return await self._apply(prepared)

    async def _prepare_apply(
        self,
        obj: AnyObject,
        *,
        owner: Object | None = None,
        force: bool = False,
        field_manager: str | None = None,
        subresource: str = "",
        dry_run: bool = False,
    ) -> PreparedApply[AnyObject]:
        """Check and encode an apply once, for callers that decide later whether and how to send it."""
        binding = await self._bind_object(obj)
        key = self._key(binding, obj.key)
        manager = field_manager or self._field_manager
        if not manager:
            raise ValueError(
                f"{Attempt('apply', binding.gvk, key)}: apply needs a field manager; write"
                " Manager(name='site-operator') or Client.connect(field_manager='site-operator'). The server records"
                " field ownership under this name: keep it the same across runs"
            )
        if was_read(obj):
            raise NotAnIntent(
                f"{Attempt('apply', binding.gvk, key)}: the object was read from the server, and applying it would"
                " claim all its fields; build an object with the fields you want to set, or call update() or"
                " patch_from()"
            )
        if owner is not None:
            obj = self._owned(obj, owner, key, Attempt("apply", binding.gvk, key))
        options = PatchOptions(
            dry_run=dry_run, field_manager=manager, field_validation=self._field_validation, force=force or None
        )
        declared = None if isinstance(obj, Unstructured) else type(obj)
        intent = Intent(binding.gvk, key, encode_any(obj), manager, subresource, declared)
        return PreparedApply(binding, obj, intent, options)

    async def _send_apply(
        self, prepared: PreparedApply[AnyObject], *, resource_version: str = "", uid: str = ""
    ) -> AnyObject:
        """Send a prepared apply, optionally bound to a version or a uid.

        - With a version, it applies only if the object has that version or is missing; otherwise it is a `Conflict`.
          `NO_VERSION`, a version that no object has, therefore only creates.
        - With a uid, it applies only to exactly that object; another uid is a `Conflict`.
        """
        binding, intent = prepared.binding, prepared.intent
        self._check(
            prepared.obj, Attempt("apply", binding.gvk, intent.key), intent=True, subresource=intent.subresource
        )
        try:
            return await self._send(
                "apply",
                binding,
                intent.key,
                prepared.body_at(resource_version, uid),
                prepared.options,
                subresource=intent.subresource,
                media_type=APPLY_PATCH,
            )
        except Invalid as error:
            if not uid or all(cause.field != "metadata.uid" for cause in error.causes):
                raise
            raise another_uid(error, uid) from None

    async def _apply(self, prepared: PreparedApply[AnyObject]) -> AnyObject:
        return await self._send_apply(prepared)

    @staticmethod
    def _owned(obj: Any, owner: Object, key: Key, tried: Attempt) -> Any:
        """A copy of ``obj`` with ``owner`` as its controller; the caller's object is unchanged."""
        if isinstance(obj, Unstructured):
            raise TypeError(f"{tried}: owner= works with typed objects; set ownerReferences in the tree")
        copy = replace(obj, metadata=replace(obj.metadata, namespace=key.namespace or None))
        set_owner(copy, owner)
        return copy

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
            binding = await self._bind_object(kind)
        else:
            binding = await self._bind(kind)
        if key is None:
            raise TypeError(f"delete {binding.gvk.kind}: pass a key, or call delete_collection() to delete many")
        key = self._key(binding, key)
        sent = DeleteOptions(
            propagation_policy=options.get("propagation"),
            preconditions=Preconditions(uid=uid, resource_version=resource_version)
            if uid or resource_version
            else None,
            grace_period_seconds=options.get("grace_period_seconds"),
            dry_run=options.get("dry_run", False),
        )
        request = HttpRequest(method="DELETE", path=binding.path(*key), headers=_JSON_BODY, body=sent.to_body())
        tried = Attempt("delete", binding.gvk, key)
        try:
            return await self._session.delete(request, binding.decode, tried=tried, reads=binding.reads)
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
        binding = await self._bind(kind)
        options = DeleteOptions(propagation_policy=propagation, dry_run=dry_run)
        selection = ListOptions(label_selector=selector_text(labels), field_selector=selector_text(fields))
        request = HttpRequest(
            method="DELETE",
            path=binding.path(namespace or ""),
            query=selection.to_query(),
            headers=_JSON_BODY,
            body=options.to_body(),
        )
        tried = Attempt("delete all matching", binding.gvk)
        await self._session.delete_many(request, tried=tried, namespace=namespace or "")
