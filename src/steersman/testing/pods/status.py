"""The status of a Pod that runs, waits or has ended. Pure: time is passed in.

Guarantees
- Reporting the same outcome again changes nothing: times, addresses and container ids stay.
- Conditions, phase and container statuses are consistent, as a kubelet's are; fields of other writers are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias, assert_never

import msgspec

from steersman.kinds.core_v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    HostIP,
    Pod,
    PodCondition,
    PodIP,
    PodStatus,
)
from steersman.objects import set_condition

HOST_IP = "192.168.0.1"


class PodRunning(msgspec.Struct, frozen=True, kw_only=True):
    """All containers run, and are ready by default."""

    ready: bool = True


class PodWaiting(msgspec.Struct, frozen=True):
    """The containers do not start: ``PodWaiting("ImagePullBackOff")``."""

    reason: str
    message: str = ""


class PodSucceeded(msgspec.Struct, frozen=True):
    """The containers exited with 0. With ``restartPolicy: Always`` they restart and exit again."""


class PodFailed(msgspec.Struct, frozen=True):
    """The containers failed. Unless ``restartPolicy`` is Never, they restart and fail again."""

    reason: str = "Error"
    exit_code: int = 1

    def __post_init__(self) -> None:
        if self.exit_code == 0:
            raise ValueError("PodFailed needs a non-zero exit code; use PodSucceeded() for a Pod that exits with 0")


#: What becomes of a Pod: the return value of the function ``outcome`` of a `PodRunner`.
PodOutcome: TypeAlias = PodRunning | PodWaiting | PodSucceeded | PodFailed


class _Seen(msgspec.Struct, frozen=True):
    """The common state of a Pod's containers, and the Pod's phase."""

    state: ContainerState
    phase: str
    ready: bool = False


def observe(pod: Pod, outcome: PodOutcome, now: datetime) -> PodStatus:
    """The status of a Pod with this outcome, based on its previous status; ``pod`` itself is unchanged."""
    return _status_of(pod, _seen(pod, outcome, now.replace(microsecond=0)), now.replace(microsecond=0))


def killed(pod: Pod, now: datetime) -> PodStatus:
    """The status of a Pod that was deleted while it ran."""
    now = now.replace(microsecond=0)
    return _status_of(pod, _Seen(_terminated("Error", 137, now), "Failed"), now)


def _status_of(pod: Pod, seen: _Seen, now: datetime) -> PodStatus:
    status = msgspec.structs.replace(pod.status) if pod.status is not None else PodStatus()
    status.conditions = [msgspec.structs.replace(condition) for condition in status.conditions or ()]
    status.start_time = status.start_time or now
    status.observed_generation = pod.metadata.generation
    status.host_ip, status.host_ips = HOST_IP, [HostIP(ip=HOST_IP)]
    status.phase = seen.phase
    began, over = seen.phase != "Pending", seen.phase in {"Succeeded", "Failed"}
    if began:
        status.pod_ip = status.pod_ip or _address(pod)
        status.pod_ips = [PodIP(ip=status.pod_ip)]
    if pod.spec.init_containers:
        initial = _terminated("Completed", 0, status.start_time) if began else _waiting("PodInitializing")
        status.init_container_statuses = _statuses(pod, pod.spec.init_containers, initial, ready=began)
    status.container_statuses = _statuses(pod, pod.spec.containers, seen.state, ready=seen.ready)
    unready = "PodCompleted" if seen.phase == "Succeeded" else "ContainersNotReady"
    for name, true, reason in (
        ("PodReadyToStartContainers", began and not over, None),
        ("Initialized", began or not pod.spec.init_containers, "ContainersNotInitialized"),
        ("ContainersReady", seen.ready, unready),
        ("Ready", seen.ready, unready),
    ):
        condition = PodCondition(type=name, status=str(true), reason=None if true else reason)
        condition.observed_generation = pod.metadata.generation
        set_condition(status, condition, now=now)
    return status


def _seen(pod: Pod, outcome: PodOutcome, now: datetime) -> _Seen:
    match outcome:
        case PodRunning(ready=ready):
            return _Seen(ContainerState(running=ContainerStateRunning(started_at=now)), "Running", ready)
        case PodWaiting(reason, message):
            return _Seen(_waiting(reason, message), "Pending")
        case PodSucceeded():
            if pod.spec.restart_policy in {None, "Always"}:
                return _Seen(_waiting("CrashLoopBackOff"), "Running")
            return _Seen(_terminated("Completed", 0, now), "Succeeded")
        case PodFailed(reason, exit_code):
            if pod.spec.restart_policy != "Never":
                return _Seen(_waiting("CrashLoopBackOff"), "Running")
            return _Seen(_terminated(reason, exit_code, now), "Failed")
        case _:
            assert_never(outcome)


def _address(pod: Pod) -> str:
    """The Pod's address, derived from its uid, inside 10.128.0.0/9."""
    number = int((pod.metadata.uid or "0").replace("-", "")[:8], 16)
    return f"10.{128 + (number >> 16) % 128}.{(number >> 8) % 256}.{number % 256}"


def _waiting(reason: str, message: str = "") -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message or None))


def _terminated(reason: str, exit_code: int, now: datetime) -> ContainerState:
    ended = ContainerStateTerminated(reason=reason, exit_code=exit_code, started_at=now, finished_at=now)
    return ContainerState(terminated=ended)


def _statuses(
    pod: Pod, containers: Iterable[Container], state: ContainerState, *, ready: bool
) -> list[ContainerStatus]:
    known = pod.status or PodStatus()
    before = {each.name: each for each in (*(known.container_statuses or ()), *(known.init_container_statuses or ()))}
    return [_status(pod, container, state, before.get(container.name), ready=ready) for container in containers]


def _status(
    pod: Pod, container: Container, state: ContainerState, before: ContainerStatus | None, *, ready: bool
) -> ContainerStatus:
    if before is not None and before.state is not None and _same(before.state, state):
        state = before.state
    crashing = state.waiting is not None and state.waiting.reason == "CrashLoopBackOff"
    waiting = state.waiting is not None and not crashing
    return msgspec.structs.replace(
        # Keep what the server added to an earlier status, so that the same status is not written twice.
        before or ContainerStatus(name=container.name, image="", image_id="", ready=ready, restart_count=0),
        image=container.image or "",
        image_id="" if waiting else f"pod-runner://{container.image}",
        container_id=None if waiting else f"pod-runner://{pod.metadata.uid}/{container.name}",
        ready=ready,
        started=state.running is not None,
        restart_count=1 if crashing else 0,
        state=state,
    )


def _same(before: ContainerState, now: ContainerState) -> bool:
    """Whether two states differ only in the time they were observed."""
    if before.running is not None and now.running is not None:
        return True
    if before.terminated is not None and now.terminated is not None:
        return before.terminated.exit_code == now.terminated.exit_code
    return before == now
