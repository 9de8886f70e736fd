"""Variables, arguments and files that a process or a container starts with."""

from __future__ import annotations

from typing import Annotated, Literal

from steersman.markers import Format, Minimum, MinLength
from steersman.objects import Struct

#: The API group of the developer control plane, and its version.
GROUP, VERSION = "usvc-dev.developer.microsoft.com", "v1"

#: A length of time in Go's notation, such as ``1m30s``.
Duration = Annotated[str, Format("duration")]


class EnvVar(Struct):
    """A variable of the environment."""

    name: Annotated[str, MinLength(1)]
    value: str = ""
    """Its value; templates such as ``{{portForServing "api"}}`` are replaced before the start."""


class AmbientEnvironment(Struct):
    """What a process inherits."""

    behavior: Literal["Inherit", "DoNotInherit"] = "Inherit"
    """Whether the process starts with the environment of the control plane."""


class PemCertificate(Struct):
    """A certificate to write to a file."""

    thumbprint: str
    contents: str


class TerminalSpec(Struct):
    """A pseudo-terminal for the process, bridged to a Unix socket."""

    uds_path: str | None = None
    socket_mode: Literal["listen", "connect"] = "listen"
    cols: Annotated[int, Minimum(1)] = 80
    rows: Annotated[int, Minimum(1)] = 24
