"""The defects of the calibration, by the names of their modules."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from simulation.calibration.defect import Defect

_BESIDE = {"catalog", "defect", "mutation"}

DEFECTS: dict[str, Defect] = {
    path.stem: import_module(f"simulation.calibration.{path.stem}").DEFECT
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if path.stem not in _BESIDE
}
