"""States of the store, made comparable: what differs from run to run by nature is taken out.

Guarantee: everything that is taken out is in this module, with its reason.

- Uids, resource versions, generations and managed fields: the server counts them anew in each run. A uid that refers to an
  object becomes the object's name.
- Times: a run with faults takes longer.
- The annotation with the hash of an intent: a child has it once an earlier one showed that the server normalizes the kind.
- Leases, Events, and the allocations of addresses: they record what happened, not what is wanted.
- The random part of a generated name: objects with a prefix are numbered in the order of their contents.
- Values that differ between two runs without faults (`unstable_paths`): such as a password that the operator generates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec

from steersman.controller import INTENT_ANNOTATION
from steersman.objects.secret_values import is_secret_name
from steersman.simulation.runs.meddler import TOUCHED
from steersman.simulation.runs.recorded_storage import RECORDS

#: Objects by their key in the store, normalized.
State: TypeAlias = dict[str, Any]
#: The key of an object, and the path of a value in it.
Path: TypeAlias = tuple[str, ...]

#: Counted or set anew in each run.
METADATA = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
OBSERVED = frozenset({"observedGeneration", "resourceVersion"})
#: Annotations of the simulation itself, and of Steersman.
_BOOKKEEPING = frozenset({TOUCHED, INTENT_ANNOTATION})
_UID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: What stands for a time in a comparable state.
TIME = "TIME"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def normalized(contents: Mapping[str, bytes], known: AbstractSet[str] = frozenset()) -> State:
    """The comparable state of a store's contents, without those of some keys, which are read only if others refer to them."""
    objects = _objects({key: value for key, value in contents.items() if key not in known} if known else contents)
    names = _names(objects)
    uids = {found.uid: names[key] for key, found in objects.items() if found.uid}
    if known and not uids.keys() >= {uid for found in objects.values() for uid in found.refers}:
        uids |= {found.uid: key for key, found in _objects({key: contents[key] for key in known}).items() if found.uid}
    return dict(
        sorted(
            (names[key], _clean(found.tree, uids) if found.refers else found.cleaned) for key, found in objects.items()
        )
    )


class _Read(NamedTuple):
    """An object, read once: many are the same in every state of a run."""

    tree: dict[str, Any]
    #: Without what is counted or set anew in each run; uids stay.
    cleaned: dict[str, Any]
    uid: str
    #: The uids in it, by which it may refer to other objects.
    refers: tuple[str, ...]


@lru_cache(maxsize=4096)
def _read(value: bytes) -> _Read | None:
    tree = msgspec.json.decode(value)
    if not isinstance(tree, dict):
        return None
    known = cast("dict[str, Any]", tree)
    cleaned = _clean(known, {})
    refers = tuple(_UID.findall(msgspec.json.encode(cleaned).decode()))
    return _Read(known, cleaned, known.get("metadata", {}).get("uid") or "", refers)


def _objects(contents: Mapping[str, bytes]) -> dict[str, _Read]:
    """The objects of a store that are compared."""
    return {
        key: found
        for key, value in contents.items()
        if not key.startswith(RECORDS) and (found := _read(value)) is not None
    }


def _names(objects: Mapping[str, _Read]) -> dict[str, str]:
    """The keys, with numbers in place of generated suffixes."""
    names = {key: key for key in objects}
    generated: dict[str, list[str]] = {}
    for key, found in objects.items():
        prefix = found.cleaned["metadata"].get("generateName")
        if prefix and key.rpartition("/")[2].startswith(prefix):
            generated.setdefault(f"{key.rpartition('/')[0]}/{prefix}", []).append(key)
    for prefix, keys in generated.items():
        ordered = sorted(keys, key=lambda key: _contents(objects[key].cleaned))
        names |= {key: f"{prefix}*{number}" for number, key in enumerate(ordered, start=1)}
    return names


def _contents(cleaned: dict[str, Any]) -> bytes:
    """What orders objects with generated names: first their metadata, since data may be random."""
    return msgspec.json.encode([cleaned["metadata"], cleaned], order="sorted")


def _clean(tree: dict[str, Any], uids: Mapping[str, str]) -> dict[str, Any]:
    metadata = {name: value for name, value in tree.get("metadata", {}).items() if name not in METADATA}
    if metadata.get("generateName"):
        metadata.pop("name", None)
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and not _BOOKKEEPING.isdisjoint(cast("dict[str, Any]", annotations)):
        kept = {name: value for name, value in cast("dict[str, Any]", annotations).items() if name not in _BOOKKEEPING}
        metadata = {**metadata, "annotations": kept} if kept else _without(metadata, "annotations")
    return _neutral({**tree, "metadata": metadata}, uids)


def _without(tree: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in tree.items() if key != name}


def _neutral(value: Any, uids: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {name: "*" if name in OBSERVED else _neutral(_in_order(name, each), uids) for name, each in items}
    if isinstance(value, list):
        return [_neutral(each, uids) for each in cast("list[Any]", value)]
    if isinstance(value, str):
        if value in uids:
            return f"uid of {uids[value]}"
        return _TIME.sub(TIME, value)
    return value


def _in_order(name: str, value: Any) -> Any:
    """Conditions by their types: their list is a map, and a fault may decide which is set first."""
    if name != "conditions" or not isinstance(value, list):
        return value
    conditions = cast("list[Any]", value)
    if not all(isinstance(condition, dict) and "type" in condition for condition in conditions):
        return conditions
    return sorted(conditions, key=lambda condition: str(condition["type"]))


# differences


def differences(
    expected: State, state: State, unstable: frozenset[Path] = frozenset(), *, known: AbstractSet[str] = frozenset()
) -> list[str]:
    """How a state differs from what is expected, one line for each value, or object; those with known keys are equal."""
    lines: list[str] = []
    for key in dict.fromkeys((*expected, *state)):
        if key in known:
            continue
        if key not in state:
            lines.append(f"{describe_key(key)} is missing")
        elif key not in expected:
            lines.append(f"{describe_key(key)} is left behind")
        elif expected[key] != state[key]:
            lines += [
                f"{describe_key(key)}: {'.'.join(path)} {_difference(key, path, old, new)}"
                for path, old, new in _leaves(expected[key], state[key], ())
                if not any((key, *path[:length]) in unstable for length in range(len(path) + 1))
            ]
    return lines


def unstable_paths(one: State, other: State) -> frozenset[Path]:
    """The values that differ between two runs without faults."""
    return frozenset((key, *path) for key in one if key in other for path, _, _ in _leaves(one[key], other[key], ()))


def describe_paths(paths: Iterable[Path]) -> list[str]:
    """The values at some paths in words, in order; those of one object together."""
    values: dict[str, list[str]] = {}
    for key, *path in sorted(paths):
        values.setdefault(key, []).append(".".join(path))
    return [f"{describe_key(key)}: {', '.join(names)}" for key, names in values.items()]


_ABSENT = object()


def _leaves(old: Any, new: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        one, other = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        for name in dict.fromkeys((*one, *other)):
            yield from _leaves(one.get(name, _ABSENT), other.get(name, _ABSENT), (*path, name))
    elif isinstance(old, list) and isinstance(new, list) and len(cast("list[Any]", old)) == len(cast("list[Any]", new)):
        for index, (one, other) in enumerate(zip(cast("list[Any]", old), cast("list[Any]", new), strict=True)):
            yield from _leaves(one, other, (*path, str(index)))
    elif old != new:
        yield path, old, new


def _difference(key: str, path: Path, old: Any, new: Any) -> str:
    is_secret = key.startswith("core/secrets/") and path[0] in {"data", "stringData"}
    if is_secret or any(map(is_secret_name, path)):
        return "has another value"
    return f"is {_shown(new)} and should be {_shown(old)}"


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "absent"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."


def value_at(state: State, path: Path) -> Any:
    """The value at a path of a state; None if it is absent."""
    value: Any = state
    for name in path:
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[int(name)]
        else:
            return None
    return value


def leaf_changes(key: str, old: bytes, new: bytes) -> list[Path]:
    """The paths of the values that differ between two contents of an object of the store; none if it is not compared."""
    if key.startswith("external/"):
        return []  # its number follows from the contents
    one, other = _objects({key: old}).get(key), _objects({key: new}).get(key)
    return [] if one is None or other is None else [path for path, _, _ in _leaves(one.tree, other.tree, ())]


def describe_key(key: str) -> str:
    """The object of a key in words: ``core/secrets/shop/home`` is ``secrets shop/home``."""
    _, _, rest = key.partition("/")
    resource, _, name = rest.partition("/")
    return f"{resource} {name}"


def left_behind(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> dict[str, str]:
    """The objects that a store has and had not earlier: their keys in the store, and comparable ones."""
    names = _names(_objects({key: value for key, value in after.items() if key not in before}))
    return dict(sorted(names.items()))
