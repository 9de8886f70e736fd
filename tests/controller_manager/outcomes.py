"""How far a Pod comes: what its annotation ``outcome`` says."""

from __future__ import annotations

from steersman.kinds.core_v1 import Pod
from steersman.testing import PodFailed, PodOutcome, PodRunning, PodSucceeded, PodWaiting

_OUTCOMES: dict[str, PodOutcome] = {
    "": PodRunning(),
    "succeeds": PodSucceeded(),
    "fails": PodFailed(),
    "waits": PodWaiting("ImagePullBackOff"),
}


def outcome_of(pod: Pod) -> PodOutcome:
    """What the runner is to make of a Pod."""
    return _OUTCOMES[(pod.metadata.annotations or {}).get("outcome", "")]
