"""The control plane: the API server with its own controllers.

Guarantees
- One call starts a working control plane: garbage collection, namespace deletion, service accounts, and a client.
- It starts in milliseconds in this process, or serves a port for kubectl and any other client.
- Everything it started has ended when its ``async with`` block ends.
- Its controllers behave like those of kube-controller-manager: one suite of scenarios runs on both and compares the
  resulting objects.
"""

from steersman.apiserver import (
    CertificateProcess as CertificateProcess,
    CertificateSource as CertificateSource,
    CustomSubresource as CustomSubresource,
    PathHandler as PathHandler,
    PathRequest as PathRequest,
    SubresourceRequest as SubresourceRequest,
    Validator as Validator,
)
from steersman.controlplane.assembly import CONTROLLERS as CONTROLLERS, is_controller as is_controller
from steersman.controlplane.control_plane import ControlPlane as ControlPlane

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
