"""Linear-time matching of Go's regular expressions.

Guarantees
- `LinearExpression` matches what Go's expression matches, in every text.
- Time is linear in the text for every expression: a deterministic machine is built lazily, as the text needs it.
  Building it is charged to a budget; an existing state costs one step per character.
- Memory is bounded, per expression and in total.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakSet

from steersman.golang.regexp.budget import Budget
from steersman.golang.regexp.nodes import Node
from steersman.golang.regexp.programs import EDGE, OTHER, Program, kind_of

#: Number of characters read between checks whether the rest matters.
_PIECE: Final = 2048
#: The maximum size of all machines together, and of one; each unit takes a few tens of bytes.
_HELD_MAX: Final = 1_000_000
_HELD_BY_ONE_MAX: Final = 200_000


class LinearExpression:
    """A machine that runs a regular expression, given as a tree."""

    def __init__(self, root: Node) -> None:
        self._program = Program(root)
        self._states: dict[tuple[int, frozenset[int]], _State] = {}
        self._first: _State | None = None
        self._held = 0
        self.budget = Budget()
        _machines.add(self)

    @property
    def size(self) -> int:
        """The size of its program."""
        return self._program.size

    def matches(self, text: str, budget: Budget) -> bool:
        """Whether it matches anywhere in a text. Raises `BudgetSpent`."""
        self.budget = budget
        state = self._first
        if state is None:
            state = self._first = self.state(EDGE, frozenset((self._program.start,)))
        if len(text) <= _PIECE:
            for character in text:
                state = state[character]
        else:
            for begin in range(0, len(text), _PIECE):
                for character in text[begin : begin + _PIECE]:
                    state = state[character]
                if state.is_final:
                    break
        return state.matches_at_end()

    def find(self, text: str, budget: Budget, start: int = 0) -> tuple[int, int] | None:
        """The bounds of the first match at or after a position. Among several, Go's preference decides."""
        program = self._program
        found: tuple[int, int] | None = None
        #: Where to continue, and where the match began; the first is preferred.
        threads: list[tuple[int, int]] = []
        before = kind_of(text[start - 1]) if start else EDGE
        for at in range(start, len(text) + 1):
            if found is None:
                threads.append((program.start, at))
            elif not threads:
                break
            behind = kind_of(text[at]) if at < len(text) else EDGE
            taking, ended, visited = _followed(program, threads, before, behind)
            budget.spend(visited + 8)
            if ended is not None:
                found = (ended, at)
            if at == len(text):
                break
            code = ord(text[at])
            sets = program.sets_with(program.interval(code), code)
            threads = [(program.follows[pc], began) for pc, began in taking if program.sets[pc] in sets]
            before = behind
        return found

    def find_all(self, text: str, budget: Budget, most: int = -1) -> list[str]:
        """All matches that do not overlap, at most ``most``; none is empty right after another."""
        found: list[str] = []
        at, end = 0, -1
        while at <= len(text) and (most < 0 or len(found) < most):
            span = self.find(text, budget, at)
            if span is None:
                break
            if span[1] > at or span[0] != end:
                found.append(text[span[0] : span[1]])
            at = span[1] + 1 if span[1] == at else span[1]
            end = span[1]
        return found

    # the machine

    def state(self, before: int, cores: frozenset[int]) -> _State:
        """The state that continues with these instructions, after a character of this class."""
        program = self._program
        kind = before if before == EDGE or program.looks_around else OTHER
        made = self._states.get((kind, cores))
        if made is None:
            made = self._states[kind, cores] = _State(self, kind, cores)
            self.hold(len(cores) + 8)
        return made

    def hold(self, numbers: int) -> None:
        """Count the memory in use. If it exceeds the limit, drop all states."""
        global _held  # noqa: PLW0603 - one bound for all machines
        self._held += numbers
        _held += numbers
        if _held > _HELD_MAX:
            for machine in list(_machines):
                machine.forget()
        elif self._held > _HELD_BY_ONE_MAX:
            self.forget()

    def forget(self) -> None:
        """Drop all states. They are rebuilt when needed."""
        global _held  # noqa: PLW0603
        _held -= self._held
        self._held = 0
        self._first = None
        self._states = {}

    def closure(self, cores: frozenset[int], before: int, behind: int) -> tuple[list[int], bool]:
        """The instructions that consume the next character at a position, and whether a match ends there."""
        program = self._program
        sets, branches, places, follows = program.sets, program.branches, program.places, program.follows
        seen, pending, taking = set(cores), list(cores), list[int]()
        while pending:
            pc = pending.pop()
            if sets[pc] >= 0:
                taking.append(pc)
                continue
            if pc == 0:
                return [], True
            branch, place = branches[pc], places[pc]
            if branch is not None:
                targets = branch
            elif place is None or program.passes(place, before, behind):
                targets = (follows[pc],)
            else:
                continue
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    pending.append(target)
        self.budget.spend(len(seen) + 4)
        return taking, False

    def step(self, state: _State, character: str) -> _State:
        """The state after a character."""
        program, code = self._program, ord(character)
        interval = program.interval(code)
        kind = kind_of(character) if program.looks_around else OTHER
        following = state.by_interval.get((kind, interval))
        if following is None:
            taking, ended = state.closed(kind)
            if ended:
                following = state.by_interval[kind, interval] = _MATCHED
            else:
                hits, sets, follows = program.sets_with(interval, code), program.sets, program.follows
                self.budget.spend(len(taking) + 8)
                cores = {follows[pc] for pc in taking if sets[pc] in hits}
                if not program.is_anchored:
                    cores.add(program.start)
                following = self.state(kind, frozenset(cores)) if cores else _FAILED
                state.by_interval[kind, interval] = following
        # Most texts have few different characters; the others are looked up by interval.
        if code < 256 or len(state) < 1024:
            state[character] = following
            self.hold(1)
        return following


class _State(dict[str, "_State"]):
    """A state of a deterministic machine: the next state by character, built on first use."""

    __slots__ = ("_at_end", "_before", "_closed", "_cores", "_machine", "by_interval")

    def __init__(
        self, machine: LinearExpression | None, before: int, cores: frozenset[int], *, at_end: bool | None = None
    ) -> None:
        super().__init__()
        #: None after a match, and where none is possible: the rest of the text does not matter.
        self._machine = machine
        self._before = before
        self._cores = cores
        self._closed: dict[int, tuple[list[int], bool]] = {}
        self._at_end = at_end
        self.by_interval: dict[tuple[int, int], _State] = {}

    @property
    def is_final(self) -> bool:
        """Whether the rest of the text does not matter."""
        return self._machine is None

    def __missing__(self, character: str) -> _State:
        if self._machine is not None:
            return self._machine.step(self, character)
        if character < "\u0100":
            self[character] = self
        return self

    def closed(self, behind: int) -> tuple[list[int], bool]:
        """The instructions that consume a character of this class, and whether a match ends before it."""
        known = self._closed.get(behind)
        if known is None:
            assert self._machine is not None
            known = self._closed[behind] = self._machine.closure(self._cores, self._before, behind)
            self._machine.hold(len(known[0]))
        return known

    def matches_at_end(self) -> bool:
        """Whether a match ends here if the text ends here."""
        if self._at_end is None:
            assert self._machine is not None
            self._at_end = self._machine.closure(self._cores, self._before, EDGE)[1]
        return self._at_end


_MATCHED: Final = _State(None, OTHER, frozenset(), at_end=True)
_FAILED: Final = _State(None, OTHER, frozenset(), at_end=False)
_machines: WeakSet[LinearExpression] = WeakSet()
_held = 0


def _followed(
    program: Program, threads: list[tuple[int, int]], before: int, behind: int
) -> tuple[list[tuple[int, int]], int | None, int]:
    """The instructions that consume the next character, in order; the start of a match that ends here; and the cost."""
    sets, branches, places, follows = program.sets, program.branches, program.places, program.follows
    seen: set[int] = set()
    taking: list[tuple[int, int]] = []
    for first, began in threads:
        pending = [first]
        while pending:
            pc = pending.pop()
            if pc in seen:
                continue
            seen.add(pc)
            if sets[pc] >= 0:
                taking.append((pc, began))
                continue
            if pc == 0:
                # Less preferred threads no longer matter.
                return taking, began, len(seen)
            branch, place = branches[pc], places[pc]
            if branch is not None:
                pending += (branch[1], branch[0])
            elif place is None or program.passes(place, before, behind):
                pending.append(follows[pc])
    return taking, None, len(seen)
