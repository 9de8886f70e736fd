"""helm 3 and helm 4, built from their published Go modules once per machine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from bench.contenders.preparing import go_program

Major: TypeAlias = Literal[3, 4]
HELM_VERSIONS: tuple[Major, ...] = (3, 4)


def helm(major: Major) -> Path:
    """The program helm of a major version, built if necessary."""
    return go_program(Path(__file__).parent / f"go_helm{major}", "helm", f"helm.sh/helm/v{major}/cmd/helm")
