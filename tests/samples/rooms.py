"""The pytest plugin that makes a package of each folder of tests: a fixture with ``scope="package"`` ends with its room.

A server that stays for the whole session costs CPU time until the run ends: an engine with controllers about a tenth of a
core.
"""

from __future__ import annotations

from pathlib import Path

import pytest


class Room(pytest.Package):
    """A folder of tests."""

    def setup(self) -> None:
        """Do nothing: there is no ``__init__.py`` to import."""


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> Room | None:
    return Room.from_parent(parent, path=path) if path.parent == parent.config.rootpath / "tests" else None
