"""The control plane: the API server with its own controllers.

Guarantees
- One call starts a working control plane: garbage collection, namespace deletion, service accounts, and a client.
- It starts in milliseconds in this process, or serves a port for kubectl and any other client.
- Everything it started has ended when its ``async with`` block ends.
- Its controllers behave like those of kube-controller-manager: one suite of scenarios runs on both and compares the
  resulting objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.apiserver import (
    CustomSubresource as CustomSubresource,
    PathHandler as PathHandler,
    PathRequest as PathRequest,
    SubresourceRequest as SubresourceRequest,
    Validator as Validator,
)
from steersman.controlplane.assembly import CONTROLLERS as CONTROLLERS, is_controller as is_controller
from steersman.controlplane.control_plane import ControlPlane as ControlPlane

# Imported on first use: a control plane without a port needs no certificates.
if TYPE_CHECKING:
    from steersman.apiserver import CertificateProcess as CertificateProcess, CertificateSource as CertificateSource
else:
    __getattr__, __dir__ = lazy_names(__name__, {"steersman.apiserver": ["CertificateProcess", "CertificateSource"]})

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
