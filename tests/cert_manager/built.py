"""cert-manager's programs, built from the published Go modules once per machine, and its chart."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from charts.programs import helm

from bench.contenders.preparing import go_program

_CERT_MANAGER = Path(__file__).parent / "go_cert_manager"


def cert_manager() -> Path:
    """The program with all commands of cert-manager, built if necessary."""
    return go_program(_CERT_MANAGER, "cert-manager")


def packaged_chart(target: Path) -> Path:
    """The chart in the Go module, packaged in the folder ``target`` with the module's version, as for a release."""
    listed = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "github.com/cert-manager/cert-manager"],
        cwd=_CERT_MANAGER,
        env=os.environ | {"GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        check=True,
    )
    folder, version = listed.stdout.split()
    source = Path(folder) / "deploy" / "charts" / "cert-manager"
    subprocess.run(
        [helm(3), "package", source, f"--version={version}", f"--app-version={version}", f"--destination={target}"],
        capture_output=True,
        check=True,
    )
    return target / f"cert-manager-{version}.tgz"
