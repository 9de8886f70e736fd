"""The identity of a project: the folder of the application and the name of the project."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from steersman.workloads import state_home

#: The digits of the hash in the name of a state folder.
_DIGITS = 10


class ProjectError(Exception):
    """A project cannot be used; the message says why and what to do."""


class ProjectIdentity(msgspec.Struct, frozen=True):
    """A project on this machine. Symbolic links in the folder are resolved, so that one folder is one project."""

    folder: Path
    name: str

    def state_folder(self, environment: Mapping[str, str]) -> Path:
        """The folder of its kubeconfig, output and state."""
        text = f"{self.folder.resolve()}\0{self.name}".encode(errors="surrogateescape")
        digest = hashlib.sha256(text).hexdigest()[:_DIGITS]
        return state_home(environment) / f"{self.name[:40]}-{digest}"
