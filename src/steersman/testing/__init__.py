"""Tests against the real thing: `Engine` runs kube-apiserver and etcd, and a pytest plugin shares one over a test run.

Guarantees:

- What answers is Kubernetes itself, never an imitation.
- No process outlives the test that started it, even when that is killed; an engine that failed leaves its logs.
- An engine belongs to no event loop, and engines do not disturb each other.
- The plugin costs a test run nothing until one of its fixtures (`engine`, `namespace`, `crd_group`) is used.

A name is imported when it is first used, because pytest loads this room in every run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.testing.engine import Engine, EngineStart
    from steersman.testing.errors import EngineError, KubectlError
    from steersman.testing.fault_proxy import FaultProxy
    from steersman.testing.parts import ApiServer, ControllerManager, EtcdMember, Part
    from steersman.testing.pod_runner import PodRunner
    from steersman.testing.pod_status import Failed, PodOutcome, Running, Succeeded, Waiting

__all__ = [
    "ApiServer",
    "ControllerManager",
    "Engine",
    "EngineError",
    "EngineStart",
    "EtcdMember",
    "Failed",
    "FaultProxy",
    "KubectlError",
    "Part",
    "PodOutcome",
    "PodRunner",
    "Running",
    "Succeeded",
    "Waiting",
]

_HOMES = {
    "ApiServer": "parts",
    "ControllerManager": "parts",
    "Engine": "engine",
    "EngineError": "errors",
    "EngineStart": "engine",
    "EtcdMember": "parts",
    "Failed": "pod_status",
    "FaultProxy": "fault_proxy",
    "KubectlError": "errors",
    "Part": "parts",
    "PodOutcome": "pod_status",
    "PodRunner": "pod_runner",
    "Running": "pod_status",
    "Succeeded": "pod_status",
    "Waiting": "pod_status",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
