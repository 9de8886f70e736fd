"""Skip applies that would change nothing.

Guarantees
- An apply is skipped only if the cache, which is never older than our own writes, proves that neither a value nor an
  owner would change. Objects that are not fully cached, keys in doubt, and kinds without a schema are always sent.
- Server-side normalization is remembered: if the server rewrote an intent (defaults inside lists, dropped values), the
  same intent is not sent again until the object drifts from that result. Drift is corrected.
- An intent marked with `INTENT_ANNOTATION` is recognized across restarts, however the server normalized it: changing a
  field removes it from our managed-fields entry, so an intact entry proves that nothing changed.
- Memory is bounded to the most recently applied live objects. Eviction costs a comparison, and a request for normalized
  intents.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cache, lru_cache
from hashlib import blake2b
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import structs

from steersman.cache import Informer, StoredObject, StoredView
from steersman.client import Intent
from steersman.objects import (
    GroupVersionKind,
    Key,
    Object,
    Resource,
    Unstructured,
    has_status_subresource,
    raw_bytes,
    resource_version_of,
    uid_of,
)
from steersman.patches import FieldSet, MergeSchema, PatchError, applied_set, changes_nothing, projection

#: Objects whose last apply is remembered.
MEMORY_LIMIT = 100_000
_SWEEP_FROM = 1024

#: Holds the digest of an intent, computed without this annotation.
INTENT_ANNOTATION = "steersman.dev/intent"

#: Its applies also carry over what `kubectl apply` recorded in an annotation.
_KUBECTL = "kubectl"

_Place: TypeAlias = tuple[GroupVersionKind, Key, str, str]
Tree: TypeAlias = dict[str, Any]


class _Known(msgspec.Struct, frozen=True, gc=False):
    """An object that matches an intent."""

    uid: str
    resource_version: str
    #: Resource versions from before a restore from backup are not comparable.
    epoch: int
    intent: bytes
    #: The server's result for all applied fields; empty if it holds the values unchanged.
    result: bytes = b""
    #: Whether applying the intent once more would give the same result.
    settled: bool = True
    #: A digest of the inputs of the intent: with the same inputs, it need not be built again.
    token: bytes = b""
    #: Whether the server's answer to the apply does not hold the intent unchanged.
    normalized: bool = False


class _Schema(NamedTuple):
    merging: MergeSchema
    #: Whether the server decodes the kind into its own types.
    typed: bool


class Applies:
    """The applies that one controller remembers. ``informer_of`` returns the informer of a watched kind."""

    def __init__(self, informer_of: Callable[[GroupVersionKind], Informer[Any] | None]) -> None:
        self._informer_of = informer_of
        self._known: OrderedDict[_Place, _Known] = OrderedDict()
        #: Size at which entries of deleted objects are swept.
        self._sweep_at = _SWEEP_FROM
        #: Number of applies that needed no request.
        self.unsent = 0

    def __len__(self) -> int:
        return len(self._known)

    def unchanged(self, intent: Intent) -> bytes | None:
        """The bytes of the object if applying the intent would change nothing; None to send it."""
        informer = self._informer_of(intent.kind)
        seen = None if informer is None or intent.manager == _KUBECTL else _seen(informer, intent.key)
        if informer is None or seen is None:
            return None
        place, digest = _place(intent), _digest(intent.body)
        epoch = informer.overlay.epoch
        known = self._known.get(place)
        if known is not None and (known.uid, known.intent, known.epoch, known.settled) != (
            seen.uid,
            digest,
            epoch,
            True,
        ):
            known = None
        if known is not None and known.resource_version == seen.resource_version and known.token == intent.token:
            self._known.move_to_end(place)
        elif known is not None and known.resource_version == seen.resource_version:
            self._remember(place, structs.replace(known, token=intent.token))
        else:
            result, normalized = b"", False
            if known is not None and known.result and known.result == _result(intent, seen):
                result, normalized = known.result, known.normalized
            elif not (_says_the_same(intent, seen) or _holds(intent, seen)):
                return None
            known = _Known(
                seen.uid, seen.resource_version, epoch, digest, result, token=intent.token, normalized=normalized
            )
            self._remember(place, known)
        self.unsent += 1
        return seen.raw

    def look(self, kind: GroupVersionKind, key: Key) -> StoredView | EllipsisType | None:
        """What a read would return now, without waiting; ``...`` if the read would need the server."""
        informer = self._informer_of(kind)
        if informer is None or not (informer.synced and informer.settled) or informer.options.namespaces:
            return ...
        if not informer.has(key):
            return ...
        base = informer.store.get(key)
        if informer.overlay.needs_live(key, base):
            return ...
        seen = informer.overlay.visible(key, base)
        return None if seen is None else informer.view(seen)

    def recall(self, kind: GroupVersionKind, key: Key, manager: str, token: bytes) -> StoredView | None:
        """The object, if nothing changed since an intent with this token changed nothing."""
        informer, place = self._informer_of(kind), (kind, key, manager, "")
        known = self._known.get(place)
        if informer is None or known is None or known.token != token or not known.settled:
            return None
        seen = _seen(informer, key)
        if (
            seen is None
            or seen.resource_version != known.resource_version
            or seen.uid != known.uid
            or known.epoch != informer.overlay.epoch
        ):
            return None
        self._known.move_to_end(place)
        self.unsent += 1
        return informer.view(seen)

    def confirm(self, view: StoredView, intent: Intent, token: bytes) -> bool:
        """Whether an object that `look` returned holds an intent. Remembers the intent's inputs by ``token`` if it does."""
        informer, stored, place = self._informer_of(intent.kind), view.stored, _place(intent)
        if informer is None or stored.partial or intent.manager == _KUBECTL:
            return False
        known = self._known.get(place)
        if (known is not None and known.result) or not _holds(intent, stored):
            return False
        # Without a digest of the intent, only the token recalls it.
        known = _Known(stored.uid, stored.resource_version, informer.overlay.epoch, b"", token=token)
        self._remember(place, known)
        self.unsent += 1
        return True

    def applied(self, intent: Intent, obj: Object | Unstructured) -> None:
        """Remember ``obj``, the server's answer to an apply."""
        informer, raw = self._informer_of(intent.kind), raw_bytes(obj)
        if informer is None or raw is None or intent.manager == _KUBECTL or obj.kind != intent.kind.kind:
            return
        stored = informer.intake.admit_answer(raw)
        # With a doubt, the answer may be from before the server was restored: its version may name another state now.
        if stored is None or stored.partial or informer.overlay.doubts(intent.key):
            return
        place, digest = _place(intent), _digest(intent.body)
        holds = _holds(intent, stored)
        result = b"" if holds else _result(intent, stored)
        before = self._known.get(place)
        settled = (
            holds
            or not _has_empty(intent.body)
            or (before is not None and (before.uid, before.intent, before.result) == (stored.uid, digest, result))
            or _says_the_same(intent, stored)
        )
        known = _Known(
            stored.uid,
            stored.resource_version,
            informer.overlay.epoch,
            digest,
            result,
            settled,
            intent.token,
            not holds,
        )
        self._remember(place, known)

    def is_written_otherwise(self, intent: Intent, obj: Object | Unstructured) -> bool:
        """Whether the server normalized an intent so that a later process would not recognize it.

        ``obj`` is the server's answer to the apply. `applied` has compared it already, unless the answer is in doubt.
        """
        known = self._known.get(_place(intent))
        if known is not None and (known.uid, known.resource_version) == (uid_of(obj), resource_version_of(obj)):
            return known.normalized and _schema_of(intent.kind, intent.declared) is not None
        informer, raw = self._informer_of(intent.kind), raw_bytes(obj)
        stored = None if informer is None or raw is None else informer.intake.admit_answer(raw)
        if stored is None or stored.partial or _schema_of(intent.kind, intent.declared) is None:
            return False
        return not _holds(intent, stored)

    def _remember(self, place: _Place, known: _Known) -> None:
        self._known[place] = known
        self._known.move_to_end(place)
        if len(self._known) > self._sweep_at:
            self._sweep()
        if len(self._known) > MEMORY_LIMIT:
            self._known.popitem(last=False)

    def _sweep(self) -> None:
        """Forget deleted objects; rarely, so that the cost per entry stays small."""
        for place in [known for known in self._known if not self._is_there(known)]:
            del self._known[place]
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._known))

    def _is_there(self, place: _Place) -> bool:
        kind, key, *_ = place
        informer = self._informer_of(kind)
        return informer is not None and (informer.store.get(key) is not None or informer.overlay.touches(key))


def _seen(informer: Informer[Any], key: Key) -> StoredObject | None:
    """What a read would return now; None if it would need the server, or the cache holds only a part."""
    base = informer.store.get(key)
    if not informer.synced or informer.overlay.needs_live(key, base) or not informer.has(key):
        return None
    seen = informer.overlay.visible(key, base)
    return None if seen is None or seen.partial else seen


def _place(intent: Intent) -> _Place:
    return (intent.kind, intent.key, intent.manager, intent.subresource)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


class _Entry(msgspec.Struct, rename="camel", frozen=True):
    """One entry of ``managedFields``."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    subresource: str = ""
    fields_v1: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict[str, Any])


_entries_decoder = msgspec.json.Decoder(list[_Entry])


@lru_cache(maxsize=1024)
def _entries(managed: bytes) -> list[_Entry]:
    """Decode entries; objects of the same shape share the decoded result."""
    return _entries_decoder.decode(managed)


def _owned(intent: Intent, stored: StoredObject) -> Tree | None:
    """The fields of our own entry for this endpoint: none without an entry; None if it is one of another version."""
    if not stored.managed_fields:
        return {}
    for entry in _entries(stored.managed_fields):
        if entry.operation == "Apply" and entry.manager == intent.manager and entry.subresource == intent.subresource:
            return entry.fields_v1 if entry.api_version == intent.kind.api_version else None
    return {}


def _result(intent: Intent, stored: StoredObject) -> bytes:
    """The applied fields of an object with their ownership, encoded; empty if they cannot be determined."""
    owned = _owned(intent, stored)
    if not owned:
        return b""
    live: Tree = msgspec.json.decode(stored.raw)
    result = [owned, projection(live, owned)]
    # In this order: loading a schema is slow, and hardly any intent holds an empty list.
    if b"[]" in intent.body and ((schema := _schema_of(intent.kind, intent.declared)) is None or not schema.typed):
        # An empty list has no owner, and a custom resource may or may not hold it.
        left_out = {"metadata"} if intent.subresource else {"metadata", "status"}
        result.append({name: value for name, value in live.items() if name not in left_out})
    return _digest(msgspec.json.encode(result))


def _has_empty(body: bytes) -> bool:
    """Whether an intent holds an empty list or object.

    If it replaces one whose items are removed, the server removes it with them, and creates it on the next apply.
    """
    return b"[]" in body or b"{}" in body


def _holds(intent: Intent, stored: StoredObject) -> bool:
    """Whether an object holds every applied value, and our entry is exactly what was applied."""
    owned, schema = _owned(intent, stored), _schema_of(intent.kind, intent.declared)
    if owned is None or schema is None:
        return False
    wanted = _taken(intent, msgspec.json.decode(intent.body), typed=schema.typed)
    live: Tree = msgspec.json.decode(stored.raw)
    return wanted is not None and changes_nothing(wanted, live, owned, schema.merging, typed=schema.typed)


def _says_the_same(intent: Intent, stored: StoredObject) -> bool:
    """Whether the object's annotation names this very intent, and no other manager has changed its fields since."""
    name = INTENT_ANNOTATION.encode()
    if intent.subresource or name not in intent.body or name not in stored.raw:
        return False
    owned, schema = _owned(intent, stored), _schema_of(intent.kind, intent.declared)
    wanted: Tree = msgspec.json.decode(intent.body)
    mark = _mark(wanted)
    if owned is None or schema is None or mark is None or mark != _mark(msgspec.json.decode(stored.raw)):
        return False
    try:
        return applied_set(wanted, schema.merging) == FieldSet.parse(owned)
    except PatchError:
        return False


def _mark(tree: Tree) -> str | None:
    metadata: Tree = tree.get("metadata") or {}
    annotations: dict[str, str] = metadata.get("annotations") or {}
    return annotations.get(INTENT_ANNOTATION)


def _taken(intent: Intent, tree: Tree, *, typed: bool) -> Tree | None:
    """The part of an intent that its endpoint accepts; None if that is unknown."""
    match intent.subresource:
        case "":
            if "status" not in tree or (intent.declared is not None and not has_status_subresource(intent.declared)):
                return tree
            return None if typed else {name: value for name, value in tree.items() if name != "status"}
        case "status":
            metadata: Tree = tree.get("metadata") or {}
            # Beside the status of built-in kinds, the server ignores varying fields; of custom resources, metadata and
            # spec.
            if typed and ("spec" in tree or metadata.keys() - {"name", "namespace"}):
                return None
            known = tree.keys() <= {"apiVersion", "kind", "metadata", "spec", "status"}
            return {name: tree[name] for name in tree if name not in {"metadata", "spec"}} if known else None
        case _:
            return None


def merge_schema(kind: GroupVersionKind, declared: type[Object] | None) -> MergeSchema | None:
    """How values of a kind merge and compare; None if unknown."""
    schema = _schema_of(kind, declared)
    return None if schema is None else schema.merging


@cache
def _schema_of(kind: GroupVersionKind, declared: type[Object] | None) -> _Schema | None:
    """How values of a kind merge; None for a custom resource without a type, or whose type has no schema."""
    from steersman.kinds import definition, schema_of  # noqa: PLC0415 - only applies need them
    from steersman.schemas import Misuse, readable_schema  # noqa: PLC0415 - as above

    try:
        schema = schema_of(kind)
    except LookupError:
        if declared is None or not issubclass(declared, Resource):
            return None
    else:
        return _Schema(MergeSchema(schema, resolve=lambda name: definition(name.rpartition("/")[2])), typed=True)
    try:
        return _Schema(MergeSchema(readable_schema(cast("type[Object]", declared))), typed=False)
    except Misuse:
        return None
