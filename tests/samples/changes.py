"""The same change made twice: to a typed object, as a program would, and to the JSON tree it was read from, by hand.

If the tree that a server holds after the program's update is not the tree changed by hand, a field was lost or changed.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import Any

import msgspec

from samples.random_values import Tree, text, word
from steersman.objects import Struct, replace
from steersman.objects.hints import ListShape, field_shapes, wire_names

Step = str | int
Made = Callable[[Random], Any]


@dataclass
class Set:
    """Sets a scalar; ``*`` in the path is any item of a list. ``typed`` makes of the JSON value what the type holds."""

    path: str
    value: Made
    typed: Callable[[Any], Any] = lambda value: value
    #: It is a key of its list: a new item with a new key would be another item, not this one changed.
    is_key: bool = False


@dataclass
class Items:
    """Rearranges a list, or replaces its items by new structs that say the same; ``key`` makes a copied item unique."""

    path: str
    key: str = ""
    fresh: Made = word
    ways: tuple[str, ...] = ("reverse", "shuffle", "remove", "insert", "anew")
    #: Servers drop empty lists by themselves.
    least: int = 1


@dataclass
class Anew:
    """Replaces a part by a new struct, made by the program from what its types know, that says the same."""

    path: str


Change = Set | Items | Anew


def python_name(struct: Struct, wire: str) -> str | None:
    """The field of a struct that has this wire name; None if its type does not know it."""
    return next((name for name, other in wire_names(type(struct)).items() if other == wire), None)


def child(value: Any, step: Step) -> Any:
    """What lies under a step, in structs, maps and lists alike; None if nothing does."""
    if isinstance(value, Struct):
        name = python_name(value, str(step))
        found = getattr(value, name) if name else None
        return None if found is msgspec.UNSET else found
    if isinstance(value, dict):
        return value.get(step)
    return value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None


def put(value: Any, step: Step, new: Any) -> None:
    """Set what lies under a step."""
    if isinstance(value, Struct):
        setattr(value, python_name(value, str(step)) or "", new)
    else:
        value[step] = new


def follow(rng: Random, tree: Any, path: str) -> list[Step] | None:
    """A path with a random item for every ``*``; None if the tree has no such place."""
    steps: list[Step] = []
    for part in path.split("."):
        if part == "*":
            if not isinstance(tree, list) or not tree:
                return None
            steps.append(rng.randrange(len(tree)))
        else:
            steps.append(part)
        tree = child(tree, steps[-1])
    return steps


def within(value: Any, steps: list[Step]) -> Any:
    for step in steps:
        value = child(value, step)
    return value


def made_anew(value: Any) -> Any:
    """A copy that a program made itself, of what its types know: it remembers nothing of where it was read."""
    if isinstance(value, Struct):
        fields = {name: made_anew(getattr(value, name)) for name in wire_names(type(value))}
        return type(value)(**fields)
    if isinstance(value, dict):
        return {name: made_anew(inner) for name, inner in value.items()}
    return [made_anew(inner) for inner in value] if isinstance(value, list) else value


def change_some(rng: Random, obj: Any, tree: Tree, choices: list[Change], most: int = 5) -> list[Change]:
    """Make some changes to both; of those that move or rebuild things one at most, so that none hides another."""
    made: list[Change] = []
    moved = False
    for choice in rng.sample(choices, min(len(choices), rng.randint(0, most))):
        moves = not isinstance(choice, Set) or choice.is_key
        if not (moves and moved) and change(rng, obj, tree, choice):
            made.append(choice)
            moved = moved or moves
    if not made or rng.random() < 0.5:
        relabel(rng, obj, tree)
    return made


def change(rng: Random, obj: Any, tree: Tree, choice: Change) -> bool:
    """Make a change to both; False if the type does not know the place, or the object has none such."""
    steps = follow(rng, tree, choice.path)
    if not steps:
        return False
    *above, last = steps
    parent, place = within(obj, above), within(tree, above)
    if parent is None or place is None or (isinstance(parent, Struct) and python_name(parent, str(last)) is None):
        return False
    if isinstance(choice, Set):
        value = choice.value(rng)
        put(parent, last, choice.typed(value))
        put(place, last, value)
        return True
    if isinstance(choice, Anew):
        put(parent, last, made_anew(child(parent, last)))
        return True
    items, trees = child(parent, last), child(place, last)
    return bool(items) and _rearrange(rng, items, trees, choice, keyed=_has_keys(parent, last))


def _has_keys(parent: Any, step: Step) -> bool:
    """Whether the type knows what tells the items of a list apart."""
    shape = field_shapes(type(parent)).get(str(step)) if isinstance(parent, Struct) else None
    return isinstance(shape, ListShape) and bool(shape.keys)


def _rearrange(rng: Random, items: list[Any], trees: list[Any], choice: Items, *, keyed: bool) -> bool:
    index = rng.randrange(len(items))
    match rng.choice(choice.ways):
        case "reverse":
            items.reverse()
            trees.reverse()
        case "shuffle":
            order = rng.sample(range(len(items)), len(items))
            items[:], trees[:] = [items[n] for n in order], [trees[n] for n in order]
        case "remove" if len(items) > choice.least:
            del items[index], trees[index]
        case "insert":
            return _insert(rng, items, trees, choice, index)
        case "anew":
            # Without keys new items differ by their places alone.
            order = rng.sample(range(len(items)), len(items)) if keyed else range(len(items))
            items[:], trees[:] = [made_anew(items[n]) for n in order], [trees[n] for n in order]
        case _:
            return False
    return True


def _insert(rng: Random, items: list[Any], trees: list[Any], choice: Items, index: int) -> bool:
    """Put a changed copy of an item somewhere."""
    new, new_tree = copy.deepcopy(items[index]), copy.deepcopy(trees[index])
    if choice.key:
        name = python_name(new, choice.key) if isinstance(new, Struct) else None
        if name is None:
            return False
        value = choice.fresh(rng)
        new, new_tree[choice.key] = replace(new, **{name: value}), value
    at = rng.randint(0, len(items))
    items.insert(at, new)
    trees.insert(at, new_tree)
    return True


def relabel(rng: Random, obj: Any, tree: Tree) -> None:
    """Add, replace or remove a label or an annotation."""
    name = rng.choice(["labels", "annotations"])
    held: dict[str, str] = dict(getattr(obj.metadata, name) or {})
    ours = sorted(
        key for key in held if key.startswith("example.com/")
    )  # some of the others mean something to a server
    if ours and rng.random() < 0.4:
        del held[rng.choice(ours)]
    held[rng.choice([f"example.com/{word(rng)}", *ours])] = word(rng) if name == "labels" else text(rng)
    setattr(obj.metadata, name, held)
    tree["metadata"][name] = held


def duplicate(rng: Random, obj: Any) -> Any:
    """The object, passed through one of the ways in which programs copy objects."""
    ways: list[Callable[[Any], Any]] = [
        lambda obj: obj,
        copy.copy,
        copy.deepcopy,
        lambda obj: pickle.loads(pickle.dumps(obj)),
        replace,
        lambda obj: replace(obj, metadata=copy.deepcopy(obj.metadata)),
        lambda obj: replace(obj, **{name: copy.copy(value) for name in _parts(obj) if (value := getattr(obj, name))}),
    ]
    return rng.choice(ways)(obj)


def _parts(obj: Struct) -> list[str]:
    return [name for name in wire_names(type(obj)) if isinstance(getattr(obj, name), (Struct, list, dict))]
