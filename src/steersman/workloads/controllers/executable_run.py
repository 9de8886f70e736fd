"""What is known of one run of a program, and the status that follows from it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from steersman.objects import Condition, MicroTime, set_condition
from steersman.workloads.environment import shown_environment
from steersman.workloads.kinds import (
    Executable,
    ExecutableState,
    HealthProbeResult,
    HealthStatus,
    ProcessObservation,
)
from steersman.workloads.probes import health_of
from steersman.workloads.processes import (
    Attached,
    Ended,
    Exited,
    FailedToStart,
    Lost,
    PersistentProcess,
    Process,
    ProcessEvent,
    Refused,
    Started,
    Stopping,
)
from steersman.workloads.users import Account

#: States in which a run is over.
FINAL = frozenset({"Terminated", "FailedToStart", "Finished", "Unknown"})
_LEFT_PROCESSES = (
    "Ended with exit code 0 and left processes behind, which were stopped. If it is a daemon, run it in the foreground,"
    " for example with its option -f or --foreground."
)


class Run(msgspec.Struct):
    """One run of a program: what was started, and what happened to it."""

    launched: bool = False
    """Whether a process was started or adopted: an Executable runs once."""
    process: Process | None = None
    pid: int = 0
    shim: int = 0
    start_time: MicroTime | None = None
    started_at: MicroTime | None = None
    began: float = 0.0
    """When the process started, in the loop's time."""
    finished_at: MicroTime | None = None
    failure: str = ""
    """Why the program could not be started, or why its start failed."""
    exit_code: int | None = None
    over: bool = False
    """Whether no process is left."""
    lost: str = ""
    """Why the end of the process could not be observed, as a sentence."""
    predecessor: Process | None = None
    """An earlier persistent process with another lifecycle key, which must end first."""
    is_remembered: bool = False
    """Whether the pid of a persistent process was written down."""
    stays: bool = False
    """Whether the process outlives its object."""
    stop_asked: bool = False
    left_processes: bool = False
    """Whether the program exited with 0 and left processes behind, as a daemon does, but also a job of a shell."""
    left: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    execution_id: str = ""
    stdout: str = ""
    stderr: str = ""
    folder: str = ""
    terminal: str = ""
    """The socket of the program's terminal; empty if it has none."""
    account: Account | None = None
    """The user that the program runs as; None for that of the control plane."""
    env: Mapping[str, str] = {}
    args: tuple[str, ...] = ()
    serving: Mapping[str, tuple[str, int]] = {}
    """The services that the process serves, and the addresses at which it listens."""
    probes: tuple[str, ...] = ()
    """The names of its probes."""
    results: tuple[HealthProbeResult, ...] = ()
    must_be_healthy: bool = False
    """Whether the start is complete only when the process is healthy: it has a start-up deadline."""
    was_healthy: bool = False

    @property
    def is_live(self) -> bool:
        """Whether processes may be left."""
        return self.launched and not self.over

    @property
    def is_running(self) -> bool:
        """Whether the program runs, and was not asked to stop."""
        return self.is_live and bool(self.pid) and self.exit_code is None and not self.stop_asked

    @property
    def health(self) -> HealthStatus:
        """The health of the process by its probes; healthy without any."""
        return health_of(self.probes, self.results)


def apply_event(event: ProcessEvent, at: MicroTime, began: float, start_time: MicroTime | None, run: Run) -> None:
    """Apply an event of a process to its record. The other arguments say when it happened."""
    match event:
        case Started() | Attached():
            run.pid, run.shim, run.began, run.start_time = event.pid, event.shim, began, start_time
            run.started_at = run.started_at or at
            if isinstance(event, Attached) and event.code is not None:
                run.exit_code = event.code
        case FailedToStart():
            run.failure, run.over = event.message, True
        case Exited():
            run.exit_code, run.finished_at = event.code, at
            run.left_processes = event.left > 0
        case Stopping():
            run.left = event.pids
        case Refused():
            run.refused = event.pids
        case Ended():
            run.over, run.left = True, ()
            run.finished_at = run.finished_at or at
        case Lost():
            run.over, run.left = True, ()
            run.lost = "The shim of the process was killed, so its exit code is unknown."
            run.finished_at = run.finished_at or at


def state_of(run: Run, before: ExecutableState) -> ExecutableState:
    """The state of an Executable that was launched."""
    if run.failure:
        return "FailedToStart" if run.over else before or "Starting"
    if run.lost:
        return "Unknown"
    if run.over:
        return "Terminated" if run.stop_asked else "Finished"
    if not run.pid or (run.must_be_healthy and not run.was_healthy and not run.stop_asked):
        return "Starting"
    return "Stopping" if run.stop_asked or run.exit_code is not None else "Running"


def health_of_state(state: ExecutableState, run: Run) -> HealthStatus:
    """The health of an Executable in a state."""
    if state == "Running":
        return run.health
    failed = state == "FailedToStart" or (state == "Finished" and run.exit_code != 0)
    return "Unhealthy" if failed else "Caution"


def message_of(state: ExecutableState, run: Run) -> str:
    """Why an Executable is in its state, as a sentence; empty if there is nothing to explain."""
    if run.failure or run.lost:
        return run.failure or run.lost
    if run.refused:
        pids = ", ".join(map(str, run.refused))
        return f"Cannot end the processes {pids}: they run as another user. End them, for example with sudo kill."
    if state == "Stopping":
        pids = ", ".join(map(str, run.left))
        return f"Waits for the processes {pids} to end." if pids else "Waits for the process to end."
    if run.over and run.left_processes:
        return _LEFT_PROCESSES
    if run.over and run.exit_code is not None:
        return _ended(run.exit_code)
    return ""


def _ended(code: int) -> str:
    return f"Ended by signal {-code}." if code < 0 else f"Ended with exit code {code}."


def write_status(executable: Executable, state: ExecutableState, run: Run, *, waiting_for: str, now: datetime) -> None:
    """Put a state, and what is known of the run, into the status of an Executable."""
    status = executable.ensure_status()
    status.state = state
    status.observed_generation = executable.generation
    if run.launched:
        status.execution_id = run.execution_id or None
        status.pid = run.pid or None
        status.startup_timestamp, status.finish_timestamp = run.started_at, run.finished_at
        status.exit_code = run.exit_code
        status.std_out_file, status.std_err_file = run.stdout or None, run.stderr or None
        status.terminal_socket_path = run.terminal if run.terminal and not run.over else None
        status.effective_env = shown_environment(run.env)
        status.effective_args = list(run.args)
        status.health_probe_results = list(run.results) or None
    status.health_status = health_of_state(state, run)
    status.steersman = ProcessObservation(
        waiting_for=waiting_for or None,
        message=message_of(state, run) or None,
        start_time=run.start_time,
        descendants=len(run.left) or None,
    )
    for condition in _conditions(state, run, waiting_for):
        condition.observed_generation = executable.generation
        set_condition(status, condition, now=now)


def _conditions(state: ExecutableState, run: Run, waiting_for: str) -> list[Condition]:
    message = message_of(state, run) or (f"Waits for {waiting_for}." if waiting_for else "")
    reason = state or "Waiting"

    def condition(kind: str, *, holds: bool, why: str = "") -> Condition:
        return Condition(type=kind, status="True" if holds else "False", reason=reason, message=why)

    completed = state == "Finished" and run.exit_code == 0
    healthy = state == "Running" and run.health == "Healthy"
    why = message or unhealthy(state, run)
    return [
        condition("Started", holds=bool(run.pid), why="" if run.pid else message),
        condition("Healthy", holds=healthy, why="" if healthy else why),
        condition("Completed", holds=completed, why="" if completed else message or f"It is {state or 'waiting'}."),
        condition("Ready", holds=healthy, why="" if healthy else why),
    ]


def unhealthy(state: ExecutableState, run: Run) -> str:
    """The results of the probes that did not succeed, in words."""
    if state not in {"Running", "Starting"} or not run.pid:
        return f"It is {state or 'waiting'}."
    results = {each.probe_name: each for each in run.results}
    words: list[str] = []
    for name in run.probes:
        result = results.get(name)
        if result is None or result.outcome != "Success":
            why = (result.reason if result is not None else None) or "no result yet"
            words.append(f"Probe {name}: {why}.")
    return " ".join(words)


def persistent_process(executable: Executable, run: Run, key: str, socket: str) -> PersistentProcess:
    """The record of a process that outlives the control plane."""
    return PersistentProcess(
        name=executable.key.name,
        lifecycle_key=key,
        socket=socket,
        execution_id=run.execution_id,
        stdout=run.stdout,
        stderr=run.stderr,
        folder=run.folder,
        args=run.args,
        pid=run.pid,
        started_at=str(run.started_at) if run.started_at is not None else "",
        serving=dict(run.serving),
    )
