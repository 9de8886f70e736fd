"""A regular expression as a tree. Flags and classes are resolved: only characters and positions are left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steersman.golang.regexp.character_ranges import Ranges

Where = Literal["text begin", "text end", "line begin", "line end", "word boundary", "no word boundary"]


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    ranges: Ranges
    size: int = 1


@dataclass(frozen=True, slots=True)
class Place:
    """A position between characters."""

    where: Where
    size: int = 1


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after the other; an empty sequence matches nothing."""

    parts: tuple[Node, ...]
    #: The approximate number of instructions of its program.
    size: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several parts; the first that matches is preferred."""

    parts: tuple[Node, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Repetition:
    """A part repeated; ``most`` is None if there is no limit."""

    part: Node
    least: int
    most: int | None
    greedy: bool
    size: int


Node = Characters | Place | Sequence | Choice | Repetition
EMPTY = Sequence((), 1)


def sequence(parts: list[Node]) -> Node:
    """A node for the parts in a row."""
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts), sum(part.size for part in parts)) if parts else EMPTY


def choice(parts: list[Node]) -> Node:
    """A node for one of the parts."""
    return parts[0] if len(parts) == 1 else Choice(tuple(parts), sum(part.size + 1 for part in parts))


def repetition(part: Node, least: int, most: int | None, *, greedy: bool) -> Node:
    """A node for a repeated part."""
    if most == 0:
        return EMPTY
    copies = max(least, 1) if most is None else most
    return Repetition(part, least, most, greedy, (part.size + 1) * copies + 1)
