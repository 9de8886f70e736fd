"""The pictures of machines in the documentation; ``python -m patterns.pictures`` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from examples.postgres_cluster.operator import Cluster

from steersman.patterns.drawing import Live, Observed, svg

_STUCK = "StatefulSet main-primary: 0 of 1 replica is ready"
_DONE = Observed("True", "Complete")
_LATER = Observed("Unknown", "NotReached", "waits for PrimaryReady")
_WAITING = Live(
    name="default/main",
    conditions={
        "Ready": Observed("False", "ChildrenNotReady", _STUCK),
        "StorageReady": _DONE,
        "PrimaryReady": Observed("False", "ChildrenNotReady", _STUCK),
        "ReplicasReady": _LATER,
        "BackupsReady": _LATER,
    },
)
PICTURES: dict[str, Callable[[], str]] = {
    "postgres-cluster.svg": lambda: svg(Cluster.machine),
    "postgres-cluster-waiting.svg": lambda: svg(Cluster.machine, _WAITING),
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (Path(__file__).parents[2] / "docs" / "images" / name).write_text(draw(), encoding="utf-8")
