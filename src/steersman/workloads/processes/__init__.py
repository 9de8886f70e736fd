"""Processes of this machine that never outlive their session.

Guarantees, on Linux
- A process ends with its control plane, however that ends: with it end all descendants, daemonized ones too.
- Persistent processes survive, and a later control plane attaches to them.
- Output goes to files of bounded size, readable by their owner alone.
"""

from steersman.workloads.processes.runner import (
    Attached,
    Ended,
    Exited,
    FailedToStart,
    Launch,
    Listener,
    Lost,
    Process,
    ProcessEvent,
    ProcessRunner,
    Refused,
    Started,
    Stopping,
)
from steersman.workloads.processes.zygote_runner import ZygoteRunner

__all__ = [
    "Attached",
    "Ended",
    "Exited",
    "FailedToStart",
    "Launch",
    "Listener",
    "Lost",
    "Process",
    "ProcessEvent",
    "ProcessRunner",
    "Refused",
    "Started",
    "Stopping",
    "ZygoteRunner",
]
