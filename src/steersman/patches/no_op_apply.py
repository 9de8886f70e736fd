"""Whether applying an intent would change nothing: neither a value nor an owner.

Guarantees:

- `changes_nothing` is true only if kube-apiserver, given the same intent by the same manager, would change no value and
  none of the manager's fields: every applied field is in its own entry, and nothing else is. Other owners are ignored.
  (A server may still record a write: for some kinds, an empty list that it does not store increments the generation.)
- Where the server decodes values into types (built-in kinds, and the metadata of all kinds), a value counts as held in
  the form in which the server prints it: quantities, times, bytes, a Secret's ``stringData``. Custom resources are
  stored as sent, so they are compared unchanged.
- In doubt it is false: that costs one request that changes nothing.
- `projection` holds an object's values for a set of fields: equal projections are equal in all that a manager applied.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec

from steersman.objects import Quantity, parse_time
from steersman.patches.applied_fields import item_text
from steersman.patches.errors import MAX_DEPTH
from steersman.patches.merge_schema import MergeSchema, ValueKind

Tree: TypeAlias = Mapping[str, Any]

_ABSENT: Final[Any] = object()
_NOTHING: Final[dict[str, Any]] = {}
_NO: Final = -1
_NOWHERE: Final[tuple[int, Any]] = (-1, None)

#: Metadata that is compared. An intent with more (a uid, a version) is always sent.
_APPLIED_METADATA: Final = frozenset({"annotations", "finalizers", "labels", "ownerReferences"})
_NAMES: Final = frozenset({"name", "namespace"})

#: Fields of built-in kinds that cannot distinguish zero from absent: plain values throughout the API, omitted when
#: zero.
_ZERO_IS_ABSENT: Final = frozenset(
    """
    hostIPC hostNetwork hostPID hostPort insecureSkipTLSVerifyBackend minReadySeconds paused
    publishNotReadyAddresses stdin stdinOnce subPath subPathExpr subdomain tty unschedulable workingDir
    """.split()  # noqa: SIM905
)
#: The same for names with other meanings elsewhere: field -> a sibling field that only this struct has.
_ZERO_IS_ABSENT_BESIDE: Final = {"value": "valueFrom", "readOnly": "mountPath"}


def changes_nothing(intent: Tree, live: Tree, owned: Tree, schema: MergeSchema, *, typed: bool) -> bool:
    """Whether applying ``intent`` to ``live`` would leave it unchanged.

    ``owned`` is the fieldsV1 of the manager's own entry for this endpoint. ``typed`` means that the server decodes the
    kind into its own types, as it does for built-in kinds. ``intent`` holds only what the endpoint accepts.
    """
    metadata: dict[str, Any] = intent.get("metadata") or {}
    applied = {name: value for name, value in metadata.items() if name not in _NAMES}
    place = schema.field("metadata")
    if place is None or applied.keys() - _APPLIED_METADATA:
        return False
    body = {name: value for name, value in intent.items() if name not in {"apiVersion", "kind", "metadata"}}
    if "stringData" in body and intent.get("kind") == "Secret":
        live = _as_texts(body, live)
    rest = {name: node for name, node in owned.items() if name != "f:metadata"}
    if _in_map(body, live, rest, schema, typed=typed, depth=0) == _NO:
        return False
    node = owned.get("f:metadata")
    count = _in_map(applied, live.get("metadata") or {}, node or _NOTHING, place, typed=True, depth=1)
    return count != _NO and _is_node(node, member=False, below=count)


# Each function returns the number of fields that the value contributes to its owner's set at this level, or _NO if
# something would change.


def _in_map(ours: Tree, theirs: Tree, node: Tree, schema: MergeSchema, *, typed: bool, depth: int) -> int:
    if depth > MAX_DEPTH:
        return _NO
    count = 0
    places = schema.places
    for name, value in ours.items():
        place = places[name]
        if place is None:
            return _NO
        child: Any = node.get(f"f:{name}")
        other = theirs.get(name, _ABSENT)
        if child == _NOTHING and _is_same_scalar(value, other, place):
            count += 1
            continue
        member, below = _in_field(name, value, other, child or _NOTHING, place, schema, typed=typed, depth=depth + 1)
        if below == _NO or not _is_node(child, member=member, below=below):
            return _NO
        count += member or below > 0
    return count if count == len(node) - ("." in node) else _NO


def _in_field(
    name: str, ours: Any, theirs: Any, node: Tree, place: MergeSchema, schema: MergeSchema, *, typed: bool, depth: int
) -> tuple[bool, int]:
    """Whether a field itself is in its owner's set, and the number of fields below it."""
    if isinstance(ours, dict) and ours and not place.is_atomic_map:
        below = _NO
        if place.allows_map and isinstance(theirs, dict):
            mine, others = cast("dict[str, Any]", ours), cast("dict[str, Any]", theirs)
            below = _in_map(mine, others, node, place, typed=typed, depth=depth)
        return not schema.declares(name), below
    if isinstance(ours, list) and place.allows_list and place.list_type != "atomic":
        below = _in_list(cast("list[Any]", ours), theirs, node, place, typed=typed, depth=depth)
        return not schema.declares(name), below
    return True, 0 if _same(ours, theirs, place, name, schema, typed=typed, depth=depth) else _NO


def _is_same_scalar(ours: Any, theirs: Any, place: MergeSchema) -> bool:
    """Whether two scalars are the same without conversion: a fast path, because most fields are."""
    kind = cast("type[object]", type(ours))
    return kind is type(theirs) and kind in place.scalars and ours == theirs


def _in_list(ours: list[Any], theirs: Any, node: Tree, schema: MergeSchema, *, typed: bool, depth: int) -> int:
    if not isinstance(theirs, list):
        return 0 if not ours and typed and (theirs is _ABSENT or theirs is None) else _NO
    found = _by_text(cast("list[Any]", theirs), schema)
    last = -1
    for item in ours:
        text = item_text(item, schema)
        position, other = found.get(text, _NOWHERE)
        child: Any = None if text is None else node.get(text)
        # Applied items keep the order in which they were applied.
        if position <= last or child is None:
            return _NO
        last = position
        below = _in_item(item, other, child, schema.items, typed=typed, depth=depth + 1)
        if below == _NO or not _is_node(child, member=True, below=below):
            return _NO
    return len(ours) if len(ours) == len(node) - ("." in node) else _NO


def _by_text(items: list[Any], schema: MergeSchema) -> dict[str | None, tuple[int, Any]]:
    """Items by name; empty if an item has no name or a name occurs twice."""
    if len(items) == 1:
        text = item_text(items[0], schema)
        return {} if text is None else {text: (0, items[0])}
    found = {item_text(item, schema): (position, item) for position, item in enumerate(items)}
    return {} if None in found or len(found) < len(items) else found


def _in_item(item: Any, other: Any, node: Tree, schema: MergeSchema, *, typed: bool, depth: int) -> int:
    if not isinstance(item, dict):
        return 0  # an item of a set: the same name is the same value
    mine = cast("dict[str, Any]", item)
    if not schema.allows_map:
        return _NO
    if schema.is_atomic_map:
        return 0 if _whole(mine, other, schema, typed=typed, depth=depth) else _NO
    return _in_map(mine, other, node, schema, typed=typed, depth=depth)


def _is_node(node: Tree | None, *, member: bool, below: int) -> bool:
    """Whether a set does or does not contain the field itself, and fields below it."""
    if node is None:
        return not member and not below
    if below:
        return ("." in node) == member
    return member and len(node) == ("." in node)


def _same(
    ours: Any, theirs: Any, place: MergeSchema, name: str, schema: MergeSchema, *, typed: bool, depth: int
) -> bool:
    """Whether a value that is owned as one would be stored as the current value."""
    if isinstance(ours, (dict, list)):
        if not (place.allows_map if isinstance(ours, dict) else place.allows_list):
            return False
        if not ours and not place.is_atomic_map and isinstance(theirs, dict):
            return isinstance(ours, dict)  # what others have inside stays
        if not ours and (theirs is _ABSENT or theirs is None):
            # The server drops empty values, except an object with named fields: ``emptyDir: {}``.
            return typed and (isinstance(ours, list) or place.is_map)
        return _whole(ours, theirs, place, typed=typed, depth=depth)
    if theirs is _ABSENT:
        return typed and (ours is None or (not ours and _vanishes(name, schema)))
    return (ours is None or place.allows_scalar) and _same_scalar(ours, theirs, place, typed=typed)


def _vanishes(name: str, schema: MergeSchema) -> bool:
    """Whether the server omits a zero here, whatever was there before."""
    neighbor = _ZERO_IS_ABSENT_BESIDE.get(name)
    return name in _ZERO_IS_ABSENT if neighbor is None else schema.declares(neighbor)


def _whole(ours: Any, theirs: Any, place: MergeSchema, *, typed: bool, depth: int) -> bool:
    """Whether an atomic value would be stored as the current one: all of it, except the server's defaults."""
    if depth > MAX_DEPTH or isinstance(ours, dict) != isinstance(theirs, dict):
        return False
    if isinstance(ours, dict):
        return _whole_map(cast("dict[str, Any]", ours), cast("dict[str, Any]", theirs), place, typed=typed, depth=depth)
    if isinstance(ours, list) and isinstance(theirs, list):
        items, found = cast("list[Any]", ours), cast("list[Any]", theirs)
        return len(items) == len(found) and all(
            _whole(item, other, place.items, typed=typed, depth=depth + 1)
            for item, other in zip(items, found, strict=True)
        )
    return _same_scalar(ours, theirs, place, typed=typed)


def _whole_map(ours: Tree, theirs: Tree, schema: MergeSchema, *, typed: bool, depth: int) -> bool:
    places = schema.places
    for name, value in ours.items():
        place = places[name]
        if place is None:
            return False
        other = theirs.get(name, _ABSENT)
        if not _is_same_scalar(value, other, place) and not _same_inside(
            value, other, name, place, schema, typed=typed, depth=depth + 1
        ):
            return False
    return theirs.keys() <= ours.keys() or all(
        name in ours or (typed and value is not None and schema.default_of(name) == value)
        for name, value in theirs.items()
    )


def _same_inside(
    ours: Any, theirs: Any, name: str, place: MergeSchema, schema: MergeSchema, *, typed: bool, depth: int
) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return _whole(cast("dict[str, Any]", ours), theirs, place, typed=typed, depth=depth)
    return _same(ours, theirs, place, name, schema, typed=typed, depth=depth)


def _same_scalar(ours: Any, theirs: Any, place: MergeSchema, *, typed: bool) -> bool:
    kind = cast("type[object]", type(ours))
    if kind is type(theirs) and ours == theirs:
        return True
    if not typed or not isinstance(theirs, str) or (kind is not str and kind is not int):
        return False
    try:
        return _printed(ours, place.value_kind) == _printed(theirs, place.value_kind)
    except (ValueError, TypeError, binascii.Error):
        return False


def _printed(value: Any, kind: ValueKind) -> Any:
    """The form in which the server prints a value of its own types."""
    match kind:
        case "quantity":
            return Quantity(value).printed()
        case "time":
            return parse_time(value)
        case "seconds":
            return parse_time(value).replace(microsecond=0)
        case "bytes":
            return _decoded(value)
        case _:
            return (type(value), value)


def _decoded(text: str) -> bytes:
    return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)


def _as_texts(secret: Tree, live: Tree) -> Tree:
    """A stored Secret as a writer of ``stringData`` sees it: the server merges that into ``data``."""
    texts: Any = secret.get("stringData")
    data: Any = secret.get("data") or {}
    stored: Any = live.get("data") or {}
    if not isinstance(texts, dict) or not isinstance(data, dict) or not isinstance(stored, dict):
        return live
    names, mine = cast("dict[str, Any]", texts), cast("dict[str, Any]", data)
    held = cast("dict[str, Any]", stored)
    shown: dict[str, str] = {}
    for name in names:
        try:
            shown[name] = _decoded(held[name]).decode()
        except (KeyError, ValueError, TypeError, AttributeError):
            continue
    return {**live, "stringData": shown, "data": held | {name: mine[name] for name in names if name in mine}}


def projection(live: Tree, owned: Tree) -> Any:
    """The values of an object for the fields of a fieldsV1 tree, as a JSON tree; list items in their order."""
    texts = owned.get("f:stringData")
    if texts:
        data = {name: node for name, node in texts.items() if name != "."}
        owned = {**owned, "f:data": {**(owned.get("f:data") or {}), **data}}
    return _projected(live, owned, 0)


def _projected(value: Any, node: Tree, depth: int) -> Any:
    if depth > MAX_DEPTH or not node or (len(node) == 1 and "." in node):
        return None if value is _ABSENT else [value]
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {
            text: _projected(held.get(text[2:], _ABSENT), child, depth + 1)
            for text, child in node.items()
            if text != "."
        }
    if isinstance(value, list):
        wanted = [(_content(text), child) for text, child in node.items() if text != "."]
        found: list[Any] = []
        for item in cast("list[Any]", value):
            for (kind, content), child in wanted:
                if _is_item(item, kind, content):
                    found.append([content, _projected(item, child, depth + 1)])
        return found
    return None if value is _ABSENT else [value]


def _content(text: str) -> tuple[str, Any]:
    try:
        return text[:1], msgspec.json.decode(text[2:])
    except msgspec.DecodeError:
        return "", text


def _is_item(item: Any, kind: str, content: Any) -> bool:
    if kind == "k" and isinstance(item, dict) and isinstance(content, dict):
        held, keys = cast("dict[str, Any]", item), cast("dict[str, Any]", content)
        return all(held.get(name) == value for name, value in keys.items())
    return kind == "v" and item == content
