"""What a Pod's status says when it runs, waits or has ended. Pure: time is passed in.

Guarantees
- Saying the same again changes nothing: times, addresses and container ids stay as they were.
- Conditions, phase and container statuses agree with each other, as a kubelet's do; fields of others are kept.
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


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """All containers run, and are ready unless told otherwise."""

    ready: bool = True


class Waiting(msgspec.Struct, frozen=True):
    """The containers do not start: ``Waiting("ImagePullBackOff")``."""

    reason: str
    message: str = ""


class Succeeded(msgspec.Struct, frozen=True):
    """The containers have ended with 0. They are started again, in vain, where ``restartPolicy`` is Always."""


class Failed(msgspec.Struct, frozen=True):
    """The containers have ended badly. They are started again, in vain, unless ``restartPolicy`` is Never."""

    reason: str = "Error"
    exit_code: int = 1

    def __post_init__(self) -> None:
        if self.exit_code == 0:
            raise ValueError("Failed needs an exit code other than 0; a Pod that ends with 0 is Succeeded()")


PodOutcome: TypeAlias = Running | Waiting | Succeeded | Failed


class _Seen(msgspec.Struct, frozen=True):
    """What all containers of a Pod do, and what the Pod is called for it."""

    state: ContainerState
    phase: str
    ready: bool = False


def observe(pod: Pod, outcome: PodOutcome, now: datetime) -> PodStatus:
    """The status of a Pod that has come so far; ``pod`` stays as it is, its status is where we start from."""
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
        case Running(ready=ready):
            return _Seen(ContainerState(running=ContainerStateRunning(started_at=now)), "Running", ready)
        case Waiting(reason, message):
            return _Seen(_waiting(reason, message), "Pending")
        case Succeeded():
            if pod.spec.restart_policy in {None, "Always"}:
                return _Seen(_waiting("CrashLoopBackOff"), "Running")
            return _Seen(_terminated("Completed", 0, now), "Succeeded")
        case Failed(reason, exit_code):
            if pod.spec.restart_policy != "Never":
                return _Seen(_waiting("CrashLoopBackOff"), "Running")
            return _Seen(_terminated(reason, exit_code, now), "Failed")
        case _:
            assert_never(outcome)


def _address(pod: Pod) -> str:
    """An address of the Pod's own, the same whoever asks: from its uid, inside of 10.128.0.0/9."""
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
    return ContainerStatus(
        name=container.name,
        image=container.image or "",
        image_id="" if waiting else f"pod-runner://{container.image}",
        container_id=None if waiting else f"pod-runner://{pod.metadata.uid}/{container.name}",
        ready=ready,
        started=state.running is not None,
        restart_count=1 if crashing else 0,
        state=state,
    )


def _same(before: ContainerState, now: ContainerState) -> bool:
    """Whether two states differ in nothing but the time at which they were seen."""
    if before.running is not None and now.running is not None:
        return True
    if before.terminated is not None and now.terminated is not None:
        return before.terminated.exit_code == now.terminated.exit_code
    return before == now
