"""Choices by chance, and the operations of JSON patches."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from typing import Any, TypeVar

Tree = dict[str, Any]
#: How often a body or a change has something that is refused, or read in an unusual way.
_ODD = 0.05

T = TypeVar("T")


def pick(chance: Random, usual: Sequence[T], odd: Sequence[T] = ()) -> T:
    """One of the usual values, now and then an odd one."""
    return chance.choice(odd if odd and chance.random() < _ODD else usual)


def maybe(chance: Random, share: float, tree: Tree) -> Tree:
    """A tree, or nothing."""
    return tree if chance.random() < share else {}


def add(path: str, value: Any) -> Tree:
    """An operation of a JSON patch."""
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> Tree:
    """Another."""
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> Tree:
    """Another."""
    return {"op": "remove", "path": path}


def placed(tree: Any, place: str) -> Any:
    """A body with the namespace that it is sent to in place of ``{ns}``."""
    if isinstance(tree, dict):
        return {key: placed(value, place) for key, value in tree.items()}
    if isinstance(tree, list):
        return [placed(value, place) for value in tree]
    return tree.replace("{ns}", f"{{{place}}}") if isinstance(tree, str) else tree


class Usual(Random):
    """No chance at all: what is usual comes first."""

    def random(self) -> float:
        return 0.999

    def choice(self, seq: Any) -> Any:
        return seq[0]

    def sample(self, population: Any, k: int, **_: Any) -> Any:
        return list(population)[:k]

    def randrange(self, *_: Any) -> int:
        return 0
