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

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

if TYPE_CHECKING:
    from steersman.testing.assertions import consistently as consistently, eventually as eventually
    from steersman.testing.clock import Clock as Clock
    from steersman.testing.engine.engine import Engine as Engine, EngineStart as EngineStart
    from steersman.testing.engine.errors import EngineError as EngineError, KubectlError as KubectlError
    from steersman.testing.engine.parts import (
        EtcdMember as EtcdMember,
        KubeApiServer as KubeApiServer,
        KubeControllerManager as KubeControllerManager,
        Part as Part,
    )
    from steersman.testing.fault_proxy import FaultProxy as FaultProxy
    from steersman.testing.operators import Operator as Operator
    from steersman.testing.participants import running_controllers as running_controllers
    from steersman.testing.plane import Plane as Plane
    from steersman.testing.pods.runner import PodRunner as PodRunner
    from steersman.testing.pods.status import (
        PodFailed as PodFailed,
        PodOutcome as PodOutcome,
        PodRunning as PodRunning,
        PodSucceeded as PodSucceeded,
        PodWaiting as PodWaiting,
    )
    from steersman.testing.webhook_registration import answered_in_process as answered_in_process
    from steersman.testing.workload_runner import WorkloadRunner as WorkloadRunner
    from steersman.testing.write_watch import RecordedWrite as RecordedWrite, Writes as Writes
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.testing.assertions": ["consistently", "eventually"],
            "steersman.testing.clock": ["Clock"],
            "steersman.testing.engine.engine": ["Engine", "EngineStart"],
            "steersman.testing.engine.errors": ["EngineError", "KubectlError"],
            "steersman.testing.engine.parts": ["EtcdMember", "KubeApiServer", "KubeControllerManager", "Part"],
            "steersman.testing.fault_proxy": ["FaultProxy"],
            "steersman.testing.operators": ["Operator"],
            "steersman.testing.participants": ["running_controllers"],
            "steersman.testing.plane": ["Plane"],
            "steersman.testing.pods.runner": ["PodRunner"],
            "steersman.testing.pods.status": ["PodFailed", "PodOutcome", "PodRunning", "PodSucceeded", "PodWaiting"],
            "steersman.testing.webhook_registration": ["answered_in_process"],
            "steersman.testing.workload_runner": ["WorkloadRunner"],
            "steersman.testing.write_watch": ["RecordedWrite", "Writes"],
        },
    )

__all__ = [
    "Clock",
    "Engine",
    "EngineError",
    "KubectlError",
    "Operator",
    "Plane",
    "PodFailed",
    "PodOutcome",
    "PodRunner",
    "PodRunning",
    "PodSucceeded",
    "PodWaiting",
    "WorkloadRunner",
    "Writes",
    "consistently",
    "eventually",
]
