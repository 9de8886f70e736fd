"""JSON trees of planned objects: reading, merging and counting their fields. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

Tree: TypeAlias = dict[str, Any]

#: Fields that name a list item, most likely first.
_NAMING = ("name", "type", "key", "mountPath", "containerPort", "port", "ip", "devicePath", "topologyKey", "id")


def part(tree: Tree | None, name: str) -> Tree:
    """A nested object of an object; empty if it is absent."""
    return cast("Tree", (tree or {}).get(name) or {})


def naming_field(*lists: list[Any]) -> str | None:
    """The field that identifies the items of all lists; None if there is none."""
    items = [item for each in lists for item in each]
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    for name in _NAMING:
        values = [[item.get(name) for item in each] for each in lists]
        if all(isinstance(value, str | int) for each in values for value in each) and all(
            len(set(each)) == len(each) for each in values
        ):
            return name
    return None


def merged(base: Any, planned: Any, result: Any) -> Any:
    """``planned`` with the changes from ``base`` to ``result``."""
    if result == base:
        return planned
    if base is None:
        base = cast("Any", {} if isinstance(result, dict) else [])
    if isinstance(base, dict) and isinstance(planned, dict) and isinstance(result, dict):
        return _merged_fields(cast("Tree", base), cast("Tree", planned), cast("Tree", result))
    if isinstance(base, list) and isinstance(planned, list) and isinstance(result, list):
        lists = cast("tuple[list[Any], list[Any], list[Any]]", (base, planned, result))
        naming = naming_field(*lists)
        if naming is not None:
            named = [{item[naming]: item for item in items} for items in lists]
            return list(_merged_fields(*named).values())
    return cast("Any", result)


def _merged_fields(base: Tree, planned: Tree, result: Tree) -> Tree:
    found: Tree = {}
    for name in dict.fromkeys((*planned, *result)):
        if name not in result and name in base:
            continue  # removed
        if name not in result:
            found[name] = planned[name]
        elif name not in planned:
            if name not in base or base[name] != result[name]:
                found[name] = result[name]
        else:
            found[name] = merged(base.get(name), planned[name], result[name])
    return found


def as_sent(sent: Any, answer: Any) -> Any:
    """The part of the server's response that was sent, without defaults added by the server."""
    if isinstance(sent, dict) and isinstance(answer, dict):
        given, there = cast("Tree", sent), cast("Tree", answer)
        return {name: as_sent(given[name], there[name]) for name in given if name in there}
    if isinstance(sent, list) and isinstance(answer, list):
        items, held = cast("Sequence[Any]", sent), cast("Sequence[Any]", answer)
        if len(items) == len(held):
            return [as_sent(one, other) for one, other in zip(items, held, strict=True)]
    return cast("Any", answer)


def count_fields(tree: Any) -> int:
    """How many values a tree contains."""
    match tree:
        case dict() if tree:
            return sum(map(count_fields, cast("Tree", tree).values()))
        case list() if tree:
            return sum(map(count_fields, cast("list[Any]", tree)))
        case _:
            return 1
