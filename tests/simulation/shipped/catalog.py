"""Everything that we ship and that a simulation can run, by name."""

from __future__ import annotations

from collections.abc import Callable

from simulation.shipped.control_plane import CONTROL_PLANE
from simulation.shipped.developer_plane import DEVELOPER_PLANE
from simulation.shipped.example_operators import EXAMPLES
from simulation.shipped.shipped_program import ShippedProgram
from simulation.shipped.workload_controllers import WORKLOADS

PROGRAMS: dict[str, Callable[[], ShippedProgram]] = {**EXAMPLES, **CONTROL_PLANE, **WORKLOADS, **DEVELOPER_PLANE}
