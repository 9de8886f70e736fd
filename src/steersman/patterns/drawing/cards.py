"""The contents of a box, line by line, and its size. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from steersman.patterns.drawing.description import deletion, outcomes
from steersman.patterns.drawing.layout import Size
from steersman.patterns.drawing.overlay import Live, Mood, Observed
from steersman.patterns.drawing.text import Font, wrap
from steersman.patterns.machine.graph import MachineGraph, StateNode

NAME = Font(14, mono=True, bold=True)
PLAIN = Font(12)
STRONG = Font(12, bold=True)
SMALL = Font(11)

_PADDING = 14.0
_ICON = 26.0
#: How far text may extend into the padding, in the widest font.
_OVER = 8.0
_NARROWEST, _WIDEST = 280.0, 350.0
_MESSAGE_LINES = 5
_CHIPS = {"may wait": "busy", "may fail": "bad"}
_WORDS_LINES = 4


class Line(msgspec.Struct, frozen=True):
    """A line of text: its position in the box and its style."""

    x: float
    #: The y coordinate of its baseline.
    y: float
    text: str
    look: str


class Chip(msgspec.Struct, frozen=True):
    """A small label at the bottom of a box."""

    x: float
    y: float
    width: float
    height: float
    text: str
    look: str


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A box and its contents."""

    size: Size
    lines: tuple[Line, ...]
    chips: tuple[Chip, ...] = ()
    #: None without an object.
    mood: Mood | None = None
    #: The y coordinate of the line between the definition and the live status.
    rule_at: float | None = None
    #: The text at its upper edge, if a reconcile stopped here.
    tag: str = ""


def width_of_cards(graph: MachineGraph) -> float:
    """The width of all boxes in a picture: that of the longest name, within limits."""
    last = deletion(graph)
    names = [NAME.width(name) for name in (*graph.names, last[0] if last else "")]
    conditions = [STRONG.width(each.condition) for each in graph.states]
    widest = max(*names, *conditions) + 2 * _PADDING + _ICON
    return min(max(widest, _NARROWEST), _WIDEST)


def state_card(graph: MachineGraph, node: StateNode, live: Live | None, width: float) -> Card:
    """The box of a state."""
    found = None if live is None else live.state(graph, node.name)
    details: Sequence[tuple[str, Font, str, int]] = ()
    mood: Mood | None = None
    tag = ""
    if live is not None:
        mood = live.mood(graph, node.name)
        # The condition of a single state is the one at the top of the picture.
        alone = node.condition == graph.ready
        details = [] if alone else _details(found, mood, absent="not visited" if live.conditions else "not reported")
        if live.stopped_at(graph) == node.name:
            tag = "failed here" if mood == "bad" else "waits here"
    chips = [(words, _CHIPS[words]) for words in outcomes(node)] if live is None else []
    return _card(
        [
            (node.name, NAME, "name", 0),
            (node.condition, STRONG, "condition", 0),
            (node.words, PLAIN, "quiet", _WORDS_LINES),
        ],
        details,
        chips,
        width,
        mood=mood,
        tag=tag,
    )


def deletion_card(graph: MachineGraph, live: Live | None, width: float) -> Card | None:
    """The box of the steps before a deleted object is removed; None without any."""
    last = deletion(graph)
    if last is None:
        return None
    deleting = live is not None and live.deleting
    ready = live.conditions.get(graph.ready) if live is not None and deleting else None
    mood: Mood | None = None
    tag = ""
    if deleting:
        mood = "bad" if ready is not None and ready.mood == "bad" else "busy"
        tag = "failed here" if mood == "bad" else "runs now"
    return _card(
        [(last[0], NAME, "name", 0), ("finalizer", STRONG, "condition", 1), (last[1], PLAIN, "quiet", _MESSAGE_LINES)],
        _details(ready, mood) if ready is not None and mood is not None else (),
        (),
        width,
        mood=mood,
        tag=tag,
    )


def _details(found: Observed | None, mood: Mood, *, absent: str = "") -> Sequence[tuple[str, Font, str, int]]:
    """The live status."""
    if found is None:
        return [(absent, PLAIN, "quiet", 1)]
    words = [(found.words, STRONG, f"said {mood}", 2)]
    return [*words, (found.message, PLAIN, "message", _MESSAGE_LINES)] if found.message else words


def _card(
    always: Iterable[tuple[str, Font, str, int]],
    now: Sequence[tuple[str, Font, str, int]],
    chips: Iterable[tuple[str, str]],
    width: float,
    *,
    mood: Mood | None,
    tag: str,
) -> Card:
    inner = width - 2 * _PADDING
    y = _PADDING - 2
    lines: list[Line] = []
    rule_at = None
    for part, texts in enumerate((always, now)):
        if part and now:
            rule_at = y + 9
            y += 15
        for text, font, look, limit in texts:
            # The first lines leave room for the icon in the corner.
            room = inner + (_OVER if look != "name" else -_ICON)
            y += 2 if lines and text else 0
            for line in wrap(text, room, font, lines=limit):
                y += font.size + 5
                lines.append(Line(_PADDING, y - 4, line, look))
    placed: list[Chip] = []
    x = _PADDING
    for text, look in chips:
        chip = SMALL.width(text) + 14
        placed.append(Chip(x, y + 9, chip, 19, text, look))
        x += chip + 6
    height = y + (28 if placed else 0) + _PADDING - 3
    size = Size(width, height)
    return Card(size=size, lines=tuple(lines), chips=tuple(placed), mood=mood, rule_at=rule_at, tag=tag)
