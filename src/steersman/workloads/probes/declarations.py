"""Probes as the kinds declare them, turned into `Probe`."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.objects import parse_duration
from steersman.workloads.kinds import AddedProbe, AddedProbeSchedule, HealthProbe, ProbeAction, ProbeSchedule
from steersman.workloads.probes.checks import Check, ImpossibleCheck, ProbedWorkload, check_of
from steersman.workloads.probes.probe import Probe, Schedule
from steersman.workloads.templates import NotYet, TemplateError


def declared_probes(probes: Iterable[HealthProbe | AddedProbe], workload: ProbedWorkload) -> tuple[Probe, ...]:
    """The probes of a workload. One with a template that cannot be expanded always fails, with the reason."""
    return tuple(Probe(each.name, _possible(each.action, workload), _schedule(each.schedule)) for each in probes)


def probe_texts(probes: Iterable[HealthProbe | AddedProbe]) -> list[str]:
    """The texts of probes in which templates can stand."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    workload = ProbedWorkload(expand=note)
    for each in probes:
        check_of(each.action, workload)
    return texts


def _possible(action: ProbeAction, workload: ProbedWorkload) -> Check:
    try:
        return check_of(action, workload)
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
