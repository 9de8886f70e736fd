"""Everything that we ship and that a simulation can run, by name."""

from __future__ import annotations

from collections.abc import Callable

from simulation.shipped.control_plane import CONTROL_PLANE
from simulation.shipped.developer_plane import DEVELOPER_PLANE
from simulation.shipped.example_operators import EXAMPLES
from simulation.shipped.shipped_program import ShippedProgram
from simulation.shipped.workload_controllers import WORKLOADS

_ALL: dict[str, Callable[[], ShippedProgram]] = {**EXAMPLES, **CONTROL_PLANE, **WORKLOADS, **DEVELOPER_PLANE}
#: Programs with findings that are not explained yet: whether the program is wrong, or the simulation.
OPEN = {
    "external_job": "after three crashes and a status that was written although the server answered 504, a Command stays Running",
}

PROGRAMS = {name: made for name, made in _ALL.items() if name not in OPEN}
