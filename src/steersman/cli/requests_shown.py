"""Requests as lines for a person who watches a server."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

#: So much is shown of a path with its query, which may be long.
_WIDTH = 120
#: From here on seconds are what people count in.
_LONG = 1.0


def show_request(event: dict[str, Any]) -> None:
    """Print how a request ended, and of a watch that it began: an audit hook."""
    came = datetime.fromisoformat(event["requestReceivedTimestamp"])
    took = datetime.fromisoformat(event["stageTimestamp"]) - came
    seconds = took.total_seconds()
    how = f"{seconds:.1f} s" if seconds >= _LONG else f"{seconds * 1000:.1f} ms"
    if event["stage"] == "ResponseStarted":
        how = "begins"
    status: dict[str, Any] = event["responseStatus"]
    who = event.get("impersonatedUser", event["user"])["username"]
    agent = event.get("userAgent", "").partition(" ")[0]
    where: str = event["requestURI"]
    if len(where) > _WIDTH:
        where = f"{where[:_WIDTH]}..."
    line = f"{came.astimezone():%H:%M:%S} {status['code']} {event['verb']:<6} {where}  {who}  {how}"
    print(f"{line}  {agent}".rstrip(), file=sys.stderr)
    if status["code"] >= 400 and status.get("message"):
        print(f"         {status['message']}", file=sys.stderr)
