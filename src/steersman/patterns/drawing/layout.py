"""Positions of boxes and arrows: rows from top to bottom, the usual path in the first column, branches beside it. Pure.

Guarantees
- No two boxes overlap, and no arrow crosses a box: arrows that cannot go straight run between the columns.
- The usual path, state after state by ``Next``, is one straight line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

Point: TypeAlias = tuple[float, float]
Anchor: TypeAlias = Literal["start", "end"]

#: The distance between two rows; smaller if no arrow has a label.
GAP, UNLABELED_GAP = 46.0, 32.0
_CHANNEL = 52.0
_TRACK = 14.0
_LABEL = 12.0


class Size(msgspec.Struct, frozen=True):
    """The size of a box."""

    width: float
    height: float


class Edge(msgspec.Struct, frozen=True):
    """An arrow from one box to another below it."""

    source: str
    target: str
    label: str


class Placed(msgspec.Struct, frozen=True):
    """A box with its position."""

    x: float
    y: float
    width: float
    height: float

    @property
    def center(self) -> float:
        """Its horizontal center."""
        return self.x + self.width / 2

    @property
    def middle(self) -> float:
        """Its vertical center."""
        return self.y + self.height / 2

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height


class Route(msgspec.Struct, frozen=True):
    """An arrow with its path and the position of its label."""

    edge: Edge
    points: tuple[Point, ...]
    label_at: Point
    anchor: Anchor


class Layout(msgspec.Struct, frozen=True):
    """A whole picture, from (0, 0)."""

    boxes: Mapping[str, Placed]
    routes: tuple[Route, ...]
    width: float
    height: float


def arrange(sizes: Mapping[str, Size], edges: Sequence[Edge], chains: Iterable[Sequence[str]]) -> Layout:
    """Lay out boxes.

    ``chains`` are sequences of boxes to place below each other, the usual path first. Edges lead down: the graph has no cycles.
    """
    rows = _rows(sizes, edges)
    columns = _columns(chains, rows)
    return _Grid(sizes, edges, rows, columns).layout()


def _rows(boxes: Iterable[str], edges: Sequence[Edge]) -> dict[str, int]:
    """The row of each box: the length of the longest path to it."""
    rows = dict.fromkeys(boxes, 0)
    for _ in rows:
        for edge in edges:
            rows[edge.target] = max(rows[edge.target], rows[edge.source] + 1)
    return rows


def _columns(chains: Iterable[Sequence[str]], rows: Mapping[str, int]) -> dict[str, int]:
    """The first column where a chain overlaps no other; the usual path has the first column to itself."""
    columns: dict[str, int] = {}
    taken: list[list[tuple[int, int]]] = []
    for number, chain in enumerate(chains):
        first, last = min(rows[each] for each in chain), max(rows[each] for each in chain)
        place = min(number, 1)
        while place < len(taken) and any(first <= end and begin <= last for begin, end in taken[place]):
            place += 1
        while place >= len(taken):
            taken.append([])
        taken[place].append((first, last))
        columns.update(dict.fromkeys(chain, place))
    return columns


def _meet(spans: Iterable[tuple[int, int]], row: int, below: int) -> bool:
    return any(row < end and begin < below for begin, end in spans)


class _Grid:
    """Boxes in cells, and the arrows between them."""

    def __init__(
        self, sizes: Mapping[str, Size], edges: Sequence[Edge], rows: Mapping[str, int], columns: Mapping[str, int]
    ) -> None:
        self.sizes, self.edges, self.rows, self.columns = sizes, edges, rows, columns
        self.cells = {(rows[each], columns[each]) for each in sizes}
        self.depth, self.breadth = max(rows.values()) + 1, max(columns.values()) + 1
        #: The track of each arrow that runs between the columns: (channel, number).
        self.tracks = self._tracks()
        self.boxes: dict[str, Placed] = {}

    def layout(self) -> Layout:
        """Place all boxes and arrows."""
        width = self._place()
        routes = tuple(self._route(number, edge) for number, edge in enumerate(self.edges))
        height = max(box.bottom for box in self.boxes.values())
        return Layout(self.boxes, routes, width, height)

    # shapes of arrows

    def _cell(self, box: str) -> tuple[int, int]:
        return self.rows[box], self.columns[box]

    def _free_down(self, column: int, rows: Iterable[int]) -> bool:
        return not any((row, column) in self.cells for row in rows)

    def _free_across(self, row: int, columns: Iterable[int]) -> bool:
        return not any((row, column) in self.cells for column in columns)

    def _shape(self, edge: Edge) -> Literal["straight", "out", "back", "around"]:
        (row, column), (below, beside) = self._cell(edge.source), self._cell(edge.target)
        if column == beside:
            return "straight" if self._free_down(column, range(row + 1, below)) else "around"
        if column < beside:
            clear = self._free_across(row, range(column + 1, beside + 1))
            return "out" if clear and self._free_down(beside, range(row, below)) else "around"
        clear = self._free_across(below, range(beside + 1, column + 1))
        return "back" if clear and self._free_down(column, range(row + 1, below + 1)) else "around"

    def _tracks(self) -> dict[int, tuple[int, int]]:
        """Assign each arrow that goes around a track in the channel left or right of its column."""
        tracks: dict[int, tuple[int, int]] = {}
        taken: dict[tuple[int, int], list[tuple[int, int]]] = {}
        # Arrows that start further down run closer to the boxes, so that none crosses another at its start.
        downwards = sorted(
            enumerate(self.edges), key=lambda each: (-self.rows[each[1].source], self.rows[each[1].target])
        )
        for number, edge in downwards:
            if self._shape(edge) != "around":
                continue
            (row, column), (below, beside) = self._cell(edge.source), self._cell(edge.target)
            leftwards = beside < column or (column == 0 and beside == 0)
            channel = column if leftwards else column + 1
            # Outside all arrows that run beside it.
            beside_it = [t for (c, t), spans in taken.items() if c == channel and _meet(spans, row, below)]
            track = max(beside_it, default=-1) + 1
            taken.setdefault((channel, track), []).append((row, below))
            tracks[number] = (channel, track)
        return tracks

    # positions

    def _place(self) -> float:
        """Place the boxes; returns the total width."""
        lanes = [
            1 + max((t for c, t in self.tracks.values() if c == channel), default=-1)
            for channel in range(self.breadth + 1)
        ]
        widths = [
            max(self.sizes[each].width for each in self.sizes if self.columns[each] == c) for c in range(self.breadth)
        ]
        lefts: list[float] = []
        x = self._side(lanes[0])
        for column, width in enumerate(widths):
            lefts.append(x)
            x += width
            x += (_CHANNEL + _TRACK * lanes[column + 1]) if column + 1 < self.breadth else self._side(lanes[column + 1])
        entering, labeled = [0] * self.depth, [False] * self.depth
        for number, edge in enumerate(self.edges):
            entering[self.rows[edge.target]] += number in self.tracks
            labeled[self.rows[edge.target]] |= bool(edge.label)
        heights = [
            max(self.sizes[each].height for each in self.sizes if self.rows[each] == row) for row in range(self.depth)
        ]
        y, tops = 0.0, list[float]()
        for row, height in enumerate(heights):
            gap = GAP if labeled[row] else UNLABELED_GAP
            y += (gap + _TRACK * entering[row]) if row else 0.0
            tops.append(y)
            y += height
        for each, size in self.sizes.items():
            row, column = self._cell(each)
            left = lefts[column] + (widths[column] - size.width) / 2
            self.boxes[each] = Placed(left, tops[row], size.width, size.height)
        return x

    def _side(self, lanes: int) -> float:
        return _CHANNEL - _TRACK + _TRACK * lanes if lanes else 0.0

    def _route(self, number: int, edge: Edge) -> Route:
        source, target = self.boxes[edge.source], self.boxes[edge.target]
        match self._shape(edge):
            case "straight":
                points: tuple[Point, ...] = ((source.center, source.bottom), (target.center, target.y))
                return Route(edge, points, (source.center + 9, (source.bottom + target.y) / 2 + 4), "start")
            case "out":
                points = ((source.right, source.middle), (target.center, source.middle), (target.center, target.y))
                return Route(edge, points, (source.right + _LABEL, source.middle - 7), "start")
            case "back":
                points = ((source.center, source.bottom), (source.center, target.middle), (target.right, target.middle))
                return Route(edge, points, (source.center + 9, source.bottom + 22), "start")
            case "around":
                return self._around(number, edge)

    def _around(self, number: int, edge: Edge) -> Route:
        """Route an arrow out to the side, down between the columns, and in from above."""
        source, target = self.boxes[edge.source], self.boxes[edge.target]
        channel, track = self.tracks[number]
        leftwards = channel == self.columns[edge.source]
        away = _CHANNEL - _TRACK - 10 + _TRACK * track
        x = source.x - away if leftwards else source.right + away
        begin = source.x if leftwards else source.right
        same = [each for each in self.tracks if self.edges[each].target == edge.target]
        place = same.index(number)
        y = target.y - 20 - _TRACK * place
        # Arrows from the side end beside the straight one and its label.
        beside = min(34 + 16 * place, target.width / 2 - 14)
        port = target.center - beside if x < target.center else target.center + beside
        level = source.middle + 14 * place
        points = ((begin, level), (x, level), (x, y), (port, y), (port, target.y))
        label_at = (begin - 6, level - 6) if leftwards else (begin + 6, level - 6)
        return Route(edge, points, label_at, "end" if leftwards else "start")
