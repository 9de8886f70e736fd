"""Metrics of this process, with the names that Prometheus' own clients use."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Final

from steersman.telemetry.metrics import CounterOf, GaugeOf, Registry

_CPU: Final = CounterOf("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.")
_MEMORY: Final = GaugeOf("process_resident_memory_bytes", "Resident memory size in bytes.")
_FILES: Final = GaugeOf("process_open_fds", "Number of open file descriptors.")
_FILES_MAX: Final = GaugeOf("process_max_fds", "Maximum number of open file descriptors.")
_START: Final = GaugeOf("process_start_time_seconds", "Start time of the process since unix epoch in seconds.")
#: The position of the start time in ``/proc/self/stat``, after the name of the program.
_STARTED_AT: Final = 19


def add_process_metrics(registry: Registry) -> None:
    """Add CPU time, memory, open files and start time of this process. Each scrape reads the current values."""
    cpu = registry.counter(_CPU).labels()
    registry.gauge(_MEMORY).labels().set_function(_resident)
    registry.gauge(_FILES).labels().set_function(_open_files)
    registry.gauge(_FILES_MAX).labels().set_function(lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    if sys.platform == "linux":
        registry.gauge(_START).labels().set(_started())

    def collect() -> None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        cpu.value = usage.ru_utime + usage.ru_stime

    registry.add_collector(collect)


def _resident() -> int:
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    # The peak so far: macOS reports it in bytes, other systems in kilobytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def _started() -> float:
    booted = next(
        int(line.split()[1]) for line in Path("/proc/stat").read_text(encoding="ascii").splitlines() if "btime" in line
    )
    ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[_STARTED_AT])
    return booted + ticks / os.sysconf("SC_CLK_TCK")
