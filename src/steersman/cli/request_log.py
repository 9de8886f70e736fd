"""Prints requests as lines, for people who watch a server."""

from __future__ import annotations

from datetime import datetime

from steersman.cli.console import tell
from steersman.objects import Tree
from steersman.telemetry import visible

#: The maximum length of a path with its query.
_WIDTH = 120
#: Codes from here on are rejections and failures.
_REFUSED = 400
#: From here on, times are printed in seconds.
_LONG = 1.0


def show_request(audit_event: Tree) -> None:
    """Print the end of a request, or the start of a watch: an audit hook."""
    came = datetime.fromisoformat(audit_event["requestReceivedTimestamp"])
    took = datetime.fromisoformat(audit_event["stageTimestamp"]) - came
    seconds = took.total_seconds()
    how = f"{seconds:.1f} s" if seconds >= _LONG else f"{seconds * 1000:.1f} ms"
    status: Tree = audit_event["responseStatus"]
    if audit_event["stage"] == "ResponseStarted" and status["code"] < _REFUSED:
        how = "begins"
    who = audit_event.get("impersonatedUser", audit_event["user"]).get("username", "-")
    agent = audit_event.get("userAgent", "").partition(" ")[0]
    where: str = audit_event["requestURI"]
    if len(where) > _WIDTH:
        where = f"{where[:_WIDTH]}..."
    line = f"{came.astimezone():%H:%M:%S} {status['code']} {audit_event['verb']:<6} {where}  {who}  {how}"
    tell(visible(f"{line}  {agent}".rstrip()))
    if status["code"] >= _REFUSED and status.get("message"):
        # A message may have several lines: each is indented below its request.
        for words in status["message"].split("\n"):
            tell(f"         {visible(words)}")
