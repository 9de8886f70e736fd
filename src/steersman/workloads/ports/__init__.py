"""Ports of services and of the processes behind them.

Guarantees
- A port is outside ``ip_local_port_range``: the kernel gives it to no outgoing connection.
- A key keeps its port from one run of a project to the next, unless another process listens there.
- Two control planes of a user never choose the same port: the registry is a locked file.
- The process that holds a port is named, with its pid.
"""

from steersman.workloads.ports.listeners import holder_of as holder_of
from steersman.workloads.ports.local_ports import LocalPorts as LocalPorts
from steersman.workloads.ports.registry import (
    NoPortLeft as NoPortLeft,
    PortRegistry as PortRegistry,
    SimulatedPorts as SimulatedPorts,
)
