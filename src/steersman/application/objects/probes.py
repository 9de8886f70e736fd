"""Turns the health check of a service into probes."""

from __future__ import annotations

from datetime import timedelta

from steersman.application.model import ServiceDefinition
from steersman.application.objects.translation_context import TranslationContext, set_fields
from steersman.objects import format_duration
from steersman.workloads.kinds import AddedProbe, AddedProbeSchedule, TcpProbe

_NAME = "healthcheck"


def duration(seconds: float) -> str:
    """Seconds in Go's notation."""
    return format_duration(timedelta(seconds=seconds))


def probes(translation: TranslationContext, definition: ServiceDefinition) -> list[AddedProbe] | None:
    """The probes for ``spec.steersman.healthProbes``."""
    check = definition.healthcheck
    if check is None:
        return None
    if check.start_interval is not None:
        translation.remarks.warn(
            definition,
            "healthcheck: start_interval has no effect; the check runs every 100 ms until its first success",
        )
    schedule = AddedProbeSchedule(
        interval=duration(check.interval),
        timeout=duration(check.timeout),
        failure_threshold=check.retries,
        **set_fields(start_period=duration(check.start_period) if check.start_period else None),
    )
    action = check.action
    if isinstance(action, TcpProbe):
        action = TcpProbe(port=_tcp_port(translation, definition, action.port))
    return [AddedProbe.of(_NAME, action, schedule)]


def _tcp_port(translation: TranslationContext, definition: ServiceDefinition, port: int) -> int:
    """The port that the process itself listens on: the proxy accepts connections before the process does."""
    if not definition.is_process:
        translation.remarks.error(
            definition, "healthcheck: tcp works only for processes: use test, which runs inside the container"
        )
    for served in translation.ports[definition.name]:
        if port in {served.published_at, served.port.target}:
            if served.listens_at is None:
                translation.remarks.error(
                    definition,
                    f"healthcheck: tcp {port} is the port of the proxy; each process gets its own port when it starts:"
                    " use http or test",
                )
            return served.listens_at or port
    return port
