"""Objects as trees, for the tables of readiness."""

from __future__ import annotations

from typing import Any

READY, WAITS, FAILED = "ready", "waits", "failed"


def condition(kind: str, status: str = "True", reason: str = "", message: str = "", **more: Any) -> dict[str, Any]:
    """A condition as it is in a status."""
    return {"type": kind, "status": status, "reason": reason, "message": message, **more}


def with_status(api_version: str, kind: str, **parts: Any) -> dict[str, Any]:
    """An object of the second generation."""
    metadata = {"name": "web", "generation": 2, **parts.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}
