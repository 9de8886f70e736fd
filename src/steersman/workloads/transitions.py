"""The states of each kind, and the transitions between them, as data.

Guarantees
- `check` rejects a transition that is not in the table: no controller can write it.
- Every state can become Unknown where the table has it: a controller that lost sight of a process says so.
- The drawings in the guide come from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: The states that can follow a state. A state without successors is final.
Transitions = Mapping[str, frozenset[str]]


def _table(unknown: str | None = None, /, **successors: str) -> Transitions:
    """A table from ``State="Next Other"``; ``empty`` stands for the state before the first."""
    states = {"" if state == "empty" else state: set(after.split()) for state, after in successors.items()}
    for after in successors.values():
        for state in after.split():
            states.setdefault(state, set())
    if unknown is not None:
        states.setdefault(unknown, set())
        for state, after in states.items():
            after.update({unknown} - {state})
    return {state: frozenset(after) for state, after in states.items()}


EXECUTABLE: Final = _table(
    "Unknown",
    empty="Starting Running NotFound Terminated FailedToStart",
    NotFound="Starting Running Terminated FailedToStart",
    Starting="Running FailedToStart Finished",
    Running="Stopping Terminated Finished",
    Stopping="Terminated Finished",
)
CONTAINER: Final = _table(
    "Unknown",
    empty="Pending",
    Pending="RuntimeUnhealthy Building Starting NotFound FailedToStart Running Stopping Exited",
    RuntimeUnhealthy="Pending Building Starting FailedToStart Exited",
    Building="Pending Starting FailedToStart",
    Starting="Pending Running FailedToStart Stopping Exited",
    NotFound="Pending Starting Running FailedToStart Stopping Exited",
    Running="Paused Stopping Exited",
    Paused="Running Stopping Exited",
    Stopping="Exited",
    # A requested restart, or a start after a stop, begins another run.
    Exited="Pending",
    FailedToStart="Pending",
    Unknown="Pending",
)
NETWORK: Final = _table(
    empty="Pending",
    Pending="Running FailedToStart NotFound",
    NotFound="Pending Running",
    FailedToStart="Pending Running",
    Running="Removed",
)
VOLUME: Final = _table(
    empty="Pending",
    Pending="RuntimeUnhealthy Ready",
    RuntimeUnhealthy="Pending Ready",
    Ready="Pending",
)
SERVICE: Final = _table(NotReady="Ready", Ready="NotReady")

#: The table of each kind that has states, by kind.
TRANSITIONS: Final[Mapping[str, Transitions]] = {
    "Executable": EXECUTABLE,
    "ContainerExec": EXECUTABLE,
    "Container": CONTAINER,
    "ContainerNetwork": NETWORK,
    "ContainerVolume": VOLUME,
    "Service": SERVICE,
}


class IllegalTransition(Exception):
    """A controller tried to write a state that cannot follow the current one. This is a defect of the controller."""


def check(kind: str, old: str, new: str) -> None:
    """Raise `IllegalTransition` unless the new state equals the old one or may follow it."""
    table = TRANSITIONS[kind]
    if new not in table:
        raise IllegalTransition(f"{kind} has no state {new!r}")
    if old != new and new not in table[old]:
        allowed = ", ".join(sorted(table[old])) or "nothing: the state is final"
        raise IllegalTransition(f"{kind} cannot go from {old!r} to {new!r}; {old!r} can be followed by {allowed}")


def steps(kind: str, old: str, new: str) -> list[str]:
    """The shortest way from one state to another, without the first: a controller that missed states writes each.

    Raises `IllegalTransition` if there is none. No way leads through Unknown.
    """
    table = TRANSITIONS[kind]
    ways = [[old]]
    for way in ways:
        if way[-1] == new:
            return way[1:]
        following = sorted(table.get(way[-1], ()))
        ways += [[*way, each] for each in following if each not in way and (each == new or each != "Unknown")]
    check(kind, old, new)
    return []


def is_final(kind: str, state: str) -> bool:
    """Whether nothing follows a state."""
    return not TRANSITIONS[kind][state]


def state_diagram(kind: str) -> str:
    """The table of a kind as a mermaid state diagram.

    Transitions to Unknown are left out: every state has one.
    """
    lines = ["stateDiagram-v2"]
    for state, successors in TRANSITIONS[kind].items():
        lines.extend(f"    {state or '[*]'} --> {each}" for each in sorted(successors) if each != "Unknown")
        if state not in ("", "Unknown") and not successors - {"Unknown"}:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines) + "\n"
