"""How far the Pods of the e2e suite get, judged by their commands: no container runs."""

from __future__ import annotations

import re
from datetime import timedelta

from steersman.aio import utc_now
from steersman.kinds.core_v1 import Pod
from steersman.testing import PodFailed, PodOutcome, PodRunning, PodSucceeded

_EXIT = re.compile(r"\bexit (\d+)")
#: Programs that run until they are ended.
_LASTING = re.compile(r"sleep|pause|netexec|serve|while|webhook|porter|liveness|watch|wait|guestbook|tail|httpd|nginx")


def outcome_of(pod: Pod) -> PodOutcome:
    """The outcome of a Pod: a Pod that restarts its containers runs, any other one exits as its command says."""
    if pod.spec.restart_policy in {None, "Always"}:
        return PodRunning(ready=_is_ready(pod))
    container = pod.spec.containers[0]
    command = " ".join((*(container.command or ()), *(container.args or ())))
    codes = [1] if command == "/bin/false" else [int(code) for code in _EXIT.findall(command)]
    if codes and "sleep" not in command:
        return PodFailed(exit_code=_code(pod, codes)) if _code(pod, codes) else PodSucceeded()
    if not command or _LASTING.search(command):
        return PodRunning()
    return PodSucceeded()


def _is_ready(pod: Pod) -> bool:
    """Whether the readiness probes of a Pod have begun: the first try of a probe succeeds."""
    probes = [each.readiness_probe for each in pod.spec.containers if each.readiness_probe is not None]
    delay = max((probe.initial_delay_seconds or 0 for probe in probes), default=0)
    if not delay:
        return True
    start = pod.status.start_time if pod.status is not None else None
    return start is not None and utc_now() - start >= timedelta(seconds=delay)


def _code(pod: Pod, codes: list[int]) -> int:
    """The exit code; a command that names several decides by the index of its Job's Pod."""
    if len(codes) == 1:
        return codes[0]
    index = (pod.metadata.annotations or {}).get("batch.kubernetes.io/job-completion-index", "0")
    return max(codes) if int(index) % 2 else min(codes)
