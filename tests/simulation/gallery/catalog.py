"""The exhibits of the gallery, by the names of their modules."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from simulation.gallery.exhibit import Exhibit

_BESIDE = {"catalog", "exhibit", "sites", "table"}

EXHIBITS: dict[str, Exhibit] = {
    path.stem: import_module(f"simulation.gallery.{path.stem}").EXHIBIT
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if path.stem not in _BESIDE
}
