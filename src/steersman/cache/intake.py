"""Intake: converts the bytes of an object to the form that the cache stores.

Guarantees
- Watch events, list items and the responses to our own writes take the same path, so their stored forms cannot differ.
- The stored bytes omit ``managedFields``. The entries of our own field manager, of its parts (``NAME/PART``) and of its
  former names are stored separately; the others are dropped. A cached object can still be updated, because a server keeps
  its ``managedFields`` if an update has none.
- A user's transform makes the object partial, and so does a metadata-only cache.
- If the transform fails, the cache keeps the object as the server sent it, so readers see the latest state. The failure is
  logged and counted.
- For bytes without an object name, or with another kind, `admit` returns None; no other object is affected.
- An object of another shard is never stored, whether the server selects shards or not.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from steersman.cache.scopes import Scopes
from steersman.cache.stored_object import StoredObject
from steersman.errors import is_exit
from steersman.objects import FieldSelector, Key, Selector, is_manager_of
from steersman.telemetry import FailureLog

_log = logging.getLogger("steersman.cache")

Tree: TypeAlias = dict[str, Any]
#: Changes the JSON tree of an object before it is stored. The transform owns the tree and may modify it.
Transform: TypeAlias = Callable[[Tree], Tree]

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_NOTHING = msgspec.Raw(b"")
_COMMA = ord(",")
_MANAGED_FIELDS = b'"managedFields":'


class _Owner(msgspec.Struct, gc=False):
    uid: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    labels: msgspec.Raw = _NOTHING
    owner_references: list[_Owner] | None = None
    deletion_timestamp: str | None = None
    managed_fields: msgspec.Raw = _NOTHING


class _Identified(msgspec.Struct, gc=False):
    metadata: _Metadata
    kind: str = ""


class _Managed(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """An entry of ``managedFields`` without its time: the time is irrelevant to ownership and would prevent sharing."""

    manager: str = ""
    operation: msgspec.Raw = _NOTHING
    api_version: msgspec.Raw = _NOTHING
    fields_type: msgspec.Raw = _NOTHING
    fields_v1: msgspec.Raw = msgspec.field(name="fieldsV1", default=_NOTHING)
    subresource: msgspec.Raw = _NOTHING


_decoder = msgspec.json.Decoder(_Identified)
_managed_decoder = msgspec.json.Decoder(list[_Managed] | None)
_labels_decoder = msgspec.json.Decoder(dict[str, str] | None)

T = TypeVar("T")

#: The maximum number of shared values. A full pool is cleared, so that short-lived names do not pile up.
_POOLED_MAX = 10_000


class KindOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to cache of a kind; the default is everything.

    Example: ``Manager(kinds={Pod: KindOptions(labels=Selector.parse("app=web"), namespaces=("shop",))})``.
    """

    labels: Selector = Selector()
    fields: FieldSelector = FieldSelector()
    #: Only objects in these namespaces; empty means all.
    namespaces: tuple[str, ...] = ()
    #: Applied before storing. Dropped fields cannot be read, and the objects cannot be written with a full update.
    transform: Transform | None = None
    #: Transfer and store only metadata.
    metadata_only: bool = False
    #: Only objects to which others refer: see ``refers_to`` of a controller.
    referenced: bool = False
    #: How many watches a referenced kind may have that follow one object by its name each. Beyond them, a watch follows a
    #: namespace. Each takes a connection.
    watches_by_name: int = 8
    #: After this many seconds without data, a watch is replaced; None means the value in `Settings`. Servers send a
    #: bookmark about every minute, so a shorter timeout keeps reopening the watch of a kind without changes.
    idle_timeout: float | None = None
    #: A list of more bytes is an error, which the cache retries with backoff: so a faulty server cannot fill the memory.
    #: The default is as much as a default etcd holds of all kinds.
    max_list_bytes: int = 2 * 1024 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.idle_timeout is not None and not self.idle_timeout > 0:
            raise ValueError(f"idle_timeout must be a number of seconds above 0, or None (got {self.idle_timeout})")
        if self.watches_by_name < 1:
            raise ValueError(f"watches_by_name must be at least 1 (got {self.watches_by_name})")
        labels, fields, namespaces = cast("tuple[object, object, object]", (self.labels, self.fields, self.namespaces))
        if not isinstance(labels, Selector):
            given = isinstance(labels, str | dict)
            write = (
                f"Selector.{'parse' if isinstance(labels, str) else 'of'}({labels!r})"
                if given
                else "Selector.of({...})"
            )
            raise TypeError(
                f"KindOptions(labels={labels!r}): write labels={write}, with from steersman.objects import Selector"
            )
        if not isinstance(fields, FieldSelector):
            raise TypeError(
                f"KindOptions(fields={fields!r}): write fields=FieldSelector.parse(...), with from"
                " steersman.objects import FieldSelector"
            )
        if isinstance(namespaces, str):
            raise TypeError(f"KindOptions(namespaces={namespaces!r}): write namespaces=({namespaces!r},)")
        if len(set(self.namespaces)) != len(self.namespaces) or "" in self.namespaces:
            raise ValueError(f"namespaces must be distinct names, not {self.namespaces!r}; leave them out to cache all")


class _Pool(Generic[T]):
    """Shares one copy of a value among many objects."""

    def __init__(self, make: Callable[[bytes], T]) -> None:
        self._make = make
        self._known: dict[bytes, T] = {}

    def get(self, raw: bytes) -> T:
        """Return the shared value of the bytes."""
        known = self._known
        value = known.get(raw)
        if value is None:
            if len(known) >= _POOLED_MAX:
                known.clear()
            value = known[raw] = self._make(raw)
        return value


class Outside(Enum):
    """Stands for an object of another shard."""

    OUTSIDE = auto()


OUTSIDE = Outside.OUTSIDE


class Intake:
    """The intake of one kind in one cache."""

    def __init__(
        self,
        options: KindOptions,
        *,
        kind: str = "",
        field_managers: tuple[str, ...] = (),
        scopes: Scopes | None = None,
    ) -> None:
        self._options = options
        self._scopes = scopes or Scopes()
        #: The kinds that objects may have: items of lists of built-in kinds have none.
        self._kinds = frozenset({kind, "", "PartialObjectMetadata"}) if kind else None
        self._selects_all = not (options.namespaces or options.labels or options.fields)
        self._field_managers = tuple(name for name in field_managers if name)
        # Objects of a kind often share their namespace, their labels and the fields that we own.
        self._labels: _Pool[dict[str, str] | None] = _Pool(_labels_decoder.decode)
        self._managed: _Pool[bytes] = _Pool(bytes)
        self._last: tuple[bytes, StoredObject | None] = (b"", None)
        #: Objects on which the transform failed.
        self.transform_failures = 0
        self._failure_log = FailureLog()

    def admit_answer(self, raw: bytes) -> StoredObject | None:
        """Like `admit`, for the response to a write: several callers pass the same bytes in turn, decoded once."""
        known, stored = self._last
        if known is not raw:
            stored = self.admit(raw)
            self._last = (raw, stored)
        return stored

    def receive(self, raw: bytes, scope: str) -> StoredObject | Outside | None:
        """Like `admit`, for lists and watches of a scope; `OUTSIDE` for an object of another shard.

        That costs only its metadata.
        """
        if self._scopes.selects_all:
            return self.admit(raw)
        metadata = self._identified(raw)
        if metadata is None:
            return None
        is_inside = self._scopes.selects(scope, Key(metadata.namespace or "", metadata.name), uid=metadata.uid or "")
        return self._converted(raw, metadata) if is_inside else OUTSIDE

    def admit(self, raw: bytes) -> StoredObject | None:
        """Convert an object's bytes; return None if they are not an object of this kind."""
        metadata = self._identified(raw)
        return None if metadata is None else self._converted(raw, metadata)

    def _identified(self, raw: bytes) -> _Metadata | None:
        """The metadata of an object of this kind; None for anything else."""
        try:
            identified = _decoder.decode(raw)
        except _UNREADABLE:
            return None
        metadata = identified.metadata
        if not metadata.name or (self._kinds is not None and identified.kind not in self._kinds):
            return None
        return metadata

    def _converted(self, raw: bytes, metadata: _Metadata) -> StoredObject | None:
        options = self._options
        managed = b""
        try:
            labels = self._labels.get(bytes(metadata.labels)) if metadata.labels else None
            if metadata.managed_fields:
                managed = self._own_entries(metadata.managed_fields)
                raw = without_managed_fields(raw, metadata.managed_fields)
            if options.metadata_only:
                raw = _metadata_alone(raw)
        except _UNREADABLE:
            return None
        key = Key(sys.intern(metadata.namespace or ""), metadata.name)
        if options.transform is not None:
            raw = self._transformed(options.transform, raw, key)
        owners, controlled = _owners(metadata.owner_references) if metadata.owner_references else ((), False)
        return StoredObject(
            key=key,
            resource_version=metadata.resource_version or "",
            raw=raw,
            uid=metadata.uid or "",
            generation=metadata.generation or 0,
            own_labels=labels,
            owners=owners,
            controlled=controlled,
            deleting=metadata.deletion_timestamp is not None,
            partial=options.metadata_only or options.transform is not None,
            managed_fields=managed,
        )

    def selects(self, stored: StoredObject, raw: bytes) -> bool:
        """Whether the cache's options and shard select an object; ``raw`` is the object before the transform."""
        options = self._options
        if not self._scopes.holds(stored.key, uid=stored.uid):
            return False
        if self._selects_all:
            return True
        if options.namespaces and stored.key.namespace not in options.namespaces:
            return False
        if not options.labels.matches(stored.labels):
            return False
        return not options.fields or options.fields.matches(lambda path: _field(raw, path))

    def _transformed(self, transform: Transform, raw: bytes, key: Key) -> bytes:
        try:
            return msgspec.json.encode(_as_tree(transform(msgspec.json.decode(raw))))
        except BaseException as error:
            # User code: any error affects this object only.
            if is_exit(error):
                raise
            self.transform_failures += 1
            self._failure_log.report(
                _log,
                error,
                asyncio.get_running_loop().time(),
                "transform %s failed on %s",
                getattr(transform, "__name__", transform),
                key,
                then="; the cache keeps the object as the server sent it",
            )
            return raw

    def _own_entries(self, managed: msgspec.Raw) -> bytes:
        if not self._field_managers:
            return b""
        names, entries = self._field_managers, _managed_decoder.decode(managed) or ()
        own = [entry for entry in entries if _is_own(names, entry.manager)]
        return self._managed.get(msgspec.json.encode(own)) if own else b""


def _as_tree(returned: object) -> object:
    if not isinstance(returned, dict):
        raise TypeError(f"the transform returned {type(returned).__name__}; it must return the tree")
    return cast("Tree", returned)


@lru_cache(maxsize=1024)
def _is_own(programs: tuple[str, ...], manager: str) -> bool:
    """Whether a field manager belongs to one of these programs."""
    return any(is_manager_of(program, manager) for program in programs)


def _owners(references: list[_Owner]) -> tuple[tuple[str, ...], bool]:
    """Return the owners' uids, the controller's first, and whether there is a controller."""
    controllers = [reference.uid for reference in references if reference.uid and reference.controller]
    others = [each.uid for each in references if each.uid and not each.controller]
    return (*controllers, *others), bool(controllers)


def without_managed_fields(raw: bytes, managed: msgspec.Raw) -> bytes:
    """Cut ``managedFields`` out of the bytes of an object; other fields stay as received."""
    # Search for the name only: searching for the long value would dominate the cost of this function.
    start, entries = raw.find(_MANAGED_FIELDS), bytes(managed)
    value = start + len(_MANAGED_FIELDS)
    end = value + len(entries)
    # The format of kube-apiserver. The match cannot be inside a string, where the quotes would be escaped.
    if start > 0 and raw[value:end] == entries and raw.find(_MANAGED_FIELDS, end) < 0:
        if raw[start - 1] == _COMMA:
            start -= 1
        elif raw[end : end + 1] == b",":
            end += 1
        return raw[:start] + raw[end:]
    tree = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(tree["metadata"], type=dict[str, msgspec.Raw])
    metadata.pop("managedFields", None)
    tree["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    return msgspec.json.encode(tree)


def _metadata_alone(raw: bytes) -> bytes:
    """Return the object in the form of a metadata-only response."""
    tree = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return msgspec.json.encode(kind | {"metadata": tree["metadata"]})


def _field(raw: bytes, path: str) -> str | None:
    """Return a field's value as a field selector compares it; None unless it is a string, integer or boolean."""
    value: Any = msgspec.json.decode(raw)
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = cast("Tree", value).get(name)
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int():
            return str(value)
        case _:
            return None


class _Deletion(msgspec.Struct, rename="camel"):
    """The metadata that decides whether an object stays after its deletion."""

    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class _Answer(msgspec.Struct):
    kind: str = ""
    metadata: _Deletion = msgspec.field(default_factory=_Deletion)


_answer_decoder = msgspec.json.Decoder(_Answer)


def shows_removal(raw: bytes) -> bool:
    """Whether a write removed the last finalizer, and with it the object. The response still has the old version."""
    if b'"deletionTimestamp"' not in raw:
        return False
    try:
        answer = _answer_decoder.decode(raw)
    except _UNREADABLE:
        return False
    metadata = answer.metadata
    # A Pod waits for its grace period. A Namespace waits for spec.finalizers; its deletion is left to the watch.
    waits = metadata.finalizers or metadata.deletion_grace_period_seconds != 0 or answer.kind == "Namespace"
    return metadata.deletion_timestamp is not None and not waits
