"""Health probes and their results."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from steersman.markers import ListMap, Maximum, Minimum, MinItems, MinLength
from steersman.objects import MicroTime, Struct
from steersman.workloads.kinds.environment import AmbientEnvironment, Duration, EnvVar

HealthStatus = Literal["Healthy", "Caution", "Unhealthy"]
ProbeOutcome = Literal["Success", "Failure", "Unknown"]


class ProbeSchedule(Struct):
    """When a probe runs.

    Until its first success a probe runs every 100 ms, if its interval is longer than that.
    """

    kind: Literal["Continuous", "UntilSuccess"] = "Continuous"
    interval: Duration
    timeout: Duration | None = None
    """How long one run may take; the interval if unset."""
    initial_delay: Duration | None = None


class HttpHeader(Struct):
    """A header of the request that a probe sends."""

    name: Annotated[str, MinLength(1)]
    value: str = ""


class HttpProbe(Struct):
    """Succeeds if a GET request is answered with a status below 400."""

    url: Annotated[str, MinLength(1)]
    headers: Annotated[list[HttpHeader], ListMap("name")] | None = None


class ProbeProgram(Struct):
    """The program of an Executable probe: an Executable without probes of its own."""

    executable_path: Annotated[str, MinLength(1)]
    working_directory: str | None = None
    args: list[str] | None = None
    env: Annotated[list[EnvVar], ListMap("name")] | None = None
    env_files: list[str] | None = None
    ambient_environment: AmbientEnvironment | None = None


class ProbeTemplate(Struct):
    """The Executable that a probe runs."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    spec: ProbeProgram


class ExecutableProbe(Struct):
    """Succeeds if a program ends with exit code 0."""

    executable_template: ProbeTemplate


class HealthProbe(Struct):
    """A probe of the health of a process or a container, as DCP declares it."""

    name: Annotated[str, MinLength(1)]
    type: Literal["HTTP", "Executable"]
    http_probe: HttpProbe | None = None
    executable_probe: ExecutableProbe | None = None
    schedule: ProbeSchedule
    annotations: dict[str, str] | None = None

    @property
    def action(self) -> HttpProbe | ExecutableProbe:
        """What the probe does."""
        found = self.http_probe or self.executable_probe
        assert found is not None, "the rules require it"
        return found


class TcpProbe(Struct):
    """Succeeds if a connection is accepted."""

    port: Annotated[int, Minimum(1), Maximum(65535)]
    host: str = "127.0.0.1"


class ExecProbe(Struct):
    """Succeeds if a command ends with exit code 0, in the environment of the process or inside the container."""

    command: Annotated[list[str], MinItems(1)]


#: What a probe of `AddedProbe` does, and what any probe does.
AddedAction = TcpProbe | ExecProbe | HttpProbe
ProbeAction = AddedAction | ExecutableProbe
#: The actions that connect to the workload.
NETWORK_ACTIONS: Final = (TcpProbe, HttpProbe)


class AddedProbeSchedule(ProbeSchedule):
    """When a probe runs, and from which failure on the workload is unhealthy."""

    failure_threshold: Annotated[int, Minimum(1)] = 1
    """After how many failures in a row the probe fails; its outcome stays as it was until then.

    Before the first success, failures count once in each interval.
    """
    start_period: Duration | None = None
    """How long after the start failures do not count, until the first success."""


class AddedProbe(Struct):
    """A probe of the health of a process or a container, with the types and options that Steersman adds."""

    name: Annotated[str, MinLength(1)]
    tcp: TcpProbe | None = None
    exec: ExecProbe | None = None
    http: HttpProbe | None = None
    schedule: AddedProbeSchedule

    @classmethod
    def of(cls, name: str, action: AddedAction, schedule: AddedProbeSchedule) -> Self:
        """A probe with this action."""
        match action:
            case TcpProbe():
                return cls(name=name, tcp=action, schedule=schedule)
            case ExecProbe():
                return cls(name=name, exec=action, schedule=schedule)
            case HttpProbe():
                return cls(name=name, http=action, schedule=schedule)

    @property
    def action(self) -> AddedAction:
        """What the probe does."""
        found = self.tcp or self.exec or self.http
        assert found is not None, "the rules require it"
        return found


class HealthProbeResult(Struct):
    """The latest result of a probe."""

    outcome: ProbeOutcome
    timestamp: MicroTime
    probe_name: str
    reason: str | None = None
