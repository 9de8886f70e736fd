"""From the bytes of an object to what the cache keeps of it.

Guarantees
- Watch frames, list items and the answers to our own writes go through the same door, so that they cannot differ.
- ``managedFields`` are not kept in the bytes: the entries of our own manager, and of its parts (``NAME/PART``), stand
  beside them, the others are dropped.
  A server that gets an update without ``managedFields`` keeps those it has, so a cached object may still be updated.
- A transform of the user's makes the object partial, and so does a metadata-only cache.
- Bytes without a name are no object: `admit` gives None, and nothing else is affected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from steersman.cache.stored import Stored
from steersman.objects import FieldSelector, Key, Selector
from steersman.objects.field_managers import is_manager_of

Tree: TypeAlias = dict[str, Any]
#: Changes the JSON tree of an object before it is stored; the tree is the transform's own.
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


class _Managed(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """An entry of ``managedFields`` without its time, which says nothing about what is owned, and makes all of them differ."""

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

#: So many different values are shared; then sharing starts anew, because names that come and go must not pile up.
_POOLED_MAX = 10_000


class KindOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is cached of a kind: everything, unless something is said here."""

    labels: Selector = Selector()
    fields: FieldSelector = FieldSelector()
    #: Only objects in these namespaces; empty means all.
    namespaces: tuple[str, ...] = ()
    #: Applied before storing; what it drops can no longer be read, and the objects can no longer be updated whole.
    transform: Transform | None = None
    #: Keep (and transfer) metadata alone.
    metadata_only: bool = False
    #: A stream that says nothing for so many seconds is given up and replaced; None: as `Settings` have it. Servers send
    #: a bookmark about every minute, so that less makes a quiet kind be asked for again and again.
    idle_timeout: float | None = None

    def __post_init__(self) -> None:
        if self.idle_timeout is not None and not self.idle_timeout > 0:
            raise ValueError(f"idle_timeout is a number of seconds above 0, or None; got {self.idle_timeout}")
        if len(set(self.namespaces)) != len(self.namespaces) or "" in self.namespaces:
            raise ValueError(f"namespaces must be distinct names, not {self.namespaces!r}; leave them out to cache all")


class _Pool(Generic[T]):
    """One copy of what many objects have in common."""

    def __init__(self, make: Callable[[bytes], T]) -> None:
        self._make = make
        self._known: dict[bytes, T] = {}

    def get(self, raw: bytes) -> T:
        """What the bytes stand for."""
        known = self._known
        value = known.get(raw)
        if value is None:
            if len(known) >= _POOLED_MAX:
                known.clear()
            value = known[raw] = self._make(raw)
        return value


class Intake:
    """The door of one cache of one kind."""

    def __init__(self, options: KindOptions, *, field_manager: str = "") -> None:
        self._options = options
        self._selects_all = not (options.namespaces or options.labels or options.fields)
        self._field_manager = field_manager
        # Objects of a kind have much in common: their namespaces, often their labels, and the fields that we own.
        self._labels: _Pool[dict[str, str] | None] = _Pool(_labels_decoder.decode)
        self._managed: _Pool[bytes] = _Pool(bytes)
        self._namespaces: _Pool[str] = _Pool(bytes.decode)
        self._last: tuple[bytes, Stored | None] = (b"", None)

    def admit_answer(self, raw: bytes) -> Stored | None:
        """Like `admit`, for the answer to a write: several look at it one after the other, and it is read once."""
        known, stored = self._last
        if known is not raw:
            stored = self.admit(raw)
            self._last = (raw, stored)
        return stored

    def admit(self, raw: bytes) -> Stored | None:
        """Read an object's bytes; None if they hold no object."""
        options = self._options
        managed = b""
        try:
            metadata = _decoder.decode(raw).metadata
            if not metadata.name:
                return None
            labels = self._labels.get(bytes(metadata.labels)) if metadata.labels else None
            if metadata.managed_fields:
                managed = self._own_entries(metadata.managed_fields)
                raw = without_managed_fields(raw, metadata.managed_fields)
            if options.metadata_only:
                raw = _metadata_alone(raw)
            if options.transform is not None:
                raw = msgspec.json.encode(options.transform(msgspec.json.decode(raw)))
        except _UNREADABLE:
            return None
        return Stored(
            key=Key(self._namespaces.get((metadata.namespace or "").encode()), metadata.name),
            resource_version=metadata.resource_version or "",
            raw=raw,
            uid=metadata.uid or "",
            generation=metadata.generation or 0,
            own_labels=labels,
            owners=_owner_uids(metadata.owner_references) if metadata.owner_references else (),
            controlled=any(owner.controller and owner.uid for owner in metadata.owner_references or ()),
            deleting=metadata.deletion_timestamp is not None,
            partial=options.metadata_only or options.transform is not None,
            managed_fields=managed,
        )

    def selects(self, stored: Stored, raw: bytes) -> bool:
        """Whether an object belongs into this cache; ``raw`` are its bytes before the transform."""
        options = self._options
        if self._selects_all:
            return True
        if options.namespaces and stored.key.namespace not in options.namespaces:
            return False
        if not options.labels.matches(stored.labels):
            return False
        return not options.fields or options.fields.matches(lambda path: _field(raw, path))

    def _own_entries(self, managed: msgspec.Raw) -> bytes:
        if not self._field_manager:
            return b""
        name, entries = self._field_manager, _managed_decoder.decode(managed) or ()
        own = [entry for entry in entries if is_manager_of(name, entry.manager)]
        return self._managed.get(msgspec.json.encode(own)) if own else b""


def _owner_uids(references: list[_Owner]) -> tuple[str, ...]:
    """The owners' uids, the controller's first."""
    return tuple(each.uid for each in sorted(references, key=lambda each: not each.controller) if each.uid)


def without_managed_fields(raw: bytes, managed: msgspec.Raw) -> bytes:
    """Cut ``managedFields`` out of the bytes of an object, leaving every other byte as it came."""
    # Only the name is searched for: looking for a long text costs more than all else here.
    start = raw.find(_MANAGED_FIELDS)
    value = start + len(_MANAGED_FIELDS)
    end = value + len(bytes(managed))
    # As kube-apiserver prints it, and nowhere else: a quote inside a text would be escaped.
    if start > 0 and raw[value:end] == bytes(managed) and raw.find(_MANAGED_FIELDS, end) < 0:
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
    """The object in the form in which a metadata-only read gives it."""
    tree = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return msgspec.json.encode(kind | {"metadata": tree["metadata"]})


def _field(raw: bytes, path: str) -> str | None:
    """The text of a field as a field selector sees it."""
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
