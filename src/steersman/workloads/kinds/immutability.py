"""Which fields of a spec can change after creation. Everything else is refused, with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Fields of the spec that can change, by kind. A kind that is missing can change as a whole.
MUTABLE: Mapping[str, frozenset[str]] = {
    "Executable": frozenset({"start", "stop", "healthProbes", "steersman"}),
    "Container": frozenset({"start", "stop", "healthProbes", "networks", "steersman"}),
    "ContainerExec": frozenset(),
    "ContainerNetwork": frozenset(),
    "ContainerNetworkConnection": frozenset(),
    "ContainerVolume": frozenset(),
    "Endpoint": frozenset(),
}
#: Fields that change in one direction alone: from their default to this value.
_ONE_WAY = {
    "start": (True, "it has started: set spec.stop to end it"),
    "stop": (True, "it was stopped: create another {kind} to start it again"),
}


def refused_changes(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """The changed fields of a spec that cannot change, with the reason and what to do instead.

    Both specs are JSON trees with defaults filled in.
    """
    mutable = MUTABLE.get(kind)
    if mutable is None:
        return {}
    problems: dict[str, str] = {}
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if name not in mutable:
            problems[f"spec.{name}"] = f"cannot change: create another {kind}"
        elif name in _ONE_WAY and before == _ONE_WAY[name][0]:
            problems[f"spec.{name}"] = "cannot change back: " + _ONE_WAY[name][1].format(kind=kind)
    return problems
