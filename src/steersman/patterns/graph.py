"""The graph of a state machine: states, their conditions and where each may lead. Pure data and its checks.

Guarantees
- A graph that passes `check_graph` ends: from the first state every way leads to an end within one pass, and every state
  can be reached.
- What is wrong is said in one sentence: what, where, and what to write instead.
"""

from __future__ import annotations

import re

import msgspec

#: The names of the steps, as annotations spell them.
STEPS = ("Next", "Goto", "Wait", "Done", "RequeueAfter", "Failed")
#: Those after which a pass has reached its end.
ENDINGS = frozenset({"Done", "RequeueAfter"})

#: The condition that a machine sets while its label says that it is to leave an object alone.
SUSPENDED = "Suspended"

_CONDITION = re.compile(r"(?P<domain>[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Z][A-Za-z0-9]*")
#: A name that is a label value, with room for the depth that may follow it.
_STATE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_]{0,57}[A-Za-z0-9])?")


class StateNode(msgspec.Struct, frozen=True, kw_only=True):
    """One state."""

    name: str
    #: The condition that it owns; of a machine with one state that is Ready itself.
    condition: str
    #: Where `Goto` may lead.
    to: tuple[str, ...] = ()
    #: Where `Next` leads; None if the state never returns it.
    next: str | None = None
    #: What it does, in the first line of its docstring; may be empty.
    words: str = ""
    #: The steps that its annotation names; empty if nobody said.
    returns: frozenset[str] = frozenset()

    @property
    def leads_to(self) -> tuple[str, ...]:
        """The states that may follow it in a pass: the usual one first."""
        return tuple(dict.fromkeys((*((self.next,) if self.next is not None else ()), *self.to)))


class MachineGraph(msgspec.Struct, frozen=True, kw_only=True):
    """All states, in the order in which they are written; a pass begins with the first."""

    #: How the machine is called: its class, or its function.
    name: str
    #: The name of the kind that it reconciles, such as ``Postgres``.
    kind: str
    states: tuple[StateNode, ...]
    #: The method that cleans up before the object goes; None if there is none.
    finalizer: str | None = None
    #: What the finalizer does, in the first line of its docstring.
    finalizer_words: str = ""
    #: Whether the machine deletes children itself before the object goes: those of the last state first.
    deletes_children: bool = False
    #: The condition that sums up all others.
    ready: str = "Ready"
    #: Whether conditions are written: not to a kind of somebody else's, unless they have names of their own.
    reports: bool = True

    @property
    def first(self) -> StateNode:
        """Where every pass begins."""
        return self.states[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all states."""
        return tuple(each.name for each in self.states)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions that are the machine's own, the one that sums up first."""
        return tuple(dict.fromkeys((self.ready, *(each.condition for each in self.states))))

    @property
    def suspended(self) -> str:
        """The condition that says that an object is left alone; of the same domain as the one that sums up."""
        return f"{self.ready.rpartition('/')[0]}/{SUSPENDED}".lstrip("/")

    def node(self, name: str) -> StateNode:
        """The state of this name; `KeyError` if there is none."""
        for each in self.states:
            if each.name == name:
                return each
        raise KeyError(name)

    def reachable(self, start: str) -> tuple[str, ...]:
        """The states that may follow one within a pass, itself not among them; in the order in which they are written."""
        found: set[str] = set()
        waiting = list(self.node(start).leads_to)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting.extend(self.node(name).leads_to)
        return tuple(name for name in self.names if name in found and name != start)

    def usual_way(self, start: str) -> tuple[str, ...]:
        """The states that follow one by `Next` alone."""
        way: list[str] = []
        follows = self.node(start).next
        while follows is not None and follows not in way:
            way.append(follows)
            follows = self.node(follows).next
        return tuple(way)


def check_condition(condition: str, where: str, *, reserved: tuple[str, ...], option: str = "condition") -> None:
    """Refuse a name that cannot be a condition; ``option`` is where it was written."""
    if not _CONDITION.fullmatch(condition):
        raise TypeError(
            f'{where}: {option}={condition!r} is no name of a condition; write it in CamelCase, such as "StorageReady"'
        )
    if condition in reserved:
        raise TypeError(
            f"{where}: the machine sets condition {condition} itself; name the state's own after what it is about,"
            f' such as "StorageReady"'
        )


def check_foreign(condition: str, kind: str, where: str, *, option: str = "condition") -> None:
    """Refuse a condition that somebody else may set on a kind that is not ours."""
    found = _CONDITION.fullmatch(condition)
    domain = (found["domain"] or "").rstrip("/") if found else ""
    if not domain:
        raise TypeError(
            f"{where}: {kind} is a kind of somebody else, who sets conditions on it too; write {option}= with a domain of"
            f' your own before it: {option}="example.com/{condition}"'
        )
    if domain.endswith(("kubernetes.io", "k8s.io")):
        raise TypeError(
            f'{where}: {option}="{condition}" is a name of Kubernetes itself; write a domain of your own before the slash'
        )


def check_state_name(name: str, where: str) -> None:
    """Refuse a name that cannot be a label value: children carry the name of their state."""
    if not _STATE.fullmatch(name):
        raise TypeError(
            f"{where}: the name goes into a label of its children, so it begins and ends with a letter or digit of ASCII and"
            " has at most 59 of them and underscores; give the method another name"
        )


def check_graph(graph: MachineGraph, where: str) -> None:
    """Refuse a graph whose passes could go wrong; ``where`` names the class."""
    if not graph.states:
        raise TypeError(
            f"{where} has no states; write at least one:"
            ' @state(condition="StorageReady") async def storage(self, obj, out) -> Done | Wait'
        )
    owners: dict[str, str] = {}
    for node in graph.states:
        here = f"{where}, state {node.name}"
        check_state_name(node.name, here)
        check_condition(node.condition, here, reserved=(graph.ready, graph.suspended))
        if node.condition in owners:
            raise TypeError(
                f"{here}: condition {node.condition} is that of state {owners[node.condition]} already;"
                " give each state a condition of its own"
            )
        owners[node.condition] = node.name
        _check_ways(graph, node, here)
    _check_ends(graph, where)
    _check_reached(graph, where)


def _check_ways(graph: MachineGraph, node: StateNode, here: str) -> None:
    for target in node.to:
        if target not in graph.names:
            raise TypeError(f"{here}: to= names {target!r}, which is no state; there are {', '.join(graph.names)}")
    if "Goto" in node.returns and not node.to:
        raise TypeError(
            f"{here}: its annotation names Goto, but nobody said where it may lead;"
            ' write @state(condition=..., to=("...",)), or leave Goto out'
        )
    if node.to and node.returns and "Goto" not in node.returns:
        raise TypeError(
            f"{here}: to= says where a Goto may lead, but its annotation names none; write -> ... | Goto, or leave out to="
        )
    if "Next" in node.returns and node.next is None:
        raise TypeError(f"{here}: it returns Next, but no state is written after it; return Done where all is done")
    if not node.returns & {"Next", "Goto", *ENDINGS}:
        raise TypeError(
            f"{here}: it can never complete, since its annotation names only {_listed(node.returns)};"
            " write what follows: Next, Goto or Done"
        )


def _check_ends(graph: MachineGraph, where: str) -> None:
    """Refuse a way that comes back to where it was: a pass would never end."""
    done: set[str] = set()

    def walk(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            circle = " -> ".join((*way[way.index(name) :], name))
            raise TypeError(
                f"{where}: the states {circle} go in a circle, so that a pass would never end; to try again later"
                " return Wait(...): the next pass begins with the first state anyway"
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
                f"{where}, state {node.name}: no state leads there; let the one before return Next,"
                f' or name it in another\'s to=("{node.name}",)'
            )


def _listed(names: frozenset[str]) -> str:
    return " and ".join(name for name in STEPS if name in names) or "nothing"
