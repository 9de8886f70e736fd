"""The API server with its own controllers, assembled.

Guarantees
- One call gives a working control plane: garbage collection, namespaces that end, service accounts, and a client.
- It starts in milliseconds in this process, or serves on a port for kubectl and any other client.
- Everything that it started has ended when its ``async with`` block has ended.
- Its controllers do what those of kube-controller-manager do: one suite of scenarios is played on both, and what is there
  in the end is compared.
"""

from steersman.controlplane.assembly import CONTROLLERS, is_controller
from steersman.controlplane.control_plane import ControlPlane

__all__ = ["CONTROLLERS", "ControlPlane", "is_controller"]
