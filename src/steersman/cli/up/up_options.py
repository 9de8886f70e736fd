"""The options of ``steersman up``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from steersman.cli.up.outcomes import AbortRules
from steersman.cli.up.places import PlaceOptions, parse_scales
from steersman.projects import ServiceSelection


class UpOptions(PlaceOptions, frozen=True, kw_only=True):
    """The options of the command line."""

    names: Sequence[str] = ()
    profiles: Sequence[str] = ()
    detach: bool = False
    plain: bool = False
    abort_on_exit: bool = False
    abort_on_failure: bool = False
    exit_code_from: str = ""
    wait: bool = False
    timeout: float = 600.0
    scales: Sequence[str] = ()
    container_runtime: Literal["podman", "docker"] = "podman"
    #: Whether this is the process of a detached session.
    background: bool = False

    def selection(self) -> ServiceSelection:
        """The services to run."""
        profiles = self.profiles or [each for each in os.environ.get("COMPOSE_PROFILES", "").split(",") if each]
        return ServiceSelection(names=tuple(self.names), profiles=tuple(profiles), scales=parse_scales(self.scales))

    def rules(self) -> AbortRules:
        """When the exit of one service ends the run."""
        on_exit = self.abort_on_exit or (bool(self.exit_code_from) and not self.abort_on_failure)
        return AbortRules(on_exit=on_exit, on_failure=self.abort_on_failure, code_from=self.exit_code_from)
