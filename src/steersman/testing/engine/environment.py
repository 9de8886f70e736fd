"""Where the programs of an engine are: the environment variables of envtest, then our own cache.

Guarantees: all programs of an engine come from one place, unless a `TEST_ASSET_*` variable names one individually. A
version of Kubernetes that a test asks for goes before the variables. If a program is missing, the error says what to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from steersman.golang import duration_nanoseconds
from steersman.kinds.index import KUBERNETES
from steersman.testing.engine.errors import EngineError

_ASSETS = {
    "kube-apiserver": "TEST_ASSET_KUBE_APISERVER",
    "etcd": "TEST_ASSET_ETCD",
    "kubectl": "TEST_ASSET_KUBECTL",
    "kube-controller-manager": "TEST_ASSET_KUBE_CONTROLLER_MANAGER",
}
#: The version of the engine by default: the one that the built-in kinds come from.
_MINOR = KUBERNETES.removeprefix("v").rpartition(".")[0]
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Environment:
    """An engine's settings from the environment."""

    variables: Mapping[str, str]
    #: The minor version that was asked for, such as ``1.35``; None for the programs of the environment.
    kubernetes: str | None
    use_existing_cluster: bool
    attach_output: bool
    start_timeout: float
    stop_timeout: float

    @classmethod
    def read(cls, variables: Mapping[str, str] | None = None, *, kubernetes: str | None = None) -> Environment:
        """Read the settings, by default from this process's environment, for a minor version such as ``1.35``."""
        given = dict(os.environ if variables is None else variables)
        if kubernetes is not None and re.fullmatch(r"\d+\.\d+", kubernetes) is None:
            raise EngineError(f"{kubernetes!r} is not a minor version of Kubernetes: write one such as 1.35")
        if kubernetes is not None and _is_true(given, "USE_EXISTING_CLUSTER"):
            raise EngineError(
                f"USE_EXISTING_CLUSTER uses a cluster in its own version, so Kubernetes {kubernetes} cannot be chosen:"
                " unset the variable, or ask for no version"
            )
        return cls(
            variables=given,
            kubernetes=kubernetes,
            use_existing_cluster=_is_true(given, "USE_EXISTING_CLUSTER"),
            attach_output=_is_true(given, "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT"),
            start_timeout=_seconds(given, "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", _START_SECONDS),
            stop_timeout=_seconds(given, "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT", _STOP_SECONDS),
        )

    def program(self, name: str) -> Path:
        """Return the path of the program `name`; raise `EngineError` with instructions if it is missing."""
        if self.kubernetes is not None:
            return self._cached(name, self.kubernetes)
        by_itself = self.variables.get(_ASSETS[name])
        if by_itself:
            return _executable(Path(by_itself), name, f"${_ASSETS[name]}")
        folder = self.variables.get("KUBEBUILDER_ASSETS")
        if folder:
            return _executable(Path(folder) / name, name, "$KUBEBUILDER_ASSETS")
        return self._cached(name, _MINOR)

    def _cached(self, name: str, minor: str) -> Path:
        path = self._cache() / minor / name
        if minor == _MINOR:
            return _executable(path, name, "the engine cache")
        if not _is_executable(path):
            raise EngineError(
                f"program {name} of Kubernetes {minor} not found at {path} (the engine cache): build it once with"
                f" `tools/engine/build --kubernetes {minor}` in a Steersman checkout, or set KUBEBUILDER_ASSETS to a"
                " directory with the programs of that version, and ask for no version"
            )
        return path.absolute()

    def _cache(self) -> Path:
        chosen = self.variables.get("STEERSMAN_ENGINE_CACHE")
        if chosen:
            return Path(chosen)
        home = self.variables.get("XDG_CACHE_HOME")
        return (Path(home) if home else Path.home() / ".cache") / "steersman" / "engine"


def _is_executable(path: Path) -> bool:
    return os.access(path, os.X_OK) and not path.is_dir()


def _executable(path: Path, name: str, source: str) -> Path:
    if not _is_executable(path):
        raise EngineError(
            f"program {name} not found at {path} ({source}): set KUBEBUILDER_ASSETS to a directory with kube-apiserver,"
            " etcd and kubectl (and kube-controller-manager if a test needs it), such as setup-envtest creates, or"
            " build them once with tools/engine/build in a Steersman checkout"
        )
    return path.absolute()


def _is_true(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").lower() == "true"


def _seconds(variables: Mapping[str, str], name: str, default: float) -> float:
    text = variables.get(name, "")
    if not text:
        return default
    with suppress(ValueError):
        if (nanoseconds := duration_nanoseconds(text)) > 0:
            return nanoseconds / 10**9
    raise EngineError(f"{name} is {text!r}, which is not a duration such as 30s or 2m30s: correct it or unset it")
