"""A machine as edges and as sentences, shared by both kinds of pictures. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.patterns.drawing.layout import Edge
from steersman.patterns.drawing.overlay import Live
from steersman.patterns.machine.graph import ENDINGS, MachineGraph, StateNode

#: No state can have these names: they are not Python identifiers.
START: Final = "(start)"
END: Final = "(end)"


def edges_of(graph: MachineGraph) -> list[Edge]:
    """All edges: to the first state, between states, and to the end."""
    edges = [Edge(START, graph.first.name, "")]
    for node in graph.states:
        if node.next is not None:
            edges.append(Edge(node.name, node.next, "Next"))
        edges += [Edge(node.name, target, "Goto") for target in dict.fromkeys(node.to) if target != node.next]
        if may_end(node):
            edges.append(Edge(node.name, END, "Done"))
    return edges


def may_end(node: StateNode) -> bool:
    """Whether this state may complete a reconcile."""
    return bool(ENDINGS & node.returns) or not node.leads_to


def deletion(graph: MachineGraph) -> tuple[str, str] | None:
    """What happens before a deleted object is removed: a name and a sentence; None if nothing does."""
    if graph.finalizer is None and not graph.deletes_children:
        return None
    words = [graph.finalizer_words]
    if graph.deletes_children:
        order = ", ".join(reversed(graph.names))
        last_first = f", those of the last state first: {order}." if len(graph.states) > 1 else "."
        words.append(f"{'Then children' if graph.finalizer is not None else 'Children'} are deleted{last_first}")
    return graph.finalizer or "ordered deletion", " ".join(each for each in words if each)


def outcomes(node: StateNode) -> list[str]:
    """The other ways in which a state may end, as text, if its annotation names them."""
    known = {"Wait": "may wait", "Failed": "may fail"}
    return [words for step, words in known.items() if step in node.returns]


def description(graph: MachineGraph, live: Live | None) -> str:
    """A picture in sentences, for screen readers."""
    return " ".join(_sentences(graph, live))


def _sentences(graph: MachineGraph, live: Live | None) -> Iterator[str]:
    yield f"{graph.name} reconciles {graph.kind}; each reconcile starts with {graph.first.name}."
    for node in graph.states:
        ways = [f"by Next to {node.next}"] if node.next is not None else []
        ways += [f"by Goto to {target}" for target in dict.fromkeys(node.to) if target != node.next]
        ways += [f"by Done to {graph.ready}"] if may_end(node) else []
        now = ""
        if live is not None:
            found = live.state(graph, node.name)
            now = f" It is {found.words}." if found is not None else " It was not visited."
        yield f"{node.name} (condition {node.condition}) leads {' or '.join(ways)}.{now}"
    if (last := deletion(graph)) is not None:
        yield f"Before a deleted object is removed: {last[0]}. {last[1]}".strip()
    ready = live.conditions.get(graph.ready) if live is not None else None
    if ready is not None:
        yield f"{graph.ready} is {ready.words}. {ready.message}".strip()
