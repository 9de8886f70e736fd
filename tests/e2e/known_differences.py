"""The specs of passing.txt that do not pass on the embedded server, each with the cause."""

from __future__ import annotations

KNOWN: dict[str, str] = {}
