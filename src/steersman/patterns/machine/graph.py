"""The graph of a state machine: states, their conditions, and the states that may follow each. Pure data and its checks.

Guarantees
- In a graph that passes `check_graph`, every path from the first state ends within one reconcile, and every state is reachable.
- Each error says in one sentence what is wrong, where, and what to write instead.
"""

from __future__ import annotations

import re

import msgspec

#: The names of the steps, as annotations spell them.
STEPS = ("Next", "Goto", "Wait", "Done", "RequeueAfter", "Failed")
#: The steps that complete a reconcile.
ENDINGS = frozenset({"Done", "RequeueAfter"})

#: The condition that a machine sets while the suspend label tells it to leave an object alone.
SUSPENDED = "Suspended"
#: The condition that a machine sets while every reconcile of an object writes and thereby triggers the next.
LOOPING = "Looping"

_CONDITION = re.compile(r"(?P<domain>[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Z][A-Za-z0-9]*")
#: A valid label value, with room for the depth that may follow it.
_STATE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_]{0,57}[A-Za-z0-9])?")


class StateNode(msgspec.Struct, frozen=True, kw_only=True):
    """One state."""

    name: str
    #: The condition that it owns; Ready itself in a machine with one state.
    condition: str
    #: The states that `Goto` may name.
    to: tuple[str, ...] = ()
    #: The state that follows `Next`; None if the state never returns it.
    next: str | None = None
    #: The first line of its docstring; may be empty.
    words: str = ""
    #: The steps in its return annotation; empty without an annotation.
    returns: frozenset[str] = frozenset()

    @property
    def leads_to(self) -> tuple[str, ...]:
        """The states that may follow in a reconcile, the one after `Next` first."""
        return tuple(dict.fromkeys((*((self.next,) if self.next is not None else ()), *self.to)))


class MachineGraph(msgspec.Struct, frozen=True, kw_only=True):
    """All states in the order of their definition. A reconcile starts with the first."""

    #: The name of the machine's class or function.
    name: str
    #: The name of the kind that it reconciles, such as ``Postgres``.
    kind: str
    states: tuple[StateNode, ...]
    #: The method that cleans up before the object is removed; None without one.
    finalizer: str | None = None
    #: The first line of the finalizer's docstring.
    finalizer_words: str = ""
    #: Whether the machine itself deletes children before the object is removed, those of the last state first.
    deletes_children: bool = False
    #: The condition that summarizes all others.
    ready: str = "Ready"
    #: Whether conditions are written. On another program's kind they need a domain prefix.
    reports: bool = True

    @property
    def first(self) -> StateNode:
        """The state that every reconcile starts with."""
        return self.states[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all states."""
        return tuple(state.name for state in self.states)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions that the machine owns, the summary first."""
        return tuple(dict.fromkeys((self.ready, *(state.condition for state in self.states))))

    @property
    def suspended(self) -> str:
        """The condition of a suspended object, in the same domain as the summary."""
        return f"{self.ready.rpartition('/')[0]}/{SUSPENDED}".lstrip("/")

    @property
    def looping(self) -> str:
        """The condition of an object that never converges, in the same domain as the summary."""
        return f"{self.ready.rpartition('/')[0]}/{LOOPING}".lstrip("/")

    def node(self, name: str) -> StateNode:
        """The state of this name; raises `KeyError` if it does not exist."""
        for state in self.states:
            if state.name == name:
                return state
        raise KeyError(name)

    def reachable(self, start: str) -> tuple[str, ...]:
        """The states that may follow ``start`` within a reconcile, without ``start``, in the order of their definition."""
        reached: set[str] = set()
        waiting = list(self.node(start).leads_to)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting.extend(self.node(name).leads_to)
        return tuple(name for name in self.names if name in reached and name != start)

    def usual_way(self, start: str) -> tuple[str, ...]:
        """The states that follow ``start`` by `Next` alone."""
        way: list[str] = []
        follows = self.node(start).next
        while follows is not None and follows not in way:
            way.append(follows)
            follows = self.node(follows).next
        return tuple(way)


def check_condition(condition: str, where: str, *, reserved: tuple[str, ...], option: str = "condition") -> None:
    """Reject a name that cannot be a condition; ``option`` is the option that holds it."""
    if not _CONDITION.fullmatch(condition):
        raise TypeError(
            f"{where}: {option}={condition!r} is not the name of a condition; write it in CamelCase, such as"
            ' "StorageReady"'
        )
    if condition in reserved:
        raise TypeError(
            f"{where}: Steersman sets the condition {condition} itself; name the condition of a state after"
            ' its subject, such as "StorageReady"'
        )


def check_foreign(condition: str, kind: str, where: str, *, option: str = "condition") -> None:
    """Reject a condition without a domain prefix on a kind that another program declares."""
    match = _CONDITION.fullmatch(condition)
    domain = (match["domain"] or "").rstrip("/") if match else ""
    if not domain:
        raise TypeError(
            f"{where}: {kind} is a kind of another program, which sets its own conditions; put your domain"
            f' before yours: {option}="example.com/{condition}"'
        )
    if domain.endswith(("kubernetes.io", "k8s.io")):
        raise TypeError(f'{where}: {option}="{condition}" has a domain of Kubernetes; use your own domain')


def check_state_name(name: str, where: str) -> None:
    """Reject a name that cannot be a label value: children carry the name of their state in a label."""
    if not _STATE.fullmatch(name):
        raise TypeError(
            f"{where}: the name becomes a label value of its children, so it has at most 59 ASCII letters,"
            " digits and underscores, and no underscore at either end; rename the method"
        )


def check_graph(graph: MachineGraph, where: str) -> None:
    """Reject a graph whose reconciles could go wrong; ``where`` names the class."""
    if not graph.states:
        raise TypeError(
            f"{where} has no states; write at least one:"
            ' @state(condition="StorageReady") async def storage(self, obj, out) -> Done | Wait'
        )
    owners: dict[str, str] = {}
    for node in graph.states:
        here = f"{where}, state {node.name}"
        check_state_name(node.name, here)
        check_condition(node.condition, here, reserved=(graph.ready, graph.suspended, graph.looping))
        if node.condition in owners:
            raise TypeError(
                f"{here}: state {owners[node.condition]} already has the condition {node.condition}; give"
                " each state its own condition"
            )
        owners[node.condition] = node.name
        _check_ways(graph, node, here)
    _check_ends(graph, where)
    _check_reached(graph, where)


def _check_ways(graph: MachineGraph, node: StateNode, here: str) -> None:
    for target in node.to:
        if target not in graph.names:
            raise TypeError(
                f"{here}: to= names {target!r}, which is not a state; the states are {', '.join(graph.names)}"
            )
    if "Goto" in node.returns and not node.to:
        raise TypeError(
            f'{here}: its annotation has Goto, but to= is missing; write @state(condition=..., to=("...",)),'
            " or remove Goto"
        )
    if node.to and node.returns and "Goto" not in node.returns:
        raise TypeError(
            f"{here}: to= lists where a Goto may lead, but its annotation has no Goto; write -> ... | Goto,"
            " or remove to="
        )
    if "Next" in node.returns and node.next is None:
        raise TypeError(f"{here}: it returns Next, but no state follows it; return Done")
    if not node.returns & {"Next", "Goto", *ENDINGS}:
        raise TypeError(
            f"{here}: it can never complete, because its annotation has only {_listed(node.returns)}; add"
            " Next, Goto or Done"
        )


def _check_ends(graph: MachineGraph, where: str) -> None:
    """Reject cycles: a reconcile would never end."""
    done: set[str] = set()

    def walk(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            circle = " -> ".join((*way[way.index(name) :], name))
            raise TypeError(
                f"{where}: the states {circle} form a cycle, so a reconcile would never end; to retry later,"
                " return Wait(...): the next reconcile starts with the first state"
            )
        if name in done:
            return
        for following in graph.node(name).leads_to:
            walk(following, (*way, name))
        done.add(name)

    for node in graph.states:
        walk(node.name, ())


def _check_reached(graph: MachineGraph, where: str) -> None:
    first = graph.first.name
    reached = {first, *graph.reachable(first)}
    for node in graph.states:
        if node.name not in reached:
            raise TypeError(
                f"{where}, state {node.name}: no state leads to it; let the state before it return Next,"
                f' or add it to another state: to=("{node.name}",)'
            )


def _listed(names: frozenset[str]) -> str:
    return " and ".join(name for name in STEPS if name in names) or "nothing"
