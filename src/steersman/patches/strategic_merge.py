"""Strategic merge patches: lists of built-in kinds merge by the key that their schema names.

Guarantees:

- `apply_strategic_merge` returns the same object as kube-apiserver 1.37, with the same order of list items, and rejects
  what it rejects, with its messages and codes. If there are several errors, the server reports a random one; this
  module reports the first.
- Neither argument is ever changed; the result may share parts with them.
- Directives: ``$patch`` (replace, delete), ``$retainKeys``, ``$deleteFromPrimitiveList/NAME``,
  ``$setElementOrder/NAME``. As on the server, a new item of a merged list is taken unchanged; the decoder drops its
  directives later.
- Patches that crash a handler of kube-apiserver (a list or an object as a merge key, null as the first item) are
  rejected.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import Any, Final, NamedTuple, TypeAlias, cast

from steersman.golang import deeply_equal, printed_value, type_name
from steersman.kinds import definitions
from steersman.patches.merge_places import (
    ABSENT,
    CRASHED,
    Places,
    StrategicMergeError,
    deduplicated,
    identity,
    in_order,
)
from steersman.patches.merge_schema import Resolver
from steersman.patches.trees import check_depth

__all__ = ["StrategicMergeError", "apply_strategic_merge"]

Tree: TypeAlias = dict[str, Any]

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList"
_ORDER: Final = "$setElementOrder"
_BAD_RETAIN: Final = "invalid patch format of retainKeys"
_BAD_ORDER: Final = "invalid patch format of setElementOrder list"
_BAD_DELETE: Final = "invalid patch format of primitive list"
#: The number of values that an error message shows at most.
_SHOWN_MAX: Final = 10_000


class _Place(NamedTuple):
    """A type: its resolved schema, and the name of its Go struct."""

    node: Mapping[str, Any]
    name: str
    resolve: Resolver


class _Field(NamedTuple):
    place: _Place
    strategy: str
    merge_key: str


def _built_in(reference: str) -> Mapping[str, Any]:
    return definitions.definition(reference.rpartition("/")[2])


def apply_strategic_merge(
    target: Mapping[str, Any], patch: Mapping[str, Any], schema: Mapping[str, Any], *, resolve: Resolver = _built_in
) -> Tree:
    """Apply a strategic merge patch to an object.

    ``schema`` is the OpenAPI schema of its kind with patch strategies and patch merge keys. ``resolve`` finds the
    target of a ``$ref``, by default among the built-in definitions.
    """
    check_depth(patch)
    kinds: list[Mapping[str, str]] = schema.get("x-kubernetes-group-version-kind") or [{}]
    return _merged_map(dict(target), dict(patch), _place(schema, resolve, kinds[0].get("kind", "")))


def _place(node: Mapping[str, Any], resolve: Resolver, name: str = "") -> _Place:
    reference = node.get("$ref") or next((part["$ref"] for part in node.get("allOf") or () if "$ref" in part), None)
    if reference is None:
        return _Place(node, name, resolve)
    return _Place(resolve(reference), reference.rpartition(".")[2], resolve)


def _kind(node: Mapping[str, Any]) -> str:
    """The name of a type's kind in Go."""
    if "additionalProperties" in node:
        return "map"
    kinds = {"array": "slice", "string": "string", "integer": node.get("format", "int64"), "boolean": "bool"}
    return kinds.get(node.get("type", ""), "struct")


def _field(place: _Place, key: str) -> _Field:
    kind = _kind(place.node)
    if kind != "struct":
        raise StrategicMergeError(f"merging an object in json but data type is not struct, instead is: {kind}")
    properties: Mapping[str, Any] = place.node.get("properties") or {}
    node = properties.get(key)
    if node is None:
        folded = key.casefold()
        node = next((inner for name, inner in properties.items() if name.casefold() == folded), None)
    if node is None:
        raise StrategicMergeError(f'unable to find api field in struct {place.name} for the json field "{key}"')
    strategies = [each for each in node.get("x-kubernetes-patch-strategy", "").split(",") if each != "retainKeys"]
    strategy = strategies[0] if strategies else ""
    return _Field(_place(node, place.resolve), strategy, node.get("x-kubernetes-patch-merge-key", ""))


def _list_field(place: _Place, key: str) -> _Field:
    field = _field(place, key)
    if _kind(field.place.node) != "slice":
        raise StrategicMergeError(f"expected slice or array type, but got: {_kind(place.node)}")
    return field._replace(place=_place(field.place.node.get("items") or {}, place.resolve))


def _merged_map(original: Tree, patch: Tree, place: _Place) -> Tree:
    """Merge one object; both arguments are our own shallow copies."""
    if _DIRECTIVE in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    _merge_ordered_lists(original, patch, place)
    for name, value in patch.items():
        deletes = name.startswith(_DELETE)
        key = _after_slash(name, _DELETE, _BAD_DELETE) if deletes else name
        key = key or name
        if value is None:
            original.pop(key, None)
        elif key not in original or type_name(original[key]) != type_name(value):
            if not deletes:
                _take(original, key, value)
        elif isinstance(value, dict):
            field = _field(place, key)
            new = dict(cast("Tree", value))
            original[key] = new if field.strategy == "replace" else _merged_map(dict(original[key]), new, field.place)
        elif isinstance(value, list):
            field = _list_field(place, key)
            items = cast("list[Any]", value)
            original[key] = _merged_list(list(original[key]), items, field, deletes=deletes)
        else:
            original[key] = value
    return original


def _directed(patch: Tree) -> Tree:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, where: Tree) -> StrategicMergeError:
    shown = directive if isinstance(directive, str) else f"%!s({type_name(directive)}={_shown(directive)})"
    shown = "%!s(<nil>)" if directive is None else shown
    return StrategicMergeError(f"unknown patch type: {shown} in map: {_shown(where)}")


def _after_slash(name: str, prefix: str, problem: str) -> str:
    head, slash, key = name.partition("/")
    if not slash or head != prefix:
        raise StrategicMergeError(problem, code=400)
    return key


def _take(original: Tree, key: str, value: Any) -> None:
    """Set a value in place of nothing, or of another type: without nulls and directives."""
    if isinstance(value, dict) and _DIRECTIVE in value:
        original.pop(key, None)
    else:
        original[key] = _without_directives(_without_nulls(value))


def _without_nulls(value: Any) -> Any:
    return _without(value, lambda inner: inner is None, of_lists=False)


def _without_directives(value: Any) -> Any:
    """Drop objects with ``$patch``; other directives stay, as on the server."""
    return _without(value, _is_directed, of_lists=True)


def _without(value: Any, is_dropped: Callable[[Any], bool], *, of_lists: bool) -> Any:
    """A value without certain members, and without certain items if ``of_lists``. Unchanged parts are shared."""
    if isinstance(value, dict):
        members = cast("Tree", value)
        made = members
        for name, inner in members.items():
            new = ABSENT if is_dropped(inner) else _without(inner, is_dropped, of_lists=of_lists)
            if new is inner:
                continue
            made = dict(members) if made is members else made
            if new is ABSENT:
                del made[name]
            else:
                made[name] = new
        return made
    if isinstance(value, list):
        items = cast("list[Any]", value)
        kept = [_without(item, is_dropped, of_lists=of_lists) for item in items if not (of_lists and is_dropped(item))]
        return items if len(kept) == len(items) and all(map(is_, kept, items)) else kept
    return value


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _retain_keys(original: Tree, patch: Tree) -> None:
    if _RETAIN not in patch:
        return
    kept = patch.pop(_RETAIN)
    if not isinstance(kept, list):
        raise StrategicMergeError(_BAD_RETAIN, code=400)
    names = _hashed(cast("list[Any]", kept))
    for name, value in patch.items():
        if value is not None and not name.startswith((_DELETE, _ORDER)) and name not in names:
            raise StrategicMergeError(_BAD_RETAIN, code=400)
    for name in [name for name in original if name not in names]:
        del original[name]


def _hashed(items: Iterable[Any]) -> set[Any]:
    """Scalars as Go distinguishes them. Raises for values that Go cannot hash, which crash its handler."""
    found: set[Any] = set()
    for item in items:
        if isinstance(item, (dict, list)):
            raise StrategicMergeError(CRASHED)
        found.add(identity(item))
    return found


def _merge_ordered_lists(original: Tree, patch: Tree, place: _Place) -> None:
    """Merge the lists with a ``$setElementOrder``, and remove them from the patch."""
    for name in [name for name in patch if name.startswith(_ORDER)]:
        order = patch.pop(name)
        if not isinstance(order, list):
            raise _bad_type("[]interface {}", order)
        key = _after_slash(name, _ORDER, _BAD_ORDER)
        merged = _ordered(original, patch, place, key, cast("list[Any]", order))
        if merged is not None:
            original[key] = merged
            patch.pop(key, None)


def _ordered(original: Tree, patch: Tree, place: _Place, key: str, order: list[Any]) -> list[Any] | None:
    for each in (original, patch):
        if key in each and not isinstance(each[key], list):
            raise _bad_type("[]interface {}", each[key])
    ours: list[Any] = list(original.get(key) or ())
    theirs: list[Any] = patch.get(key) or []
    field = _list_field(place, key)
    _check_order(theirs, order, field.merge_key)
    if key not in original:
        if key not in patch:
            return None
        merged = _without_directives(theirs)
    elif key not in patch:
        merged = ours
    else:
        merged = _merged_list(ours, theirs, field, deletes=False)
    present, others = _partition(merged, order, field.merge_key)
    of_maps = _element_type(ours, theirs) == "map[string]interface {}"
    return _interleaved(present, others, order, ours, field.merge_key, of_maps=of_maps)


def _check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """Raise unless the items of a patch are in the order list, in the same order."""
    if not order or not patch:
        return
    kept = _split_deletions(patch)[0] if merge_key else patch
    at = 0
    for item in order:
        while at < len(kept) and _is_directed(kept[at]):
            at += 1
        if at == len(kept):
            break
        at += _same_item(kept[at], item, merge_key)
    if at < len(kept):
        raise StrategicMergeError(
            f"The order in patch list:\n{_shown(patch)}\n doesn't match {_ORDER} list:\n{_shown(order)}\n"
        )


def _same_item(left: Any, right: Any, merge_key: str) -> bool:
    if not merge_key:
        return _equal(left, right)
    for each in (left, right):
        if not isinstance(each, dict):
            raise _bad_type("map[string]interface {}", each)
        if merge_key not in each:
            raise _no_key(cast("Tree", each), merge_key)
    return _equal(left[merge_key], right[merge_key])


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, (dict, list)) and type(left) is type(right):  # pyright: ignore[reportUnknownArgumentType]
        raise StrategicMergeError(CRASHED)
    return deeply_equal(left, right)


def _merged_list(original: list[Any], patch: list[Any], field: _Field, *, deletes: bool) -> list[Any]:
    """Merge one list.

    ``original`` is ours, and is left as Go leaves the underlying array: its order matters afterwards.
    """
    if field.strategy != "merge" and not deletes:
        return patch
    if not original and not patch:
        return original
    kind = _element_type(original, patch)
    if kind != "map[string]interface {}":
        if deletes:
            gone = _hashed(patch)
            return [item for item in original if identity(item) not in gone]
        merged = deduplicated([*original, *patch])
        present, others = _partition(merged, patch, field.merge_key)
        return _interleaved(present, others, patch, original, field.merge_key, of_maps=False)
    if not field.merge_key:
        raise StrategicMergeError(f"cannot merge lists without merge key for {_kind(field.place.node)}")
    ours, theirs = _without_special(original, patch, field.merge_key)
    merged = _merged_items(list(ours), theirs, field)
    original[: len(ours)] = merged[: len(ours)]
    spare = merged[len(ours) : len(original)]
    original[len(ours) : len(ours) + len(spare)] = spare
    present, others = _partition(merged, theirs, field.merge_key)
    return _interleaved(present, others, theirs, ours, field.merge_key, of_maps=True)


def _without_special(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Apply the directive items of a patch. Returns both lists without them."""
    plain: list[Any] = []
    replaces = False
    places = Places.of_items(original, merge_key)
    gone: set[int] = set()
    last, left = len(original) - 1, list[Any]()
    for item in patch:
        if _DIRECTIVE not in item:
            plain.append(item)
            continue
        match item[_DIRECTIVE]:
            case "delete":
                if merge_key not in item:
                    raise _no_key(item, merge_key)
                while (at := places.find(item[merge_key])) is not None:
                    places.put(at, ABSENT)
                    gone.add(at)
                    # The rest moves down; the last item also stays where it was.
                    left.append(original[last])
                    while last in gone:
                        last -= 1
            case "replace":
                replaces = True
            case "merge":
                raise StrategicMergeError("merging lists cannot yet be specified in the patch")
            case directive:
                raise _unknown_directive(directive, item)
    live = [item for at, item in enumerate(original) if at not in gone] if gone else list(original)
    original[:] = [*live, *reversed(left)]
    return (plain, []) if replaces else (live, plain)


def _merged_items(merged: list[Any], patch: list[Any], field: _Field) -> list[Any]:
    places = Places.of_items(merged, field.merge_key)
    for item in patch:
        if field.merge_key not in item:
            raise _no_key(item, field.merge_key)
        at = places.find(item[field.merge_key])
        if at is None:
            merged.append(item)
            places.append(item[field.merge_key])
        else:
            merged[at] = _merged_map(dict(merged[at]), dict(item), field.place)
            places.put(at, merged[at].get(field.merge_key, ABSENT))
    return merged


def _partition(items: list[Any], by: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The items that are in another list, and those that are not."""
    present: list[Any] = []
    others: list[Any] = []
    if not merge_key:
        known = _hashed(by)
        _hashed(items)
        for item in items:
            (present if identity(item) in known else others).append(item)
        return present, others
    places = Places.of_items(by, merge_key)
    for item in items:
        if not isinstance(item, dict):
            raise _bad_type("map[string]interface {}", item)
        if merge_key not in item:
            raise _no_key(cast("Tree", item), merge_key)
        (others if places.find(item[merge_key]) is None else present).append(cast("Tree", item))
    return present, others


def _interleaved(
    present: list[Any], others: list[Any], order: list[Any], live: list[Any], merge_key: str, *, of_maps: bool
) -> list[Any]:
    """Both lists merged: those of the patch in its order, the rest in the live order, interleaved as in the live list."""

    def key_of(item: Any) -> Any:
        if not of_maps:
            return item
        return cast("Tree", item).get(merge_key) if isinstance(item, dict) else None

    def index_in(items: list[Any]) -> Callable[[Any], int]:
        places = Places(map(key_of, items))

        def index(item: Any) -> int:
            place = places.find(key_of(item))
            return -1 if place is None else place

        return index

    if of_maps:
        _check_keys(merge_key, present, order)
        _check_keys(merge_key, others, live)
    live_index = index_in(live)
    right, left = _sorted(present, index_in(order), of_maps=of_maps), _sorted(others, live_index, of_maps=of_maps)
    woven: list[Any] = []
    i = j = 0
    while i < len(left) and j < len(right):
        first, second = live_index(left[i]), live_index(right[j])
        if 0 <= first < second:
            woven.append(left[i])
            i += 1
        else:
            woven.append(right[j])
            j += 1
    return [*woven, *left[i:], *right[j:]]


def _sorted(items: list[Any], index: Callable[[Any], int], *, of_maps: bool) -> list[Any]:
    """Sort by an order that may not contain all items: those move to the front past whatever precedes them."""
    kept, deletions = _split_deletions(items) if of_maps else (items, [])
    return [*in_order(kept, [index(item) for item in kept]), *deletions]


def _split_deletions(items: list[Any]) -> tuple[list[Any], list[Any]]:
    kept: list[Any] = []
    deletions: list[Any] = []
    for item in items:
        if not isinstance(item, dict):
            raise _bad_type("map[string]interface {}", item)
        directed = cast("Tree", item)
        (deletions if directed.get(_DIRECTIVE) == "delete" else kept).append(directed)
    return kept, deletions


def _check_keys(merge_key: str, *lists: list[Any]) -> None:
    for items in lists:
        for item in items:
            if not isinstance(item, dict):
                raise _bad_type("map[string]interface {}", item)
            if merge_key not in item:
                raise _no_key(cast("Tree", item), merge_key)


def _element_type(*lists: list[Any]) -> str:
    found = ""
    for items in lists:
        for item in items:
            name = type_name(item)
            if not found and item is None:
                raise StrategicMergeError(CRASHED)
            if not found and isinstance(item, list):
                raise StrategicMergeError("lists of lists are not supported", code=422)
            if found and name != found:
                raise StrategicMergeError(f"list element types are not identical: {_shown(list(lists))}")
            found = name
    if not found:
        raise StrategicMergeError("no elements in any of the given slices")
    return found


def _shown(value: Any) -> str:
    """A value as Go prints it; ``...`` if that would be a message of megabytes."""
    left = _SHOWN_MAX
    rest: list[Any] = [value]
    while rest and left > 0:
        each = rest.pop()
        if isinstance(each, (dict, list)):
            inner = cast("Tree", each).values() if isinstance(each, dict) else cast("list[Any]", each)
            left -= len(inner)
            rest.extend(inner)
    return printed_value(value) if left > 0 else "..."


def _bad_type(expected: str, actual: Any) -> StrategicMergeError:
    found = "%!s(<nil>)" if actual is None else type_name(actual)
    return StrategicMergeError(f"expected a {expected}, but received a {found}")


def _no_key(item: Tree, merge_key: str) -> StrategicMergeError:
    return StrategicMergeError(f"map: {_shown(item)} does not contain declared merge key: {merge_key}")
