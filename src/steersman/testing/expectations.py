"""What a test expects of an object, and which fields differ. Pure.

Guarantees: only fields named in the expectation are compared. Every difference names its field and the value found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec

from steersman.objects import Object, Struct, Unstructured, encode_custom, same_json, similar_names, to_json

#: A part of an object as JSON. Maps are compared by the expected keys. Every expected item of a list of maps must be
#: found. None expects the field to be absent; ``...`` expects it to be present with any value.
Expected: TypeAlias = Mapping[str, Any] | Object | Unstructured

ABSENT = object()


class NotAsExpected(AssertionError):
    """An object or a condition did not become, or did not stay, what a test expects."""


class Difference(NamedTuple):
    """One field that differs; `ABSENT` stands for a missing value."""

    field: str
    expected: Any
    found: Any


def expected_tree(expected: Expected) -> dict[str, Any]:
    """The expectation as JSON."""
    if isinstance(expected, Unstructured):
        return expected.tree
    if isinstance(expected, Object):
        return to_json(expected)
    return _plain(expected)


def _plain(value: Any) -> Any:
    """Convert Python values in tests, such as times and quantities, to the server's form."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in cast("list[Any]", value)]
    if isinstance(value, Struct):
        return to_json(value)
    return value if isinstance(value, EllipsisType) else msgspec.to_builtins(value, enc_hook=encode_custom)


def differences(expected: Any, found: Any, field: str = "") -> Iterator[Difference]:
    """Yield where ``found`` differs from ``expected``."""
    if isinstance(expected, EllipsisType):
        if found is ABSENT or found is None:
            yield Difference(field, "anything", ABSENT)
    elif expected is None:
        if found is not ABSENT and found is not None:
            yield Difference(field, ABSENT, found)
    elif isinstance(expected, dict):
        yield from _in_map(cast("dict[str, Any]", expected), found, field)
    elif isinstance(expected, list) and any(isinstance(each, dict) for each in cast("list[Any]", expected)):
        yield from _in_items(cast("list[Any]", expected), found, field)
    elif found is ABSENT and expected == []:
        return
    elif found is ABSENT or not same_json(expected, found):
        yield Difference(field, expected, found)


def _in_map(expected: dict[str, Any], found: Any, field: str) -> Iterator[Difference]:
    there: dict[str, Any] = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if found is not ABSENT and not isinstance(found, dict):
        yield Difference(field, expected, found)
        return
    if not expected and found is ABSENT:
        yield Difference(field, expected, found)
    for name, value in expected.items():
        inner = f"{field}.{name}" if field else name
        if name not in there:
            spelled = _as_written(name)
            inner += f" (written {spelled})" if spelled in there else _meant(name, there)
        yield from differences(value, there.get(name, ABSENT), inner)


def _as_written(name: str) -> str:
    """A Python field name as written in YAML, which expectations use."""
    first, *more = name.split("_")
    return first + "".join(each.capitalize() for each in more)


def _meant(name: str, there: Iterable[str]) -> str:
    """The field that a misspelled one probably stands for, as words after its name. Keys such as page-1 are no fields."""
    near = similar_names(name, there, cutoff=0.85) if name.isidentifier() else []
    return f" (did you mean {near[0]}?)" if near else ""


def _in_items(expected: list[Any], found: Any, field: str) -> Iterator[Difference]:
    """Find every expected item; a missing one is compared with the most similar item."""
    items: list[Any] = cast("list[Any]", found) if isinstance(found, list) else []
    if not items:
        yield Difference(field, expected, found)
        return
    for wanted in expected:
        compared = [list(differences(wanted, item, f"{field}[{index}]")) for index, item in enumerate(items)]
        nearest = min(range(len(items)), key=lambda index: (_other_name(wanted, items[index]), len(compared[index])))
        if not compared[nearest]:
            continue
        if _other_name(wanted, items[nearest]):
            yield Difference(field, wanted, ABSENT)
        else:
            yield from compared[nearest]


def _other_name(wanted: Any, item: Any) -> bool:
    """Whether two items are about different things, by the fields that usually identify items."""
    if not isinstance(wanted, dict) or not isinstance(item, dict):
        return True
    one, other = cast("dict[str, Any]", wanted), cast("dict[str, Any]", item)
    return any(name in one and one[name] != other.get(name) for name in ("name", "type", "kind", "key"))
