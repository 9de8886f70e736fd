"""The types of checks: what each asks, and how a probe of the kinds declares it.

A new type has an action in `kinds/health.py`, a check here, and a run in `real_prober.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from urllib.parse import urlsplit

import msgspec

from steersman.workloads.environment import inherits
from steersman.workloads.kinds import ExecProbe, ExecutableProbe, HttpProbe, ProbeAction, TcpProbe

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


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


def _unchanged(words: tuple[str, ...]) -> tuple[str, ...]:
    return words


class ProbedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """What the checks of a workload need to know of it."""

    expand: Callable[[str], str]
    """Expands the templates of a text. Raises `NotYet` or `TemplateError`."""
    env: Mapping[str, str] = {}
    """The variables of the programs that probes run."""
    folder: str = "/"
    user: str = ""
    command: Callable[[tuple[str, ...]], tuple[str, ...]] = _unchanged
    """Wraps the words of an exec probe, such as in ``podman exec``."""
    process: int = 0
    """The only process whose tree TCP checks, and HTTP checks of ``ports``, reach: another program says nothing about it."""
    ports: Collection[int] = ()


def check_of(action: ProbeAction, workload: ProbedWorkload) -> Check:
    """The check that a probe of a workload declares, with its templates expanded."""
    expand = workload.expand
    match action:
        case HttpProbe():
            url = expand(action.url)
            headers = tuple((each.name, expand(each.value)) for each in action.headers or ())
            return HttpCheck(url, headers, workload.process if _loopback_port(url) in workload.ports else 0)
        case TcpProbe():
            return TcpCheck(action.host, action.port, workload.process if action.host in _LOOPBACK else 0)
        case ExecProbe():
            program, *args = workload.command(tuple(map(expand, action.command)))
            return CommandCheck(program, tuple(args), workload.env, workload.folder, workload.user)
        case ExecutableProbe():
            spec = action.executable_template.spec
            own = {each.name: expand(each.value) for each in spec.env or ()}
            return CommandCheck(
                spec.executable_path,
                tuple(map(expand, spec.args or ())),
                {**workload.env, **own} if inherits(spec.ambient_environment) else own,
                spec.working_directory or workload.folder,
                workload.user,
            )


def _loopback_port(url: str) -> int:
    """The port of a URL on this machine; 0 for any other."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return 0
    return port if parts.hostname in _LOOPBACK else 0
