"""A probe as data, and the interface of what runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

import msgspec


class HttpCheck(msgspec.Struct, frozen=True):
    """Succeeds if a GET request is answered with a status below 400."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    process: int = 0
    """The process whose tree must listen at the port, at 127.0.0.1 or ::1; 0: any program may answer."""


class TcpCheck(msgspec.Struct, frozen=True):
    """Succeeds if a connection is accepted."""

    host: str
    port: int
    process: int = 0
    """The process whose tree must listen at the port, at 127.0.0.1 or ::1; 0: any program may answer."""


class CommandCheck(msgspec.Struct, frozen=True):
    """Succeeds if a program ends with exit code 0."""

    program: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    folder: str = "/"
    user: str = ""
    """The user that it runs as, as in `Launch`; empty for the user of the control plane."""


class ImpossibleCheck(msgspec.Struct, frozen=True):
    """Always fails: a template in it cannot be filled in, or not yet."""

    reason: str


Check = HttpCheck | TcpCheck | CommandCheck | ImpossibleCheck


def subject(check: Check) -> str:
    """What a check asks, in a word."""
    match check:
        case HttpCheck():
            return check.url
        case TcpCheck():
            return f"{check.host}:{check.port}"
        case CommandCheck():
            return check.program
        case ImpossibleCheck():
            return check.reason


def place_of(check: HttpCheck | TcpCheck) -> tuple[str, int]:
    """The host and port that a check asks."""
    if isinstance(check, TcpCheck):
        return check.host, check.port
    parts = urlsplit(check.url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """When a probe runs, in seconds."""

    interval: float
    timeout: float
    initial_delay: float = 0.0
    until_success: bool = False
    """Whether the first success is the last run."""
    failure_threshold: int = 1
    """After how many failures in a row the probe fails."""
    start_period: float = 0.0
    """How long failures do not count, until the first success."""


class Probe(msgspec.Struct, frozen=True):
    """A check with a name and a schedule; all templates are expanded."""

    name: str
    check: Check
    schedule: Schedule


class Verdict(msgspec.Struct, frozen=True):
    """What one run of a check found."""

    succeeded: bool
    reason: str = ""
    """Why it failed, as a sentence's part: what, then where, because a narrow view cuts the end."""


#: Called once with the verdict of a check, in a later turn of the event loop.
OnVerdict = Callable[[Verdict], None]
SUCCESS = Verdict(succeeded=True)


class Run(Protocol):
    """A run of a check."""

    def cancel(self) -> object:
        """Cancel the run. It leaves nothing behind and reports nothing."""
        ...


class Prober(Protocol):
    """Runs checks. It never raises for a check that fails: that is a verdict."""

    def start(self, check: Check, timeout: float, report: OnVerdict) -> Run:
        """Run a check once, for at most ``timeout`` seconds."""
        ...


def overdue(check: Check, timeout: float) -> Verdict:
    """The verdict of a check that timed out."""
    return Verdict(succeeded=False, reason=f"no result within {timeout:g} s: {subject(check)}")
