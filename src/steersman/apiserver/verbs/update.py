"""update: PUT of an object or of a subresource that changes a part of it; and the loop in which every change of an object happens.

Guarantees
- A change applies to the current object: after a concurrent write it is made again, so no write is lost.
- Immutable fields stay: identity, creation, deletion, generation. A status changes only through its subresource.
- A write that changes nothing, or only times in managed fields, stores nothing.
- Removing the last finalizer of an object that is being deleted deletes it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from steersman.apiserver.admission.plugins import Attributes, WriteView
from steersman.apiserver.context import VerbContext
from steersman.apiserver.decoding.body import read_object
from steersman.apiserver.documents import copied, decode_served, encode_served
from steersman.apiserver.errors import conflict, invalid, modified, not_found, unnamed
from steersman.apiserver.field_managers import forget_new_times, keep_readable, results_for
from steersman.apiserver.forms import form_for
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.metadata import validate_changed, wipe_system_fields
from steersman.apiserver.registry.strategy import CHANGED, WHOLE, Strategy
from steersman.apiserver.request import ServerRequest, read_body
from steersman.apiserver.storage import Mismatch, Record
from steersman.apiserver.verbs.allocation import allocated, remove
from steersman.apiserver.verbs.corrupt_objects.read_errors import read_for_write
from steersman.apiserver.verbs.create import create_object
from steersman.apiserver.verbs.duplicate_owners import warn_of_duplicate_owners
from steersman.apiserver.verbs.managed_fields import managed_update, small_enough
from steersman.apiserver.verbs.object_names import check_name, engine_key, take_namespace
from steersman.apiserver.verbs.options import WriteOptions, read_version, write_options
from steersman.apiserver.verbs.responses import answer_object
from steersman.objects import GroupKind
from steersman.objects.field_problems import problem
from steersman.patches import json_equal, quickly_equal
from steersman.transport import ServerResponse

#: Makes the new object from the current one, which it may consume; raises `RequestRejected`.
Transform = Callable[[Tree], Tree]


async def update(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a PUT of an object, of its status, or of another subresource of its kind."""
    definition, info = context.definition, request.info
    form = form_for(definition, request)
    body = read_body(request, context.limits.body)
    options = write_options(request, "UpdateOptions")
    read = await context.workers.run(lambda: read_replacement(context, request, body, options), size=request.size)
    first = [read]
    uid: str = first[0]["metadata"].get("uid", "")

    def replacement(_: Tree) -> Tree:
        # Each attempt consumes a tree.
        return first.pop() if first else read_replacement(context, request, body, options)

    change = Change(context, request, options, replacement, uid=uid, part=info.subresource)
    change.replaces = True
    if definition.strategy.create_on_update:
        change.create = lambda: replacement({})
    record = await change.make()
    return await answer_object(context, request, form, record, status=201 if change.created else 200)


def read_replacement(context: VerbContext, request: ServerRequest, body: bytes, options: WriteOptions) -> Tree:
    """The object of a PUT, checked against its path."""
    definition = context.definition
    obj = read_object(definition, request, body, options.field_validation)
    take_namespace(definition, request.info.namespace, obj["metadata"])
    check_name(request.info.name, obj["metadata"])
    warn_of_duplicate_owners(request, obj["metadata"])
    definition.strategy.default(obj)
    return obj


class Change:
    """One change of one object: `make` repeats it until no concurrent write interferes."""

    def __init__(
        self,
        context: VerbContext,
        request: ServerRequest,
        options: WriteOptions,
        transform: Transform,
        *,
        uid: str = "",
        part: str = "",
        manages: bool = True,
    ) -> None:
        self._context = context
        self._request = request
        self._options = options
        self._transform = transform
        self._uid = uid
        #: The subresource: empty for all but the status.
        self._part = part
        #: Whether this change updates managed fields; otherwise the transform's result has its own.
        self._manages = manages
        #: Makes the object if it is missing; None: 404.
        self.create: Callable[[], Tree] | None = None
        #: What clients see of the object, if that has another kind.
        self.view: WriteView | None = None
        #: Whether the transform ignores the current object, so that it is not copied.
        self.replaces = False
        #: The conversions that its managed fields need, if a webhook makes them.
        self.results = results_for(context.definition.conversion)
        #: Whether the transform may set fields that the schema lacks: they count as a change, and are not stored.
        self.prunes = False
        #: Whether the object was missing.
        self.created = False

    async def make(self) -> Record:
        """Make the change. Returns the stored record."""
        context, info = self._context, self._request.info
        key = context.definition.storage_key(info.namespace, info.name)
        record, _ = await context.storage.get(key)
        while True:
            try:
                if record is None:
                    return await self._make_new()
                size, user = self._size(record), self._request.user.name
                return await context.workers.in_turn(self._try(record), size=size, user=user)
            except Mismatch as mismatch:
                record = mismatch.current
                if self.results is not None:
                    self.results.forget()

    def _size(self, record: Record) -> int:
        """The size that the change counts as: the body's or the current object's, whichever is larger."""
        return max(self._request.size, self._context.definition.strategy.counts_as(len(record.value)))

    async def _make_new(self) -> Record:
        context, info = self._context, self._request.info
        if self.create is None:
            raise not_found(context.definition.named, info.name)
        obj = await context.workers.run(self.create, size=self._request.size)
        if self._uid:
            why = f"Precondition failed: UID in precondition: {self._uid}, UID in object meta: "
            raise self._uid_conflict(why)

        def admitted(metadata: Tree) -> None:
            _version_in(metadata)
            wipe_system_fields(metadata)
            if not self._options.dry_run:
                metadata.pop("resourceVersion", None)

        # An object created through its status, as only Services can be, gets no scarce values.
        allocates = self._part != "status"
        record = await create_object(
            context, self._request, obj, self._options, admitted=admitted, allocates=allocates, manages=self._manages
        )
        self.created = True
        return record

    async def _try(self, record: Record) -> Record:
        context, request, definition = self._context, self._request, self._context.definition
        size = self._size(record)
        shown = await read_for_write(context, record)
        # Few computations: for each, the loop and a thread wait for each other.
        old, obj = await self._computed(lambda: self._changed(shown), size)
        managed = obj["metadata"].get("managedFields")
        attributes = Attributes(
            context,
            request,
            "UPDATE",
            namespace=request.info.namespace,
            name=request.info.name,
            obj=obj,
            old=old,
            dry_run=self._options.dry_run,
            view=self.view,
        )
        await context.admission.admit(attributes)
        size = self._size(record)  # a webhook may have made the object larger
        keep_readable(request, obj["metadata"], managed)
        warn_of_duplicate_owners(request, obj["metadata"], admitted=True)
        self._check_version(obj["metadata"], record)
        if self._part == "status" or not definition.strategy.allocates:
            is_same = await context.workers.run(lambda: self._judged_same(obj, old), size=size)
            return await self._store(record, shown, attributes, is_same=is_same)
        await context.workers.run(lambda: self._judge(obj, old), size=size)
        async with allocated(context, obj, old, dry_run=self._options.dry_run):
            is_same = await context.workers.run(lambda: forget_new_times(obj, old), size=size)
            return await self._store(record, shown, attributes, is_same=is_same)

    async def _store(self, record: Record, shown: Record, attributes: Attributes, *, is_same: bool) -> Record:
        """Store a valid change, unless it changes nothing, or delete the object, if that is all that it waited for."""
        context, definition = self._context, self._context.definition
        obj, old = attributes.obj, attributes.old
        assert obj is not None
        assert old is not None
        await context.admission.validate(attributes)
        if self.prunes:
            await context.workers.run(lambda: definition.strategy.default(obj), size=self._size(record))
        if _is_finished(definition, obj, old):
            return await self._delete(record, obj)
        unfinished = record.created == record.modified and definition.strategy.is_unfinished(old)
        if not unfinished and is_same and _is_read_as_stored(definition, record) and quickly_equal(obj, old):
            return shown
        return await self._put(record, obj, always=unfinished)

    async def _computed(self, compute: Callable[[], tuple[Tree, Tree]], size: int) -> tuple[Tree, Tree]:
        """The result of a computation that may need objects which only a webhook can convert."""
        workers = self._context.workers
        if self.results is None:
            return await workers.run(compute, size=size)
        return await self.results.completed(lambda: workers.run(compute, size=size))

    def _changed(self, record: Record) -> tuple[Tree, Tree]:
        """The object before the change, and after it with its managed fields."""
        context = self._context
        old = decode_served(context.definition, record)
        actual = old["metadata"].get("uid", "")
        if self._uid and self._uid != actual:
            raise self._uid_conflict(
                f"Precondition failed: UID in precondition: {self._uid}, UID in object meta: {actual}"
            )
        obj = self._transform({} if self.replaces else decode_served(context.definition, record))
        if self._manages:
            obj = managed_update(context, self._request, old, obj, self._options.field_manager, self.results)
        return old, obj

    def _judged_same(self, obj: Tree, old: Tree) -> bool:
        """Validate the change; returns whether it changes nothing but times of managed fields."""
        self._judge(obj, old)
        return forget_new_times(obj, old)

    def _judge(self, obj: Tree, old: Tree) -> None:
        self._prepare(obj, old)
        self._validate(obj, old)

    def _check_version(self, metadata: Tree, record: Record) -> None:
        definition, name = self._context.definition, self._request.info.name
        version = _version_in(metadata)
        if not version and not definition.strategy.unconditional_update:
            path, words = "metadata.resourceVersion", "must be specified for an update"
            kind = GroupKind(definition.gvk.group, definition.resource)
            raise invalid(kind, name, [problem(path, "FieldValueInvalid", 0, words)])
        if version and version != record.modified:
            raise modified(definition.named, name)
        metadata["resourceVersion"] = str(record.modified)

    def _prepare(self, obj: Tree, old: Tree) -> None:
        definition, strategy = self._context.definition, self._context.definition.strategy
        metadata, before = obj["metadata"], old["metadata"]
        _put_back(metadata, before, "generation")
        if self._part == "status":
            _only_status(definition, obj, old)
            metadata = obj["metadata"]
            strategy.prepare_status(obj, old)
        else:
            if self._part:
                strategy.prepare_subresource(self._part, obj, old)
            else:
                if definition.has_status:
                    _put_back(obj, old, "status")
                strategy.prepare_update(obj, old)
            if strategy.counts_generations and _is_new_generation(strategy, obj, old):
                metadata["generation"] = before.get("generation", 0) + 1
        metadata.setdefault("uid", before.get("uid", ""))
        _put_back(metadata, before, "creationTimestamp")
        if "deletionTimestamp" in before:
            metadata["deletionTimestamp"] = before["deletionTimestamp"]
        if "deletionGracePeriodSeconds" in before:
            metadata.setdefault("deletionGracePeriodSeconds", before["deletionGracePeriodSeconds"])

    def _validate(self, obj: Tree, old: Tree) -> None:
        definition, strategy = self._context.definition, self._context.definition.strategy
        if self._part == "status":
            own = strategy.validate_status(obj, old)
            own = [CHANGED, *own] if strategy.judges_metadata_of_status else own
        elif self._part:
            own = strategy.validate_subresource(self._part, obj, old)
        else:
            wrong_type = strategy.validate_type(obj, old)
            own = wrong_type or strategy.validate_update(obj, old)
            if CHANGED not in own and strategy.judges_metadata and strategy.judges_changes and not wrong_type:
                own = [CHANGED, WHOLE, *own] if strategy.validates_whole_updates else [CHANGED, *own]
        problems = validate_changed(definition, obj["metadata"], old["metadata"], own)
        for text in strategy.tolerated(obj, old):
            self._request.warn(text)
        if problems:
            raise invalid(definition.refused_as(obj), obj["metadata"].get("name", ""), problems)
        if definition.custom:
            # Its status may be sent as part of any kind.
            obj["kind"], obj["apiVersion"] = old["kind"], old["apiVersion"]
        for text in self._warnings(obj, old):
            self._request.warn(text)

    def _warnings(self, obj: Tree, old: Tree) -> list[str]:
        strategy = self._context.definition.strategy
        if self._part == "status":
            return strategy.status_warnings(obj)
        return [] if self._part else strategy.warnings(obj, old)

    async def _put(self, record: Record, obj: Tree, *, always: bool) -> Record:
        context = self._context
        size = self._size(record)
        await context.make_storable(obj)
        value = await context.workers.run(lambda: self._encoded(record, obj, always=always), size=size)
        if value is None:
            return await context.readable(record)
        if self._options.dry_run:
            return await context.readable(record.with_value(value))
        put = context.storage.put(record.key, value, expect=record.modified, ttl=context.definition.ttl)
        return await context.readable(await put)

    def _encoded(self, record: Record, obj: Tree, *, always: bool) -> bytes | None:
        """The bytes to store; None if they are already stored."""
        context = self._context
        value = encode_served(context.definition, obj)
        if not always and _is_stored(context.definition, record, value):
            return None
        return small_enough(context, obj, value, spares=self._manages)

    async def _delete(self, record: Record, obj: Tree) -> Record:
        context = self._context
        deleted: Tree = copied(obj)
        await context.make_storable(obj)
        value = encode_served(context.definition, obj)
        if not self._options.dry_run:
            await remove(context, record, deleted)
        return await context.readable(record.with_value(value))

    def _uid_conflict(self, why: str) -> Exception:
        definition, info = self._context.definition, self._request.info
        key = engine_key(definition, info.namespace, info.name)
        if self._options.dry_run:
            # A dry run looks the object up below the store's prefix.
            key = key.removeprefix("/registry")
        return conflict(
            definition.named,
            info.name,
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}",
        )


def _version_in(metadata: Tree) -> int:
    try:
        return read_version(metadata.get("resourceVersion", ""))
    except ValueError as error:
        raise unnamed(str(error)) from None


def _put_back(obj: Tree, old: Tree, name: str) -> None:
    if name in old:
        obj[name] = old[name]
    else:
        obj.pop(name, None)


def _is_new_generation(strategy: Strategy, obj: Tree, old: Tree) -> bool:
    new, before = strategy.counted_form(obj), strategy.counted_form(old)
    if _counted(new, strategy.not_counted) != _counted(before, strategy.not_counted):
        return True
    if not strategy.counts_annotations:
        return False
    return obj["metadata"].get("annotations") != old["metadata"].get("annotations")


def _counted(obj: Tree, not_counted: frozenset[str]) -> Tree:
    return {name: value for name, value in obj.items() if name not in not_counted}


def _only_status(definition: Definition, obj: Tree, old: Tree) -> None:
    """Restore everything but the status and, for a custom resource, its metadata."""
    kept = {"status", "kind", "apiVersion"} if definition.custom else {"status", "kind", "apiVersion", "metadata"}
    managed = obj["metadata"].get("managedFields")
    for name in [name for name in obj if name not in kept and name not in old]:
        del obj[name]
    for name, value in old.items():
        if name not in kept:
            obj[name] = value
    if definition.custom:
        obj["metadata"] = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
        if managed is not None:
            obj["metadata"]["managedFields"] = managed


def _is_finished(definition: Definition, obj: Tree, old: Tree) -> bool:
    """Whether an object that is being deleted has no finalizer left."""
    before: Tree = old["metadata"]
    if "deletionTimestamp" not in before or obj["metadata"].get("finalizers"):
        return False
    return not before.get("deletionGracePeriodSeconds") and not definition.strategy.blocks_deletion(obj)


def _is_read_as_stored(definition: Definition, record: Record) -> bool:
    """Whether decoding adds nothing to an object. Otherwise writing it back stores the additions, as in kube-apiserver."""
    return not definition.custom or definition.conversion is None or definition.conversion.is_same(record)


def _is_stored(definition: Definition, record: Record, value: bytes) -> bool:
    if value == record.value:
        return True
    if _is_read_as_stored(definition, record):
        return False
    return json_equal(msgspec.json.decode(value), msgspec.json.decode(record.value))
