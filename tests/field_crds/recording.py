"""The engine's answers in a file, to hold a server against them without an engine."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from field_crds.player import Exchange

#: What decides which requests are sent.
_SOURCES = ("definitions", "modules", "mutations", "normalization", "objects", "player", "texts")


def _state() -> str:
    digest = hashlib.sha256()
    for name in _SOURCES:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()


def save(file: Path, played: dict[str, list[Exchange]]) -> None:
    """Write what was answered."""
    plays = {name: [[each.label, each.asked, each.answer] for each in play] for name, play in played.items()}
    file.write_text(json.dumps({"state": _state(), "plays": plays}))


def load(file: Path) -> dict[str, list[Exchange]]:
    """Read what was answered, to these very requests."""
    told: Any = json.loads(file.read_text())
    assert told["state"] == _state(), f"{file} was recorded with other requests: record it again"
    return {name: [Exchange(*each) for each in play] for name, play in told["plays"].items()}
