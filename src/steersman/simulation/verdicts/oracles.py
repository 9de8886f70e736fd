"""Oracles: what must hold in every run, whatever its faults.

- **rest**: the run settles, no process ends with an error, and the workload does not fail.
- **state**: at each `ScenarioUser.settled`, and at the end, the store holds what it holds in the run without faults. Random
  values agree with each other as they do there, and what time renews there is renewed.
- **crash**: no reconcile raises a programming error, and no exception goes unhandled.
- **calm**: no key is reconciled again and again, each time with a write, and the run does not need far more reconciles
  than the run without faults.
- **leader**: no reconcile, and no task that it started, sends a write while another process leads.
- **check**: the checks of the user hold.
- **leak**: a run that ends without objects of the operator's own kinds ends without any that it made.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from steersman.simulation.runs.faults import Outage
from steersman.simulation.runs.schedules import Violation
from steersman.simulation.runs.world import World
from steersman.simulation.verdicts.agreements import Agreement, agreements, disagreements
from steersman.simulation.verdicts.renewals import changes, renewals
from steersman.simulation.verdicts.states import (
    Path,
    State,
    describe_key,
    differences,
    left_behind,
    normalized,
    unstable_paths,
)

#: How many differences one violation names.
_SHOWN = 4
#: A key may be reconciled so many times more often than without faults.
_TIMES, _MORE = 10, 50


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """The run without faults, to which others are compared."""

    states: tuple[State, ...]
    #: The values that have changed at each state since the one before.
    changes: tuple[frozenset[Path], ...]
    reconciles: int
    #: The values that differ in another run without faults.
    unstable: frozenset[Path] = frozenset()
    #: Which of them contain others, in each state.
    agreements: tuple[frozenset[Agreement], ...] = ()
    #: The changes in which time alone shows.
    renewals: tuple[frozenset[Path], ...] = ()
    #: The keys of the objects that are in each state as they were at first.
    constant: tuple[frozenset[str], ...] = ()


def reference_of(world: World) -> Reference:
    """What a run without faults fixes for all others."""
    return Reference(
        states=tuple(map(normalized, world.states)),
        changes=changes(world.states),
        reconciles=sum(len(process.records) for process in world.processes),
    )


def compared(one: Reference, other: Reference) -> Reference:
    """The first of two runs without faults, with what varies between them."""
    states = list(zip(one.states, other.states, strict=False))
    unstable = frozenset[Path]().union(*(unstable_paths(here, there) for here, there in states))
    stable = [(key, tree) for key, tree in one.states[0].items() if key not in {path[0] for path in unstable}]
    return msgspec.structs.replace(
        one,
        unstable=unstable,
        agreements=tuple(agreements(here, there, unstable) for here, there in states),
        renewals=renewals(one.states, one.changes, other.changes, unstable),
        constant=tuple(frozenset(key for key, tree in stable if state.get(key) == tree) for state in one.states),
    )


def judged(world: World, reference: Reference | None) -> tuple[Violation, ...]:
    """What a run did wrong; without a reference, what can be seen in the run alone."""
    found = [*_rest(world), *_crashes(world)]
    if reference is not None:
        found += _states(world, reference)
        found += _reconciles(world, reference)
    found += _loops(world)
    found += _leaks(world)
    found += [Violation("leader", f"a deposed leader sent a write: {words}") for words in world.deposed_writes[:1]]
    found += [Violation("check", words) for words in world.failed_checks.values()]
    return tuple(found)


def _rest(world: World) -> Iterator[Violation]:
    for failure in world.failures:
        yield Violation("rest", failure)


def _crashes(world: World) -> Iterator[Violation]:
    for process in world.processes:
        crashed = {record.last_error: name for name, record in process.records if record.crashed}
        for error, name in crashed.items():
            yield Violation("crash", f"controller {name} crashed in a reconcile: {error.strip().splitlines()[-1]}")
    for context in world.loop.unhandled:
        error = context.get("exception")
        words = f"{type(error).__name__}: {error}" if error is not None else str(context.get("message"))
        yield Violation("crash", f"an exception was never handled: {words}")


def _states(world: World, reference: Reference) -> Iterator[Violation]:
    if world.failures:
        return
    if len(world.states) != len(reference.states):
        yield Violation("state", f"the workload reached {len(world.states)} states instead of {len(reference.states)}")
        return
    first, last = world.states[0], len(reference.states) - 1
    overdue = _overdue(world, reference)
    # The first state is that before the start of the operator.
    for number, contents in enumerate(world.states[1:], start=1):
        # Most objects are those of the first state, here and in the run without faults.
        known = {key for key in reference.constant[number] if key in first and contents.get(key) is first[key]}
        state = normalized(contents, known)
        lines = differences(reference.states[number], state, reference.unstable, known=known)
        lines = lines or [*disagreements(state, reference.agreements[number]), *overdue[number]]
        if lines:
            when = "at the end" if number == last else f"after step {number}"
            more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
            yield Violation("state", f"{when}: {'; '.join(lines[:_SHOWN])}{more}")
            return


def _overdue(world: World, reference: Reference) -> list[list[str]]:
    """At each state, the values that stayed as they were, and are renewed in the run without faults."""
    if not any(reference.renewals):
        return [[] for _ in reference.states]
    missed = [due - seen for due, seen in zip(reference.renewals, changes(world.states), strict=True)]
    words = "is not renewed as time passes, as it is without faults"
    return [
        [],
        *([f"{describe_key(path[0])}: {'.'.join(path[1:])} {words}" for path in sorted(paths)] for paths in missed),
    ]


def _reconciles(world: World, reference: Reference) -> Iterator[Violation]:
    reconciles = sum(len(process.records) for process in world.processes)
    # While something is away, a program may ask for it every second.
    away = sum(fault.seconds for fault, _ in world.network.fired if isinstance(fault, Outage))
    if reconciles > _TIMES * reference.reconciles + _MORE + away:
        yield Violation("calm", f"{reconciles} reconciles, where a run without faults needs {reference.reconciles}")


def _loops(world: World) -> Iterator[Violation]:
    for process in world.processes:
        loops: dict[tuple[str, str], str] = {}
        for name, record in process.records:
            if record.loop:
                loops.setdefault((name, str(record.request)), record.loop)
        for (name, request), loop in loops.items():
            yield Violation("calm", f"controller {name} reconciles {request} again and again: {loop}")


def _leaks(world: World) -> Iterator[Violation]:
    if world.failures or not world.states:
        return
    first, last = world.states[0], world.states[-1]
    own = tuple(world.own_prefixes)
    if not own or any(key.startswith(own) for key in last):
        return
    left = [
        f"{describe_key(name)}{_held(last[key])}"
        for key, name in left_behind(first, last).items()
        if world.creators.get(key, "operator").startswith("operator")
    ]
    if left:
        yield Violation("leak", f"left behind when everything was deleted: {', '.join(left[:_SHOWN])}")


def _held(raw: bytes) -> str:
    """What holds an object that is being deleted, as words after its name."""
    metadata = msgspec.json.decode(raw).get("metadata", {})
    held = " and ".join(metadata.get("finalizers", ()))
    return f" (being deleted; finalizer {held} holds it)" if held and "deletionTimestamp" in metadata else ""
