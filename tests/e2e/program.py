"""The program of the official Kubernetes e2e suite, built from the published Go module once per machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.contenders.preparing import go_program


def program() -> Path:
    """The program, built if necessary."""
    return go_program(Path(__file__).parent / "kubernetes_e2e", "e2e.test", test=True)


def spec_names() -> list[str]:
    """The full names of all specs of the program."""
    listing = subprocess.run([program(), "-list-tests"], capture_output=True, text=True, check=True).stdout
    return sorted({line.partition(": ")[2] for line in listing.splitlines() if ".go:" in line})
