"""Regular expressions as programs of a non-deterministic machine.

Guarantees
- A program has one instruction for each character, position or branch of the expression, with counted repetitions
  expanded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator
from typing import Final

from steersman.golang.regexp.character_ranges import Ranges
from steersman.golang.regexp.nodes import Characters, Choice, Node, Place, Repetition, Sequence, Where

# What precedes or follows a position, as bits.
EDGE: Final = 1
NEWLINE: Final = 2
WORD: Final = 4
OTHER: Final = 8

#: For each kind of position: what may precede it, and what may follow it. Word boundaries depend on both.
_PLACES: Final[dict[Where, tuple[int, int]]] = {
    "text begin": (EDGE, 15),
    "text end": (15, EDGE),
    "line begin": (EDGE | NEWLINE, 15),
    "line end": (15, EDGE | NEWLINE),
}
_WORD_CHARACTERS: Final = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


def kind_of(character: str) -> int:
    """The class of a character, as adjacent positions see it."""
    return WORD if character in _WORD_CHARACTERS else NEWLINE if character == "\n" else OTHER


class Program:
    """Numbered instructions; 0 is the end of a match.

    An instruction has one of three forms: it consumes a character of a set and continues at `follows`, it branches to
    the instructions of `branches` (the first is preferred), or it tests a position and continues at `follows`.
    """

    def __init__(self, root: Node) -> None:
        #: The set number of an instruction that consumes a character; -1 for others.
        self.sets: list[int] = [-1]
        self.follows: list[int] = [0]
        self.branches: list[tuple[int, int] | None] = [None]
        self.places: list[Where | None] = [None]
        self._numbers: dict[Ranges, int] = {}
        self.start = _run(self._emit(root, 0))
        used = {place for place in self.places if place is not None}
        #: Whether a match can only begin at the start of the text.
        self.is_anchored = self.places[self.start] == "text begin"
        #: Whether positions other than the start and the end of the text matter.
        self.looks_around = not used <= {"text begin", "text end"}
        self._members = list(self._numbers)
        self._bounds = sorted(
            {0, *(edge for ranges in self._members for low, high in ranges for edge in (low, high + 1))}
        )
        self._hits: dict[int, frozenset[int]] = {}

    @property
    def size(self) -> int:
        """The number of instructions plus the ranges in their sets."""
        return len(self.sets) + len(self._bounds)

    def interval(self, code: int) -> int:
        """The number of a character's interval. No set distinguishes characters of one interval."""
        return bisect_right(self._bounds, code)

    def sets_with(self, interval: int, code: int) -> frozenset[int]:
        """The numbers of the sets that contain this interval."""
        hits = self._hits.get(interval)
        if hits is None:
            hits = frozenset(number for number, ranges in enumerate(self._members) if _holds(ranges, code))
            self._hits[interval] = hits
        return hits

    def passes(self, where: Where, before: int, behind: int) -> bool:
        """Whether a position is of this kind, given what precedes and follows it."""
        if where == "word boundary":
            return (before == WORD) != (behind == WORD)
        if where == "no word boundary":
            return (before == WORD) == (behind == WORD)
        allowed_before, allowed_behind = _PLACES[where]
        return bool(before & allowed_before and behind & allowed_behind)

    def _add(self, follows: int, *, number: int = -1, place: Where | None = None) -> int:
        self.sets.append(number)
        self.follows.append(follows)
        self.branches.append(None)
        self.places.append(place)
        return len(self.sets) - 1

    def _branch(self, preferred: int, other: int) -> int:
        made = self._add(0)
        self.branches[made] = (preferred, other)
        return made

    def _emit(self, node: Node, follows: int) -> Generator[_Emission, int, int]:
        """Add the instructions of a node in front of others. Returns the number of the first."""
        match node:
            case Characters():
                return self._add(follows, number=self._numbers.setdefault(node.ranges, len(self._numbers)))
            case Place():
                return self._add(follows, place=node.where)
            case Sequence():
                for part in reversed(node.parts):
                    follows = yield self._emit(part, follows)
                return follows
            case Choice():
                entries: list[int] = []
                for part in node.parts:
                    entries.append((yield self._emit(part, follows)))  # noqa: PERF401 - a generator cannot yield inside
                entry = entries.pop()
                for preferred in reversed(entries):
                    entry = self._branch(preferred, entry)
                return entry
            case Repetition():
                return (yield self._emit_repetition(node, follows))

    def _emit_repetition(self, node: Repetition, follows: int) -> Generator[_Emission, int, int]:
        part, greedy, least = node.part, node.greedy, node.least
        entry = follows
        if node.most is None:
            # The last required copy is the one that repeats. As in Go, a part that may be empty repeats as "once or
            # more, or not at all", so that an empty match of it gets the right preference.
            loop = self._branch(0, 0)
            again = yield self._emit(part, loop)
            self.branches[loop] = (again, follows) if greedy else (follows, again)
            if least == 0:
                optional = _is_nullable(part)
                entry = self._optional(again, follows, greedy=greedy) if optional else loop
            else:
                entry, least = again, least - 1
        else:
            for _ in range(node.most - least):
                once = yield self._emit(part, entry)
                entry = self._optional(once, follows, greedy=greedy)
        for _ in range(least):
            entry = yield self._emit(part, entry)
        return entry

    def _optional(self, once: int, otherwise: int, *, greedy: bool) -> int:
        return self._branch(once, otherwise) if greedy else self._branch(otherwise, once)


_Emission = Generator["_Emission", int, int]


def _run(first: _Emission) -> int:
    """Run mutually recursive generators without Python recursion: expressions nest deeper than the call stack allows."""
    waiting, result = [first], None
    while True:
        try:
            asked = waiting[-1].send(result) if result is not None else next(waiting[-1])
        except StopIteration as ended:
            result = int(ended.value)
            waiting.pop()
            if not waiting:
                return result
        else:
            waiting.append(asked)
            result = None


def _is_nullable(root: Node) -> bool:
    """Whether a part can match the empty string."""
    pending: list[tuple[Node, bool]] = [(root, False)]
    results: list[bool] = []
    while pending:
        node, ready = pending.pop()
        match node:
            case Characters():
                results.append(False)
            case Place():
                results.append(True)
            case Repetition() if node.least == 0:
                results.append(True)
            case Repetition():
                pending.append((node.part, False))
            case Sequence() | Choice() if not ready:
                pending.append((node, True))
                pending.extend((part, False) for part in node.parts)
            case Sequence() | Choice():
                count = len(node.parts)
                found = results[len(results) - count :]
                del results[len(results) - count :]
                results.append(all(found) if isinstance(node, Sequence) else any(found))
    return results[0]


def _holds(ranges: Ranges, code: int) -> bool:
    at = bisect_right(ranges, (code, 0x110000)) - 1
    return at >= 0 and ranges[at][0] <= code <= ranges[at][1]
