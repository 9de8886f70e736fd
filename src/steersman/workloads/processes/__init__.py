"""Processes of this machine that never outlive their session.

Guarantees, on Linux
- A process ends with its control plane, however that ends: with it end all descendants, daemonized ones too.
- Persistent processes survive, and a later control plane attaches to them.
- Output goes to files of bounded size, readable by their owner alone.
"""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.workloads.processes.orphans import kill_session_processes as kill_session_processes
from steersman.workloads.processes.persistent_processes import (
    PersistentProcess as PersistentProcess,
    PersistentProcesses as PersistentProcesses,
    PersistentProcessFolder as PersistentProcessFolder,
    SimulatedPersistentProcesses as SimulatedPersistentProcesses,
)
from steersman.workloads.processes.runner import (
    Attached as Attached,
    Ended as Ended,
    Exited as Exited,
    FailedToStart as FailedToStart,
    Launch as Launch,
    Listener as Listener,
    Lost as Lost,
    Process as Process,
    ProcessEvent as ProcessEvent,
    ProcessRunner as ProcessRunner,
    Refused as Refused,
    Started as Started,
    Stopping as Stopping,
)
from steersman.workloads.processes.zygote_runner import ZygoteRunner as ZygoteRunner

# Imported on first use: a session needs neither commands in the foreground nor simulated processes.
if TYPE_CHECKING:
    from steersman.workloads.processes.foreground import (
        CannotRun as CannotRun,
        ForegroundCommand as ForegroundCommand,
        run_in_foreground as run_in_foreground,
    )
    from steersman.workloads.processes.simulated_processes import (
        SimulatedProcess as SimulatedProcess,
        SimulatedProcesses as SimulatedProcesses,
    )
    from steersman.workloads.processes.terminal_connection import TerminalConnection as TerminalConnection
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.workloads.processes.foreground": ["CannotRun", "ForegroundCommand", "run_in_foreground"],
            "steersman.workloads.processes.simulated_processes": ["SimulatedProcess", "SimulatedProcesses"],
            "steersman.workloads.processes.terminal_connection": ["TerminalConnection"],
        },
    )
