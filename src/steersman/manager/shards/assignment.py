"""Which replica has which hashes, as a pure function: an assignment and what was observed go in, the next one comes out.

Guarantees
- Every hash is in exactly one part of an assignment, and a part has at most one owner.
- A part of a living owner changes its owner only after that owner released it, at the generation that asked for it or later.
  A part of an owner whose Lease has expired changes it at once.
- Loads are weights, not widths. Hashes without a weight are divided by width.
- Nothing moves while loads are within `SLACK` of the mean. A replica that joins N equal ones gets at most ``1 + SLACK``
  times its share of 1/(N+1), and nothing else moves. If one leaves, only its own parts move.

No clock is read or compared: who lives is the caller's to say, by its own clock (see `Sightings`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from steersman.wire import HashRange

#: How far a load may be from the mean.
SLACK: Final = 0.1
#: Into how many pieces all hashes are cut where no weight is known.
_PIECES: Final = 64
#: Into about how many pieces a replica cuts its own weight.
_CUTS: Final = 32
_HASHES: Final = 2**64
#: Sums of the same weights in another order, or of another Python, differ by less.
_ROUNDING: Final = 1 + 1e-9
#: What the width of all hashes weighs, as a part of the whole weight, so that hashes without objects are shared too.
_WIDTH: Final = 1e-3


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A range with its owner; ``owner`` is empty while no replica lives."""

    range: HashRange
    owner: str = ""
    #: Who gets the range as soon as the owner has released it; empty if it stays.
    next: str = ""
    #: The generation in which ``next`` was named.
    since: int = 0


class Assignment(msgspec.Struct, frozen=True):
    """All parts, in the order of their hashes."""

    generation: int = 0
    parts: tuple[Part, ...] = (Part(range=HashRange()),)


class Released(msgspec.Struct, frozen=True):
    """A replica has stopped all work in a range, as an assignment of this generation asked."""

    range: HashRange
    generation: int


class Weighed(msgspec.Struct, frozen=True):
    """A range that cannot be cut further, and the weight of its objects."""

    range: HashRange
    weight: float


class Sightings(msgspec.Struct, frozen=True):
    """The Leases of replicas as one coordinator saw them: for each, its version, and since when it has this version."""

    seen: Mapping[str, tuple[str, float]] = {}

    def after(self, versions: Mapping[str, str], owners: Iterable[str], now: float) -> Sightings:
        """What was seen, including the Leases read now. An owner without a Lease counts from the first look on."""
        found = {**dict.fromkeys(filter(None, owners), ""), **versions}
        kept = self.seen
        return Sightings(
            {
                name: kept[name] if name in kept and kept[name][0] == version else (version, now)
                for name, version in found.items()
            }
        )

    def expired(self, name: str, *, lease: float, now: float) -> bool:
        """Whether a replica's term is certainly over: its Lease did not change for the time of a lease."""
        return name in self.seen and now - self.seen[name][1] >= lease


def next_assignment(
    current: Assignment, living: Mapping[str, Sequence[Released]], gone: Iterable[str], weights: Sequence[Weighed]
) -> Assignment:
    """The assignment to write on top of another; the same one if nothing is to change.

    ``living`` are the replicas that take part, with what they have released; ``gone`` are those whose terms are certainly
    over. An owner that is in neither keeps its parts.
    """
    ended = frozenset(gone)
    parts = [_settled(part, living, ended) for part in current.parts]
    generation = current.generation + 1
    if living:
        cells = _cells(parts, weights)
        loads = _loads(cells, living)
        cells = _adopted(cells, loads)
        if not any(cell.part.next for cell in cells):
            cells = _balanced(cells, loads, generation)
        parts = [cell.part for cell in cells]
    merged = _merged(parts)
    return current if merged == _merged(current.parts) else Assignment(generation, merged)


def _settled(part: Part, living: Mapping[str, Sequence[Released]], gone: frozenset[str]) -> Part:
    """A part after a completed or abandoned move, or without its dead owner."""
    if part.next and part.next not in living:
        part = replace(part, next="", since=0)
    if part.owner in gone:
        return Part(range=part.range, owner=part.next)
    released = any(
        each.generation >= part.since and each.range.start <= part.range.start and part.range.end <= each.range.end
        for each in living.get(part.owner, ())
    )
    return Part(range=part.range, owner=part.next) if part.next and released else part


class _Cell(msgspec.Struct, frozen=True):
    part: Part
    weight: float


def _cells(parts: Iterable[Part], weights: Sequence[Weighed]) -> list[_Cell]:
    """The parts, cut where weights were measured."""
    slices = _covering(weights)
    extra = max(1.0, sum(each.weight for each in weights)) * _WIDTH
    found: list[_Cell] = []
    at = 0
    for part in parts:
        while slices[at].range.end <= part.range.start:
            at += 1
        position = at
        while position < len(slices) and slices[position].range.start < part.range.end:
            each = slices[position]
            common = HashRange(max(each.range.start, part.range.start), min(each.range.end, part.range.end))
            weight = each.weight * common.width / each.range.width + extra * common.width / _HASHES
            found.append(_Cell(replace(part, range=common), weight))
            position += 1
    return found


def weighed(ranges: Iterable[HashRange], counts: Mapping[int, float]) -> tuple[Weighed, ...]:
    """The ranges that have weight, cut so that each piece is one hash, or about a part in `_CUTS` of the whole weight."""
    portion = sum(counts.values()) / _CUTS
    found: list[Weighed] = []
    for each in sorted(ranges):
        first, weight = 0, 0.0
        hashes = sorted(hash_ for hash_ in counts if each.contains(hash_))
        for position, hash_ in enumerate(hashes):
            first = hash_ if not weight else first
            weight += counts[hash_]
            following = counts[hashes[position + 1]] if position + 1 < len(hashes) else None
            if following is None or weight + following > portion:
                found.append(Weighed(HashRange(first, hash_ + 1), weight))
                weight = 0.0
    return tuple(found)


def _covering(weights: Sequence[Weighed]) -> list[Weighed]:
    """The measured ranges, and pieces without weight between them."""
    found: list[Weighed] = []
    at = 0
    for each in (*sorted(weights, key=lambda each: each.range), None):
        end = _HASHES if each is None else each.range.start
        while at < end:
            piece = min(end, (at // (_HASHES // _PIECES) + 1) * (_HASHES // _PIECES))
            found.append(Weighed(HashRange(at, piece), 0.0))
            at = piece
        if each is not None and each.range.start >= at:
            found.append(each)
            at = each.range.end
    return found


def _loads(cells: Iterable[_Cell], living: Iterable[str]) -> dict[str, float]:
    """The weight of each living replica, with what it will get."""
    loads = dict.fromkeys(sorted(living), 0.0)
    for cell in cells:
        owner = cell.part.next or cell.part.owner
        if owner in loads:
            loads[owner] += cell.weight
    return loads


def _adopted(cells: list[_Cell], loads: dict[str, float]) -> list[_Cell]:
    """The cells, those without an owner given to the replicas with the least load. Neighbors stay together."""
    mean = sum(cell.weight for cell in cells) / len(loads)
    adopter = min(loads, key=loads.__getitem__)
    found: list[_Cell] = []
    for cell in cells:
        if not cell.part.owner:
            if loads[adopter] + cell.weight > mean * _ROUNDING:
                adopter = min(loads, key=loads.__getitem__)
            loads[adopter] += cell.weight
            cell = _Cell(replace(cell.part, owner=adopter), cell.weight)  # noqa: PLW2901 - the same cell, owned
        found.append(cell)
    return found


def _balanced(cells: list[_Cell], loads: dict[str, float], generation: int) -> list[_Cell]:
    """The cells, some of them on their way from replicas above the mean to those far below it."""
    mean = sum(loads.values()) / len(loads)
    found = list(cells)
    for receiver in sorted(loads, key=loads.__getitem__):
        if loads[receiver] >= mean * (1 - SLACK):
            break
        for donor in sorted(loads, key=loads.__getitem__, reverse=True):
            for index in reversed(range(len(found))):
                cell = found[index]
                if loads[receiver] >= mean * (1 - SLACK / 2) or loads[donor] <= mean:
                    break
                if cell.part.owner != donor or cell.part.next:
                    continue
                if loads[receiver] + cell.weight > mean * (1 + SLACK) or cell.weight > loads[donor] - loads[receiver]:
                    continue
                part = replace(cell.part, next=receiver, since=generation)
                found[index] = _Cell(part, cell.weight)
                loads[donor] -= cell.weight
                loads[receiver] += cell.weight
    return found


def _merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts, neighbors of one fate joined."""
    found: list[Part] = []
    for part in parts:
        if found and (last := found[-1]) == replace(part, range=last.range):
            found[-1] = replace(last, range=HashRange(last.range.start, part.range.end))
        else:
            found.append(part)
    return tuple(found)
