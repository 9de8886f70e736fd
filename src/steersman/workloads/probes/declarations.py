"""Probes as the kinds declare them, turned into `Probe`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

from steersman.objects import parse_duration
from steersman.workloads.kinds import AddedProbe, AddedProbeSchedule, HealthProbe, HttpProbe, ProbeSchedule
from steersman.workloads.probes.probe import Check, CommandCheck, HttpCheck, ImpossibleCheck, Probe, Schedule, TcpCheck
from steersman.workloads.templates import NotYet, TemplateError

ProbeT = TypeVar("ProbeT")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def declared_probes(
    probes: Iterable[HealthProbe],
    added: Iterable[AddedProbe],
    *,
    expand: Callable[[str], str],
    env: Mapping[str, str],
    folder: str,
    user: str = "",
    command: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda words: words,
    process: int = 0,
    ports: Collection[int] = (),
) -> tuple[Probe, ...]:
    """The probes of a workload.

    ``expand`` expands templates; a probe whose templates it cannot expand always fails, with the reason. Programs of both
    kinds of probes run as ``user`` with ``env`` in ``folder``. ``command`` wraps the words of an exec probe, such as in
    ``podman exec``. TCP probes, and HTTP probes of these ``ports``, reach only listeners of ``process`` and its
    descendants: another program at the port says nothing about the workload.
    """

    def http(probe: HttpProbe) -> HttpCheck:
        url = expand(probe.url)
        headers = tuple((each.name, expand(each.value)) for each in probe.headers or ())
        return HttpCheck(url, headers, process if _loopback_port(url) in ports else 0)

    def checked(probe: HealthProbe) -> Check:
        if probe.http_probe is not None:
            return http(probe.http_probe)
        assert probe.executable_probe is not None, "the kind's rules require it"
        program = probe.executable_probe.executable_template.spec
        inherits = program.ambient_environment is None or program.ambient_environment.behavior == "Inherit"
        own = {each.name: expand(each.value) for each in program.env or ()}
        return CommandCheck(
            program.executable_path,
            tuple(expand(each) for each in program.args or ()),
            {**env, **own} if inherits else own,
            program.working_directory or folder,
            user,
        )

    def checked_addition(probe: AddedProbe) -> Check:
        if probe.tcp is not None:
            return TcpCheck(probe.tcp.host, probe.tcp.port, process if probe.tcp.host in _LOOPBACK else 0)
        if probe.http is not None:
            return http(probe.http)
        assert probe.exec is not None, "the kind's rules require it"
        program, *args = command(tuple(expand(each) for each in probe.exec.command))
        return CommandCheck(program, tuple(args), env, folder, user)

    return (
        *(Probe(each.name, _possible(checked, each), _schedule(each.schedule)) for each in probes),
        *(Probe(each.name, _possible(checked_addition, each), _schedule(each.schedule)) for each in added),
    )


def _loopback_port(url: str) -> int:
    """The port of a URL on this machine; 0 for any other."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return 0
    return port if parts.hostname in _LOOPBACK else 0


def probe_texts(probes: Collection[HealthProbe], added: Collection[AddedProbe]) -> list[str]:
    """The texts of probes in which templates can stand."""
    texts: list[str] = []
    for http in (*(probe.http_probe for probe in probes), *(probe.http for probe in added)):
        if http is not None:
            texts += [http.url, *(each.value for each in http.headers or ())]
    for probe in probes:
        if probe.executable_probe is not None:
            program = probe.executable_probe.executable_template.spec
            texts += [*(program.args or ()), *(each.value for each in program.env or ())]
    return texts + [word for probe in added if probe.exec is not None for word in probe.exec.command]


def _possible(check_of: Callable[[ProbeT], Check], probe: ProbeT) -> Check:
    try:
        return check_of(probe)
    except NotYet as error:
        return ImpossibleCheck(f"waits for {error}")
    except TemplateError as error:
        return ImpossibleCheck(str(error))


def _schedule(declared: ProbeSchedule) -> Schedule:
    interval = parse_duration(declared.interval).total_seconds()
    threshold, start_period = 1, None
    if isinstance(declared, AddedProbeSchedule):
        threshold, start_period = declared.failure_threshold, declared.start_period
    return Schedule(
        interval=interval,
        timeout=parse_duration(declared.timeout).total_seconds() if declared.timeout else interval,
        initial_delay=parse_duration(declared.initial_delay).total_seconds() if declared.initial_delay else 0.0,
        until_success=declared.kind == "UntilSuccess",
        failure_threshold=threshold,
        start_period=parse_duration(start_period).total_seconds() if start_period else 0.0,
    )
