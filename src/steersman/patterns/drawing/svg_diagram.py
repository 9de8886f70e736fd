"""A state machine as a self-contained SVG: states from top to bottom, deletion beside them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from steersman.patterns.drawing.cards import PLAIN, SMALL, STRONG, Card, deletion_card, state_card, width_of_cards
from steersman.patterns.drawing.description import END, START, description, edges_of
from steersman.patterns.drawing.layout import GAP, UNLABELED_GAP, Edge, Layout, Placed, Point, Route, Size, arrange
from steersman.patterns.drawing.overlay import Live, Mood
from steersman.patterns.drawing.style import style
from steersman.patterns.drawing.text import Font, printable, shorten, wrap
from steersman.patterns.machine.graph import SUSPENDED, MachineGraph

_SCOPE: Final = "steersman-machine"
_MARGIN: Final = 28.0
_TITLE: Final = Font(20, bold=True)
_DOT: Final = Size(14, 14)
_LANE_PADDING: Final = 22.0
_LANE_TOP: Final = 40.0
_BANNER_LINES: Final = 3


def svg(graph: MachineGraph, live: Live | None = None) -> str:
    """A picture of a machine; with ``live``, colored by the conditions of an object."""
    return _Picture(graph, live).text()


class _Picture:
    """Everything in a picture, with its position."""

    def __init__(self, graph: MachineGraph, live: Live | None) -> None:
        self.graph, self.live = graph, live
        width = width_of_cards(graph)
        self.cards = {node.name: state_card(graph, node, live, width) for node in graph.states}
        self.end = _pill_size(self._end_words())
        sizes = {START: _DOT, **{name: card.size for name, card in self.cards.items()}, END: self.end}
        self.main = arrange(sizes, edges_of(graph), chains_of(graph))
        self.deletion = deletion_card(graph, live, width)
        lane = self.deletion.size.width + 2 * _LANE_PADDING if self.deletion else 0.0
        inner = self.main.width + (lane + _LANE_PADDING + 10 if lane else 0.0)
        self.width = max(inner, _TITLE.width(graph.name), 320.0) + 2 * _MARGIN
        self.header, below = self._header()
        self.top = below + 24
        lane_height = self._lane_height()
        self.height = self.top + max(self.main.height, lane_height) + _MARGIN
        self.lane_left = self.width - _MARGIN - lane
        # Without a deletion lane, center the states below a long title.
        self.left = _MARGIN if lane else (self.width - self.main.width) / 2

    # the document

    def text(self) -> str:
        """The document."""
        title = f"{self.graph.name}, which reconciles {self.graph.kind}"
        if self.live is not None:
            title = printable(f"{self.graph.kind} {self.live.name} in {self.graph.name}")
        width, height = _n(self.width), _n(self.height)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{_SCOPE}" viewBox="0 0 {width} {height}"',
            f'  width="{width}" height="{height}" role="img" aria-label={quoteattr(title)}>',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(printable(description(self.graph, self.live)))}</desc>",
            f"<style>\n{style(_SCOPE)}</style>",
            f'<rect class="page" x="0.5" y="0.5" width="{_n(self.width - 1)}" height="{_n(self.height - 1)}" rx="12"/>',
            *self.header,
            *self._states(),
            *self._lane(),
            "</svg>\n",
        ]
        return "\n".join(parts)

    # the header

    def _header(self) -> tuple[list[str], float]:
        """The title and the banners of an object, and the y coordinate where they end."""
        inner = self.width - 2 * _MARGIN
        y = _MARGIN + 16
        parts = [_text(_MARGIN, y, shorten(self.graph.name, inner, _TITLE), "title")]
        y += 22
        if self.live is not None:
            name = shorten(f"{self.graph.kind} {self.live.name}", inner, STRONG)
            parts.append(_text(_MARGIN, y, name, "strong"))
            for news in self._news():
                banner, height = _banner(_MARGIN, y + 12, inner, *news)
                parts += banner
                y += 12 + height
            return parts, y
        words = f"reconciles {self.graph.kind}; a state is complete when its children are ready"
        for number, line in enumerate(wrap(words, inner, PLAIN)):
            y += 17 if number else 0
            parts.append(_text(_MARGIN, y, line, "quiet"))
        return parts, y

    def _news(self) -> Iterator[tuple[Mood, str, str]]:
        """The banners about the object as a whole."""
        live = self.live
        if live is None:
            return
        if live.suspended:
            found = live.conditions.get(self.graph.suspended)
            yield "unknown", SUSPENDED, found.message if found is not None else ""
        ready = live.conditions.get(self.graph.ready)
        if ready is None:
            yield "unknown", f"{self.graph.ready}: not reported", "No reconcile of this object has ended yet."
            return
        behind = "" if live.observed else " (before the last change of the object)"
        yield ready.mood, f"{self.graph.ready} {ready.words}{behind}", ready.message

    # states

    def _states(self) -> Iterator[str]:
        live = self.live
        aside = ' class="aside"' if live is not None and (live.deleting or live.suspended) else ""
        yield f'<g transform="translate({_n(self.left)} {_n(self.top)})"{aside}>'
        labels: set[tuple[Point, str]] = set()
        # Draw the path of the last reconcile on top of the others.
        for route in sorted(self.main.routes, key=lambda each: self._look(each.edge) == "passed"):
            yield from _arrow(route.points, self._look(route.edge))
        yield from self._dots(self.main)
        for name, card in self.cards.items():
            yield from _box(card, self.main.boxes[name])
        yield from _pill(self.main.boxes[END], self._end_words(), self._end_mood())
        for route in self.main.routes:
            # Arrows that leave a box together share one label.
            if route.edge.label and (route.label_at, route.edge.label) not in labels:
                labels.add((route.label_at, route.edge.label))
                yield _label(route, self._look(route.edge))
        yield "</g>"

    def _dots(self, layout: Layout) -> Iterator[str]:
        start = layout.boxes[START]
        look = "dot passed" if self.live is not None and self.live.conditions else "dot"
        yield f'<circle class="{look}" cx="{_n(start.center)}" cy="{_n(start.middle)}" r="7"/>'
        yield _text(start.right + 9, start.middle + 4, "each reconcile starts here", "quiet small")

    def _look(self, edge: Edge) -> str:
        """The style of an arrow: green on the path of the last reconcile."""
        if self.live is not None and not self.live.deleting and self._went(edge):
            return "passed"
        return "goto" if edge.label == "Goto" else ""

    def _went(self, edge: Edge) -> bool:
        live = self.live
        if live is None:
            return False
        if edge.source != START and live.mood(self.graph, edge.source) != "good":
            return False
        if edge.target == END:
            return self._end_mood() == "good" and self._next_visited(edge.source) is None
        if live.mood(self.graph, edge.target) not in {"good", "busy", "bad"}:
            return False
        # If two paths are possible, take the one over states that were visited.
        return edge.source == START or self._next_visited(edge.source) == edge.target

    def _next_visited(self, name: str) -> str | None:
        follows = self.graph.node(name).leads_to
        live = self.live
        return next(
            (each for each in follows if live is not None and live.mood(self.graph, each) in {"good", "busy", "bad"}),
            None,
        )

    def _end_words(self) -> str:
        return self.graph.ready

    def _end_mood(self) -> Mood | None:
        if self.live is None:
            return None
        ready = self.live.conditions.get(self.graph.ready)
        return "good" if ready is not None and ready.mood == "good" else "unknown"

    # deletion

    def _lane_height(self) -> float:
        if self.deletion is None:
            return 0.0
        return (
            _LANE_TOP + _DOT.height + UNLABELED_GAP + self.deletion.size.height + GAP + self.end.height + _LANE_PADDING
        )

    def _lane(self) -> Iterator[str]:
        card = self.deletion
        if card is None:
            return
        deleting = self.live is not None and self.live.deleting
        aside = "" if deleting or self.live is None else ' class="aside"'
        width = card.size.width + 2 * _LANE_PADDING
        yield f'<g transform="translate({_n(self.lane_left)} {_n(self.top)})"{aside}>'
        yield _rect(0, 0, width, self._lane_height(), "lane", 12)
        yield _text(_LANE_PADDING, 25, "when the object is deleted", "quiet strong")
        center = width / 2
        dot = Placed(center - 7, _LANE_TOP, _DOT.width, _DOT.height)
        box = Placed(_LANE_PADDING, dot.bottom + UNLABELED_GAP, card.size.width, card.size.height)
        gone = _pill_size("gone")
        pill = Placed(center - gone.width / 2, box.bottom + GAP, gone.width, gone.height)
        yield from _arrow(((center, dot.bottom), (center, box.y)), "passed" if deleting else "")
        yield from _arrow(((center, box.bottom), (center, pill.y)), "")
        yield f'<circle class="dot{" passed" if deleting else ""}" cx="{_n(center)}" cy="{_n(dot.middle)}" r="7"/>'
        yield from _box(card, box)
        yield from _pill(pill, "gone", None)
        yield _text(center + 9, (box.bottom + pill.y) / 2 + 4, "Done", "label quiet")
        yield "</g>"


def chains_of(graph: MachineGraph) -> Iterator[list[str]]:
    """Chains of states connected by Next: the usual path, then those that only Goto reaches."""
    placed: set[str] = set()
    for node in graph.states:
        if node.name not in placed:
            chain = [node.name, *(each for each in graph.usual_way(node.name) if each not in placed)]
            placed.update(chain)
            yield [START, *chain, END] if node is graph.first else chain


# pieces


def _box(card: Card, place: Placed) -> Iterator[str]:
    look = f"box {card.mood or ''}".strip() + (" here" if card.tag else "")
    yield _rect(place.x, place.y, place.width, place.height, look, 9)
    for line in card.lines:
        yield _text(place.x + line.x, place.y + line.y, line.text, line.look)
    if card.rule_at is not None:
        y = _n(place.y + card.rule_at)
        yield f'<line class="rule" x1="{_n(place.x + 14)}" y1="{y}" x2="{_n(place.right - 14)}" y2="{y}"/>'
    for chip in card.chips:
        yield _rect(place.x + chip.x, place.y + chip.y, chip.width, chip.height, f"chip {chip.look}", 9.5)
        yield _text(
            place.x + chip.x + chip.width / 2, place.y + chip.y + 13.5, chip.text, f"chipped {chip.look}", middle=True
        )
    if card.mood is not None:
        yield from _sign(place.right - 20, place.y + 20, card.mood)
    if card.tag:
        width = Font(11, bold=True).width(card.tag) + 16
        left = place.right - 40 - width
        yield _rect(left, place.y - 10, width, 20, f"tag {card.mood}", 10)
        yield _text(left + width / 2, place.y + 4, card.tag, "tagged", middle=True)


def _banner(x: float, y: float, width: float, mood: Mood, words: str, message: str) -> tuple[list[str], float]:
    """A banner across the picture, and its height."""
    lines = wrap(message, width - 56, PLAIN, lines=_BANNER_LINES)
    height = 20.0 + 17 * (1 + len(lines))
    parts = [_rect(x, y, width, height, f"box {mood}", 8), *_sign(x + 22, y + height / 2, mood)]
    parts.append(_text(x + 42, y + 23, shorten(words, width - 56, STRONG), f"said {mood}"))
    parts += [_text(x + 42, y + 40 + 17 * number, line, "message") for number, line in enumerate(lines)]
    return parts, height


def _pill_size(words: str) -> Size:
    return Size(STRONG.width(words) + 56, 34)


def _pill(place: Placed, words: str, mood: Mood | None) -> Iterator[str]:
    yield _rect(place.x, place.y, place.width, place.height, f"box {mood or ''}".strip(), 17)
    if mood is not None:
        yield from _sign(place.x + 19, place.middle, mood)
    center = place.center + (8 if mood is not None else 0)
    yield _text(center, place.middle + 4.5, words, f"said {mood}" if mood else "strong", middle=True)


def _sign(x: float, y: float, mood: Mood) -> Iterator[str]:
    """An icon for each color, for readers who cannot see it: a tick, a clock, a cross, a ring."""
    if mood in {"unknown", "idle"}:
        yield f'<circle class="ring" cx="{_n(x)}" cy="{_n(y)}" r="7"/>'
        return
    yield f'<circle class="sign {mood}" cx="{_n(x)}" cy="{_n(y)}" r="8.5"/>'
    marks = {"good": "m-3.8 0.2 2.7 2.8 5-5.6", "busy": "m0 -4.4 v4.6 l3 2", "bad": "m-3 -3 6 6 m0 -6 -6 6"}
    yield f'<path class="mark" d="M{_n(x)} {_n(y)} {marks[mood]}"/>'


def _arrow(points: tuple[Point, ...], look: str) -> Iterator[str]:
    (before_x, before_y), (x, y) = points[-2], points[-1]
    across, down = _sign_of(x - before_x), _sign_of(y - before_y)
    # End the line inside the arrowhead.
    ends = (*points[:-1], (x - 5 * across, y - 5 * down))
    yield f'<path class="{f"arrow {look}".strip()}" d="{_way(ends)}"/>'
    left, right = (-4.5 * down, 4.5 * across), (4.5 * down, -4.5 * across)
    base = (x - 9 * across, y - 9 * down)
    corners = ((x - across, y - down), (base[0] + left[0], base[1] + left[1]), (base[0] + right[0], base[1] + right[1]))
    path = " ".join(f"{_n(a)},{_n(b)}" for a, b in corners)
    yield f'<polygon class="{f"head {look}".strip()}" points="{path}"/>'


def _way(points: tuple[Point, ...], radius: float = 9.0) -> str:
    """A path with rounded corners."""
    parts = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        reach = min(radius, _distance(before, corner) / 2, _distance(corner, after) / 2)
        enter, leave = _toward(corner, before, reach), _toward(corner, after, reach)
        parts.append(f"L{_n(enter[0])} {_n(enter[1])}")
        parts.append(f"Q{_n(corner[0])} {_n(corner[1])} {_n(leave[0])} {_n(leave[1])}")
    parts.append(f"L{_n(points[-1][0])} {_n(points[-1][1])}")
    return " ".join(parts)


def _distance(one: Point, other: Point) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _toward(start: Point, end: Point, reach: float) -> Point:
    return (start[0] + reach * _sign_of(end[0] - start[0]), start[1] + reach * _sign_of(end[1] - start[1]))


def _sign_of(value: float) -> int:
    return (value > 0) - (value < 0)


def _label(route: Route, look: str) -> str:
    x, y = route.label_at
    if route.anchor == "end":
        x -= SMALL.width(route.edge.label)
    return _text(x, y, route.edge.label, f"label {look or 'quiet'}")


def _rect(x: float, y: float, width: float, height: float, look: str, radius: float) -> str:
    place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    return f'<rect class="{look}" {place} rx="{_n(radius)}"/>'


def _text(x: float, y: float, text: str, look: str, *, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{look}" x="{_n(x)}" y="{_n(y)}"{anchor}>{escape(text)}</text>'


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
