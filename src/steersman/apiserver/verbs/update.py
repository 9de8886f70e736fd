"""update: PUT of an object or its status; and the loop in which every change of an object happens.

Guarantees
- A change is made to the object as it is: whoever was faster is looked at again, and no change of theirs is lost.
- What nobody may change stays: identity, creation, deletion, generation; a status is changed through itself alone.
- A change that changes nothing, or nothing but times of managed fields, stores nothing.
- Whoever takes away the last finalizer of an object that is being deleted deletes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from steersman.apiserver.admission.attributes import Attributes
from steersman.apiserver.answers import answer
from steersman.apiserver.bodies import read_body, read_object
from steersman.apiserver.context import VerbContext
from steersman.apiserver.documents import decode_served, encode_served
from steersman.apiserver.errors import conflict, invalid, modified, not_found, unnamed
from steersman.apiserver.field_managers import forget_new_times, keep_readable, managed_update
from steersman.apiserver.presenting import form_for
from steersman.apiserver.registry.definition import CHANGED, WHOLE, Definition, Strategy, Tree
from steersman.apiserver.registry.metadata import validate_changed
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Mismatch, Record
from steersman.apiserver.verbs.create import create_object, small_enough, warn_of_duplicate_owners
from steersman.apiserver.verbs.naming import check_name, take_namespace
from steersman.apiserver.verbs.options import WriteOptions, read_version, write_options
from steersman.objects import GroupKind
from steersman.patches.trees import json_equal, quickly_equal
from steersman.schemas.field_problems import problem
from steersman.transport import ServerResponse

#: Makes the new object of the present one, which it may use up; raises `Refused`.
Transform = Callable[[Tree], Tree]
#: Which part of an object is changed: all but the status, the status, or the finalizers of a Namespace.
Part = Literal["", "status", "finalize"]


async def update(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a PUT of an object or of its status."""
    definition, info = context.definition, request.info
    form = form_for(definition, request)
    body = read_body(request, context.limits.body)
    options = write_options(request, "UpdateOptions")
    first: list[Tree] = [read_replacement(context, request, body, options)]
    uid: str = first[0]["metadata"].get("uid", "")

    def replacement(_: Tree) -> Tree:
        # A tree is used up by each try.
        return first.pop() if first else read_replacement(context, request, body, options)

    change = Change(context, request, options, replacement, uid=uid, part="status" if info.subresource else "")
    if definition.strategy.create_on_update:
        change.create = lambda: replacement({})
    record = await change.make()
    return answer(request, form.one(record), status=201 if change.created else 200)


def read_replacement(context: VerbContext, request: ServerRequest, body: bytes, options: WriteOptions) -> Tree:
    """The object that a PUT puts in place of another, checked against its path."""
    definition = context.definition
    obj = read_object(definition, request, body, options.field_validation)
    take_namespace(definition, request.info.namespace, obj["metadata"])
    check_name(request.info.name, obj["metadata"])
    warn_of_duplicate_owners(request, obj["metadata"])
    definition.strategy.default(obj)
    return obj


class Change:
    """One change of one object: made with `make`, again and again until nobody was faster."""

    def __init__(
        self,
        context: VerbContext,
        request: ServerRequest,
        options: WriteOptions,
        transform: Transform,
        *,
        uid: str = "",
        part: Part = "",
        manages: bool = True,
    ) -> None:
        self._context = context
        self._request = request
        self._options = options
        self._transform = transform
        self._uid = uid
        self._part: Part = part
        #: Whether managed fields are kept here; else what the transform makes has its own.
        self._manages = manages
        #: Makes the object if it is not there; None: 404.
        self.create: Callable[[], Tree] | None = None
        #: Whether it was not there.
        self.created = False

    async def make(self) -> Record:
        """Make the change; what is stored now."""
        context, info = self._context, self._request.info
        key = context.definition.storage_key(info.namespace, info.name)
        record, _ = await context.storage.get(key)
        while True:
            try:
                if record is None:
                    return await self._make_new()
                return await self._try(record)
            except Mismatch as mismatch:
                record = mismatch.current

    async def _make_new(self) -> Record:
        context, info = self._context, self._request.info
        if self.create is None:
            raise not_found(context.definition.named, info.name)
        obj = self.create()
        if self._uid:
            why = f"Precondition failed: UID in precondition: {self._uid}, UID in object meta: "
            raise self._uid_conflict(why)

        def admitted(metadata: Tree) -> None:
            _version_in(metadata)
            if not self._options.dry_run:
                del metadata["resourceVersion"]

        before = admitted if "resourceVersion" in obj["metadata"] else None
        # Whoever makes an object by its status, as only Services can be made, is given nothing.
        allocates = self._part != "status"
        record = await create_object(
            context,
            self._request,
            obj,
            self._options,
            admitted=before,
            allocates=allocates,
            manages=self._manages,
        )
        self.created = True
        return record

    async def _try(self, record: Record) -> Record:
        context, request, definition = self._context, self._request, self._context.definition
        old = decode_served(definition, record)
        if self._uid and self._uid != old["metadata"].get("uid"):
            found = old["metadata"].get("uid", "")
            raise self._uid_conflict(
                f"Precondition failed: UID in precondition: {self._uid}, UID in object meta: {found}"
            )
        obj = self._transform(decode_served(definition, record))
        if self._manages:
            obj = managed_update(context, request, old, obj, self._options.field_manager)
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
        )
        await context.admission.admit(attributes)
        keep_readable(request, obj["metadata"], managed)
        warn_of_duplicate_owners(request, obj["metadata"], admitted=True)
        self._check_version(obj["metadata"], record)
        self._prepare(obj, old)
        self._validate(obj, old)
        if self._part != "status":
            await definition.strategy.allocate(obj, old, context, dry_run=self._options.dry_run)
        is_same = forget_new_times(obj, old)
        await context.admission.validate(attributes)
        if _is_finished(definition, obj, old):
            return await self._delete(record, obj)
        unfinished = record.created == record.modified and definition.strategy.is_unfinished(old)
        if not unfinished and is_same and _is_read_as_stored(definition, record) and quickly_equal(obj, old):
            return record
        return await self._put(record, obj, always=unfinished)

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
        elif self._part == "finalize":
            wanted: Tree = obj.get("spec") or {}
            before_spec: Tree = old.get("spec") or {}
            finalizers = wanted.get("finalizers")
            spec = {name: value for name, value in before_spec.items() if name != "finalizers"}
            obj["spec"] = spec | {"finalizers": finalizers} if finalizers else spec
            _put_back(obj, old, "status")
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
        else:
            wrong_type = strategy.validate_type(obj, old)
            own = wrong_type or strategy.validate_update(obj, old)
            if CHANGED not in own and strategy.judges_metadata and not wrong_type:
                own = [CHANGED, WHOLE, *own] if strategy.validates_whole_updates else [CHANGED, *own]
        problems = validate_changed(definition, obj["metadata"], old["metadata"], own)
        for text in strategy.tolerated(obj, old):
            self._request.warn(text)
        if problems:
            raise invalid(definition.refused_as(obj), obj["metadata"].get("name", ""), problems)
        if definition.custom:
            # Its status may be sent as part of anything.
            obj["kind"], obj["apiVersion"] = old["kind"], old["apiVersion"]
        for text in strategy.warnings(obj, old) if self._part != "status" else ():
            self._request.warn(text)

    async def _put(self, record: Record, obj: Tree, *, always: bool) -> Record:
        context = self._context
        value = encode_served(context.definition, obj)
        if not always and _is_stored(context.definition, record, value):
            return record
        value = small_enough(context, obj, value, spares=self._manages)
        if self._options.dry_run:
            return record._replace(value=value)
        return await context.storage.put(record.key, value, expect=record.modified, ttl=context.definition.ttl)

    async def _delete(self, record: Record, obj: Tree) -> Record:
        context = self._context
        copied: Tree = msgspec.json.decode(msgspec.json.encode(obj))
        value = encode_served(context.definition, obj)
        if not self._options.dry_run:
            await context.storage.delete(record.key, expect=record.modified)
            await context.definition.strategy.released(copied, context)
        return record._replace(value=value)

    def _uid_conflict(self, why: str) -> Exception:
        definition, info = self._context.definition, self._request.info
        key = engine_key(definition, info.namespace, info.name)
        if self._options.dry_run:
            # What is only tried is looked up below the place where the store keeps everything.
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
    if _counted(obj, strategy.not_counted) != _counted(old, strategy.not_counted):
        return True
    if not strategy.counts_annotations:
        return False
    return obj["metadata"].get("annotations") != old["metadata"].get("annotations")


def _counted(obj: Tree, not_counted: frozenset[str]) -> Tree:
    return {name: value for name, value in obj.items() if name not in not_counted}


def _only_status(definition: Definition, obj: Tree, old: Tree) -> None:
    """Put back everything but the status, and of a custom resource its metadata too."""
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
    """Whether an object that is being deleted has lost what kept it."""
    before: Tree = old["metadata"]
    if "deletionTimestamp" not in before or obj["metadata"].get("finalizers"):
        return False
    return not before.get("deletionGracePeriodSeconds") and not definition.strategy.blocks_deletion(obj)


def _is_read_as_stored(definition: Definition, record: Record) -> bool:
    """Whether reading adds nothing to an object: else writing what was read stores that, as it does in kube-apiserver."""
    return not definition.custom or definition.conversion is None or definition.conversion.is_same(record)


def _is_stored(definition: Definition, record: Record, value: bytes) -> bool:
    if value == record.value:
        return True
    if _is_read_as_stored(definition, record):
        return False
    return json_equal(msgspec.json.decode(value), msgspec.json.decode(record.value))


def unchanged(obj: Tree, old: Tree) -> bool:
    """Whether two trees are the same JSON; quick where they are not."""
    return obj == old and json_equal(obj, old)


#: Resources that kube-apiserver keeps under other names than their own.
_ENGINE_NAMES: dict[tuple[str, str], str] = {
    ("", "services"): "services/specs",
    ("", "endpoints"): "services/endpoints",
    ("", "nodes"): "minions",
    ("", "replicationcontrollers"): "controllers",
    ("networking.k8s.io", "ingresses"): "ingress",
    ("policy", "podsecuritypolicies"): "podsecuritypolicy",
}


def engine_key(definition: Definition, namespace: str, name: str) -> str:
    """Where kube-apiserver would keep an object, which some of its messages tell."""
    group, resource = definition.gvk.group, definition.resource
    kept: Any = _ENGINE_NAMES.get((group, resource))
    if kept is None:
        kept = f"{group}/{resource}" if definition.custom or group.startswith("api") else resource
    return f"/registry/{kept}/{namespace}/{name}" if definition.namespaced else f"/registry/{kept}/{name}"
