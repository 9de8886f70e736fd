"""How far a Pod comes: what its annotation ``outcome`` says."""

from __future__ import annotations

from steersman.kinds.core_v1 import Pod
from steersman.testing import Failed, PodOutcome, Running, Succeeded, Waiting

_OUTCOMES: dict[str, PodOutcome] = {
    "": Running(),
    "succeeds": Succeeded(),
    "fails": Failed(),
    "waits": Waiting("ImagePullBackOff"),
}


def outcome_of(pod: Pod) -> PodOutcome:
    """What the runner is to make of a Pod."""
    return _OUTCOMES[(pod.metadata.annotations or {}).get("outcome", "")]
