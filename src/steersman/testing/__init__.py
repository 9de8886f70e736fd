"""Tests of operators: control planes as fixtures, waiting with reports, skipped time, and the real engine (`Engine`).

Guarantees:

- The same test runs on the embedded control plane, on the engine (kube-apiserver and etcd themselves) and on an
  existing cluster; each fixture documents the differences.
- A failed expectation reports the difference, the object, its events, its reconciles and their causes.
- No process, thread or port outlives the test or the run that started it, even if that is killed; a failed engine
  leaves its logs.
- An engine is not bound to an event loop, and engines do not affect each other.
- The plugin costs a test run nothing until one of its fixtures is used.

Names are imported on first use, because pytest loads this package in every run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.testing.clock import Clock
    from steersman.testing.engine import Engine, EngineStart
    from steersman.testing.errors import EngineError, KubectlError
    from steersman.testing.fault_proxy import FaultProxy
    from steersman.testing.operators import Operator
    from steersman.testing.parts import ApiServer, ControllerManager, EtcdMember, Part
    from steersman.testing.plane import Plane
    from steersman.testing.pod_runner import PodRunner
    from steersman.testing.pod_status import Failed, PodOutcome, Running, Succeeded, Waiting
    from steersman.testing.waiting import consistently, eventually
    from steersman.testing.workload_runner import WorkloadRunner
    from steersman.testing.write_watch import Write, Writes

__all__ = [
    "ApiServer",
    "Clock",
    "ControllerManager",
    "Engine",
    "EngineError",
    "EngineStart",
    "EtcdMember",
    "Failed",
    "FaultProxy",
    "KubectlError",
    "Operator",
    "Part",
    "Plane",
    "PodOutcome",
    "PodRunner",
    "Running",
    "Succeeded",
    "Waiting",
    "WorkloadRunner",
    "Write",
    "Writes",
    "consistently",
    "eventually",
]

_HOMES = {
    "ApiServer": "parts",
    "Clock": "clock",
    "ControllerManager": "parts",
    "Engine": "engine",
    "EngineError": "errors",
    "EngineStart": "engine",
    "EtcdMember": "parts",
    "Failed": "pod_status",
    "FaultProxy": "fault_proxy",
    "KubectlError": "errors",
    "Operator": "operators",
    "Part": "parts",
    "Plane": "plane",
    "PodOutcome": "pod_status",
    "PodRunner": "pod_runner",
    "Running": "pod_status",
    "Succeeded": "pod_status",
    "Waiting": "pod_status",
    "WorkloadRunner": "workload_runner",
    "Write": "write_watch",
    "Writes": "write_watch",
    "consistently": "waiting",
    "eventually": "waiting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
