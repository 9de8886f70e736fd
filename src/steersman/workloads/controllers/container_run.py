"""What is known of the container of a Container, and the status that follows from it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from steersman.objects import Condition, MicroTime, set_condition
from steersman.workloads.containers import ContainerFacts
from steersman.workloads.controllers.output_copy import OutputCopy
from steersman.workloads.environment import shown_environment
from steersman.workloads.kinds import (
    STOPPED,
    STOPPED_MESSAGE,
    Container,
    ContainerState,
    HealthProbeResult,
    HealthStatus,
    is_stopped,
    requested_restart,
)
from steersman.workloads.kinds.additions import ContainerObservation
from steersman.workloads.probes import health_of

#: The states after which nothing of a container changes.
FINAL: Final = frozenset({"FailedToStart", "Exited", "Unknown"})


class Run(msgspec.Struct, kw_only=True):
    """The record of a Container: only its reconciler changes it."""

    work: str = ""
    """The slow work that runs, in a word; empty if none does."""
    looked: bool = False
    """Whether the runtime answered, and the container to reuse was looked for."""
    outage: str = ""
    """Why the runtime does not answer, as a sentence; empty while it does."""
    retry_at: float = 0.0
    missing: bool = False
    """Whether the container to adopt does not exist."""
    building: bool = False
    built: bool = False
    starting: bool = False
    created: str = ""
    """The id of a container that this control plane created, also if its start failed."""
    attempted: bool = False
    """Whether an attempt to create the container has failed: it may exist, and its id is not known."""
    attachable: bool = False
    """Whether the container waits for the program that starts it."""
    client_ended: bool = False
    """Whether that program has ended."""
    facts: ContainerFacts | None = None
    """The container, once it was started or adopted."""
    stale: bool = False
    """Whether an event came after the facts."""
    looked_at: float = 0.0
    """When the facts were stored, in the time of the loop."""
    exited_at: float | None = None
    """When the container was first seen without a process, on the event loop's clock; None while it has one."""
    stop_asked: bool = False
    over: bool = False
    removed: bool = False
    stays: bool = False
    """Whether the container outlives its object."""
    failure: str = ""
    """Why the container did not start, as a sentence."""
    start_code: int | None = None
    """The exit code of a shell for a command that cannot be executed; None after any other failure."""
    problem: str = ""
    """Why a command for a container that runs failed; it is repeated."""
    lost: str = ""
    has_changed_ports: bool = False
    """Whether the start was repeated with other ports, because another process had one of them."""
    names_holders: bool = False
    """Whether the failure names the processes that hold the ports."""
    name: str = ""
    names: tuple[str, ...] = ()
    """The names in the runtime that the container may have got."""
    lifecycle_key: str = ""
    env: Mapping[str, str] = {}
    args: tuple[str, ...] = ()
    startup_stdout: str = ""
    startup_stderr: str = ""
    stdout: str = ""
    stderr: str = ""
    output: OutputCopy | None = None
    began: float = 0.0
    """When it started to run, in the time of the loop."""
    must_be_healthy: bool = False
    was_healthy: bool = False
    probes: tuple[str, ...] = ()
    results: tuple[HealthProbeResult, ...] = ()
    held: bool = False
    """Whether an annotation keeps the container stopped."""
    repeats: bool = False
    """Whether a new run starts after this one has ended."""
    again: str = ""
    """The id of an ended container that will be started again."""
    repeated: bool = False
    """Whether the run follows another, whose end the status may not show yet."""
    again_since: datetime | None = None
    """When that container ended: its output until then is already in the files."""
    restarts: int = 0
    restarted_at: str | None = None
    """The restart request that was last honored; None until the status has been read."""

    @property
    def is_ended(self) -> bool:
        """Whether a run has ended or could not start."""
        return bool(self.failure or self.lost or self.over) and not self.is_alive

    @property
    def is_alive(self) -> bool:
        """Whether the container has processes."""
        return self.facts is not None and self.facts.is_alive and not (self.over or self.lost)

    @property
    def health(self) -> HealthStatus:
        """The health by the results of the probes."""
        return health_of(self.probes, self.results)


#: The fields of the record that the next run keeps.
_KEPT: Final = frozenset(
    {
        *("name", "lifecycle_key", "created", "env", "args", "output", "restarts", "restarted_at", "held"),
        *("stays", "attempted", "names"),
        *("startup_stdout", "startup_stderr", "stdout", "stderr"),
    }
)


def follow_annotations(container: Container, run: Run) -> str:
    """Record the stop, start or restart that annotations request. Returns a sentence about a new request."""
    asked = requested_restart(container)
    if run.restarted_at is None:
        known = container.status.steersman if container.status is not None else None
        run.restarted_at = (known.restarted_at or "") if known is not None else asked
        run.restarts = known.restarts if known is not None else 0
    news = ""
    if asked and asked != run.restarted_at:
        run.restarted_at = asked
        run.repeats = run.facts is not None or run.is_ended or is_over(container)
        news = f"A restart was requested at {asked}."
    if is_stopped(container):
        if not run.held:
            run.held, news = True, f"The annotation {STOPPED} requests a stop."
    elif run.held:
        run.held, news = False, f"The annotation {STOPPED} was removed."
        run.repeats = run.facts is not None or run.is_ended or is_over(container)
    return news


def is_over(container: Container) -> bool:
    """Whether the status of a Container says that its run is over."""
    return container.status is not None and container.status.state in FINAL


def begin_again(run: Run) -> None:
    """Turn the record of an ended run into that of the next: the same container, unless it is gone."""
    facts = run.facts if not run.lost else None
    fresh = Run()
    for name in set(Run.__struct_fields__) - _KEPT:
        setattr(run, name, getattr(fresh, name))
    run.restarts += 1
    run.repeated = True
    if facts is not None:
        run.again, run.again_since = facts.id, facts.finished_at


def state_of(run: Run, before: ContainerState) -> ContainerState:
    """The state of a Container."""
    if run.failure:
        return "FailedToStart" if not run.is_alive else before
    if run.lost:
        return "Unknown"
    return _state_before_start(run, before) if run.facts is None else _state_after_start(run, run.facts, before)


def _state_after_start(run: Run, facts: ContainerFacts, before: ContainerState) -> ContainerState:
    if run.over or not facts.is_alive:
        return "Exited"
    if run.stop_asked or (before == "Stopping" and not run.repeated):
        return "Stopping"
    if run.must_be_healthy and not run.was_healthy:
        return "Starting"
    return "Paused" if facts.state == "paused" else "Running"


def _state_before_start(run: Run, before: ContainerState) -> ContainerState:
    if run.starting:
        return "Starting"
    if run.building:
        return "Building"
    if run.outage:
        return "RuntimeUnhealthy"
    if run.missing:
        return "NotFound"
    return before if before in {"RuntimeUnhealthy", "NotFound"} and not run.looked else "Pending"


def message_of(run: Run) -> str:
    """Why a Container is in its state, as a sentence; empty if there is nothing to explain."""
    if run.failure or run.lost or run.outage or run.problem:
        return run.failure or run.lost or run.outage or run.problem
    if run.held and not run.is_alive and not run.work:
        return STOPPED_MESSAGE
    if run.missing:
        return f"There is no container {run.name}; it is adopted as soon as there is one."
    facts = run.facts
    if facts is not None and (run.over or not facts.is_alive):
        return f"Ended with exit code {facts.exit_code}." + (f" {facts.error}" if facts.error else "")
    return "Waits for the container to end." if run.stop_asked else ""


def health_of_state(state: ContainerState, run: Run) -> HealthStatus:
    """The health of a Container in a state."""
    if state == "Running":
        return run.health
    failed = state in {"FailedToStart", "RuntimeUnhealthy"}
    code = run.facts.exit_code if run.facts is not None else 0
    return "Unhealthy" if failed or (state == "Exited" and code and not run.stop_asked) else "Caution"


def write_status(container: Container, state: ContainerState, run: Run, *, waiting_for: str, now: datetime) -> None:
    """Put a state, and what is known of the container, into the status of a Container."""
    status = container.ensure_status()
    status.state = state
    status.observed_generation = container.generation
    facts = run.facts
    status.container_id = (facts.id if facts is not None else run.created) or None
    status.container_name = (facts.name if facts is not None else run.name) or None
    status.startup_std_out_file, status.startup_std_err_file = run.startup_stdout or None, run.startup_stderr or None
    status.lifecycle_key = run.lifecycle_key or None
    if run.starting or facts is not None:
        status.effective_env = shown_environment(run.env)
        status.effective_args = list(run.args)
    if facts is not None:
        status.startup_timestamp = _time(facts.started_at)
        status.networks = sorted(facts.networks) or None
        if state == "Exited":
            status.exit_code = facts.exit_code
    if state == "Pending":
        status.exit_code = status.finish_timestamp = None
    if state in FINAL and status.finish_timestamp is None:
        ended = facts.finished_at if facts is not None and state == "Exited" else None
        status.finish_timestamp = _time(ended or now)
    status.message = message_of(run) or None
    status.health_status = health_of_state(state, run)
    status.health_probe_results = list(run.results) or None
    status.steersman = ContainerObservation(
        waiting_for=waiting_for or None,
        message=message_of(run) or None,
        std_out_file=run.stdout or None,
        std_err_file=run.stderr or None,
        restarts=run.restarts,
        restarted_at=run.restarted_at or None,
        attachable=run.attachable,
        problem=run.problem or None,
        start_code=run.start_code if state == "FailedToStart" else None,
    )
    for condition in _conditions(state, run, waiting_for):
        condition.observed_generation = container.generation
        set_condition(status, condition, now=now)


def _conditions(state: ContainerState, run: Run, waiting_for: str) -> list[Condition]:
    message = message_of(run) or (f"Waits for {waiting_for}." if waiting_for else "")
    otherwise = message or unhealthy(run) or f"It is {state}."

    def condition(kind: str, *, holds: bool) -> Condition:
        status, why = ("True", "") if holds else ("False", otherwise)
        return Condition(type=kind, status=status, reason=state, message=why)

    healthy = state == "Running" and run.health == "Healthy"
    return [
        condition("Started", holds=run.facts is not None and run.facts.started_at is not None),
        condition("Healthy", holds=healthy),
        condition("Completed", holds=state == "Exited" and run.facts is not None and run.facts.exit_code == 0),
        condition("Ready", holds=healthy),
    ]


def unhealthy(run: Run) -> str:
    """The results of the probes that did not succeed, in words."""
    results = {each.probe_name: each for each in run.results}
    words: list[str] = []
    for name in run.probes:
        result = results.get(name)
        if result is None or result.outcome != "Success":
            words.append(f"Probe {name}: {(result.reason if result is not None else None) or 'no result yet'}.")
    return " ".join(words)


def _time(time: datetime | None) -> MicroTime | None:
    return MicroTime.of(time) if time is not None else None
