"""A state machine as a mermaid flowchart, for places that render Markdown. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from steersman.patterns.drawing.description import END, START, deletion, edges_of, outcomes
from steersman.patterns.drawing.overlay import Live, Mood
from steersman.patterns.drawing.text import printable
from steersman.patterns.machine.graph import MachineGraph, StateNode

#: Each fill has its own text color, so that it is readable in light and in dark.
_CLASSES: Final[dict[Mood, str]] = {
    "good": "fill:#dafbe1,stroke:#1a7f37,color:#0a3d1c",
    "busy": "fill:#fff1b8,stroke:#bf8700,color:#4d3000,stroke-width:3px",
    "bad": "fill:#ffdfdc,stroke:#cf222e,color:#67060c,stroke-width:3px",
    "unknown": "stroke-dasharray:4 3",
    "idle": "stroke-dasharray:4 3",
}
_ENTITIES: Final = str.maketrans(
    {letter: f"#{ord(letter)};" for letter in '#"<>&`[](){}|\\'}  # special characters of mermaid and HTML
)
_LONGEST: Final = 200


def mermaid(graph: MachineGraph, live: Live | None = None) -> str:
    """A diagram of a machine; with ``live``, colored by the conditions of an object."""
    return "\n".join(_lines(graph, live)) + "\n"


def _lines(graph: MachineGraph, live: Live | None) -> Iterator[str]:
    title = (
        f"{graph.name} reconciles {graph.kind}"
        if live is None
        else f"{graph.kind} {live.name}: {_summary(graph, live)}"
    )
    yield from ("---", f"title: {json.dumps(_plain(title))}", "---", "flowchart TD")
    yield '    start(("each reconcile"))'
    for node in graph.states:
        yield f'    {_id(node.name)}["{_label(graph, node, live)}"]'
    yield f'    ready(["{_escaped(graph.ready)}"])'
    for edge in edges_of(graph):
        arrow = f"-- {edge.label} -->" if edge.label else "-->"
        yield f"    {_id(edge.source)} {arrow} {_id(edge.target)}"
    if (last := deletion(graph)) is not None:
        words = [f"<b>{_escaped(last[0])}</b>", "finalizer", _escaped(last[1])]
        yield '    subgraph deletion ["when the object is deleted"]'
        yield "        direction TB"
        yield f'        finalizer["{"<br/>".join(word for word in words if word)}"]'
        yield '        gone(["gone"])'
        yield "        finalizer -- Done --> gone"
        yield "    end"
    if live is not None:
        yield from _colors(graph, live)


def _colors(graph: MachineGraph, live: Live) -> Iterator[str]:
    moods: dict[str, Mood] = {_id(name): live.mood(graph, name) for name in graph.names}
    ready = live.conditions.get(graph.ready)
    moods[_id(END)] = "good" if ready is not None and ready.mood == "good" else "unknown"
    if deletion(graph) is not None and live.deleting:
        moods["finalizer"] = "busy" if ready is None or ready.mood != "bad" else "bad"
    for mood in dict.fromkeys(moods.values()):
        yield f"    classDef {mood} {_CLASSES[mood]}"
    for name, mood in moods.items():
        yield f"    class {name} {mood}"


def _label(graph: MachineGraph, node: StateNode, live: Live | None) -> str:
    parts = [f"<b>{_escaped(node.name)}</b>", _escaped(node.condition), _escaped(node.words)]
    if live is None:
        parts.append(", ".join(outcomes(node)))
    else:
        found = live.state(graph, node.name)
        parts.append(f"<b>{_escaped(found.words)}</b>" if found is not None else "not visited")
        parts.append(_escaped(found.message) if found is not None else "")
    return "<br/>".join(part for part in parts if part)


def _summary(graph: MachineGraph, live: Live) -> str:
    ready = live.conditions.get(graph.ready)
    said = f"{graph.ready} {ready.words}" if ready is not None else f"{graph.ready} not reported"
    return f"{said}, suspended" if live.suspended else said


def _id(name: str) -> str:
    """The id of a node; a state's own name may be a keyword of mermaid."""
    return {START: "start", END: "ready"}.get(name, f"state_{name}")


def _escaped(text: str) -> str:
    return _plain(text).translate(_ENTITIES)


def _plain(text: str) -> str:
    text = " ".join(printable(text).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
