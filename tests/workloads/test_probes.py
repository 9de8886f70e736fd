"""Probes: schedules and reports in virtual time, and checks on real sockets and processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from samples.eventually import eventually
from samples.virtual_time import run_virtual
from steersman.objects import MicroTime
from steersman.workloads.kinds import (
    AddedAction,
    AddedProbe,
    AddedProbeSchedule,
    ExecProbe,
    ExecutableProbe,
    HealthProbe,
    HealthProbeResult,
    HttpProbe,
    ProbeSchedule,
    ProcessAdditions,
    TcpProbe,
    probes_of,
)
from steersman.workloads.kinds.health import HttpHeader, ProbeProgram, ProbeTemplate
from steersman.workloads.probes import (
    Check,
    CommandCheck,
    HealthMonitor,
    HttpCheck,
    Probe,
    ProbedWorkload,
    RealProber,
    Schedule,
    SimulatedProber,
    TcpCheck,
    Verdict,
    declared_probes,
    health_of,
    probe_texts,
)
from steersman.workloads.processes import ZygoteRunner

TCP = TcpCheck("127.0.0.1", 1)
FAILED = Verdict(succeeded=False, reason="connection refused")


def probe(name: str = "tcp", check: TcpCheck = TCP, **schedule: float) -> Probe:
    return Probe(name, check, Schedule(**{"interval": 5.0, "timeout": 1.0, **schedule}))  # type: ignore[arg-type]


class Reports(list[tuple[HealthProbeResult, ...]]):
    def outcomes(self) -> list[list[str]]:
        return [[each.outcome for each in results] for results in self]


def test_a_probe_runs_every_100_ms_until_its_first_success_then_at_its_interval() -> None:
    async def run() -> list[int]:
        prober, counts = SimulatedProber(), []
        prober.verdicts[TCP] = FAILED
        async with HealthMonitor(prober) as monitor:
            monitor.watch("web", (probe(),), Reports().append)
            await asyncio.sleep(0.95)
            counts.append(len(prober.runs))
            prober.verdicts.clear()
            await asyncio.sleep(20)
            counts.append(len(prober.runs))
            prober.verdicts[TCP] = FAILED
            await asyncio.sleep(10)
            counts.append(len(prober.runs))
        return counts

    assert run_virtual(run())[0] == [10, 14, 16]


def test_a_probe_until_success_ends_with_its_first_success_and_waits_for_its_initial_delay() -> None:
    async def run() -> list[int]:
        prober, counts = SimulatedProber(), []
        async with HealthMonitor(prober) as monitor:
            monitor.watch("web", (probe(until_success=True, initial_delay=3.0),), Reports().append)
            await asyncio.sleep(2.9)
            counts.append(len(prober.runs))
            await asyncio.sleep(60)
            counts.append(len(prober.runs))
        return counts

    assert run_virtual(run())[0] == [0, 1]


def test_a_probe_fails_after_as_many_failures_in_a_row_as_its_threshold() -> None:
    """A single failure of a healthy workload changes nothing; a success begins the count anew."""

    async def run() -> list[str]:
        prober, seen = SimulatedProber(), []
        reports = Reports()
        async with HealthMonitor(prober) as monitor:
            monitor.watch("web", (probe(failure_threshold=3),), reports.append)
            # In the middle between two runs.
            await asyncio.sleep(2.5)
            for verdict in (FAILED, FAILED, None, FAILED, FAILED, FAILED, None):
                prober.verdicts.clear()
                if verdict is not None:
                    prober.verdicts[TCP] = verdict
                await asyncio.sleep(5)
                seen.append(reports.outcomes()[-1][0])
        return seen

    assert run_virtual(run())[0] == [*["Success"] * 5, "Failure", "Success"]


def test_before_the_first_success_failures_count_once_in_each_interval() -> None:
    """Runs every 100 ms do not exhaust a threshold that is meant for the interval."""

    async def run() -> list[str]:
        prober, reports, seen = SimulatedProber(), Reports(), []
        prober.verdicts[TCP] = FAILED
        async with HealthMonitor(prober) as monitor:
            monitor.watch("web", (probe(failure_threshold=3),), reports.append)
            for seconds in (1, 8, 2):
                await asyncio.sleep(seconds)
                seen.append(reports.outcomes()[-1][0])
        return seen

    assert run_virtual(run())[0] == ["Unknown", "Unknown", "Failure"]


def test_failures_in_the_start_period_do_not_count() -> None:
    """The workload is neither healthy nor unhealthy until the period is over; a success ends the period."""

    async def run(*, succeeds: bool) -> list[str]:
        prober, reports, seen = SimulatedProber(), Reports(), []
        prober.verdicts[TCP] = FAILED
        async with HealthMonitor(prober) as monitor:
            monitor.watch("web", (probe(start_period=20.0),), reports.append)
            await asyncio.sleep(10)
            seen.append(reports.outcomes()[-1][0])
            if succeeds:
                prober.verdicts.clear()
                await asyncio.sleep(0.2)
                prober.verdicts[TCP] = FAILED
                await asyncio.sleep(5.1)
            else:
                await asyncio.sleep(10.2)
            seen.append(reports.outcomes()[-1][0])
        return seen

    assert run_virtual(run(succeeds=False))[0] == ["Unknown", "Failure"]
    assert run_virtual(run(succeeds=True))[0] == ["Unknown", "Failure"]
    assert health_of(["tcp"], []) == "Caution"


def test_reports_are_changes_and_one_repetition_a_minute() -> None:
    async def run() -> list[list[str]]:
        prober, reports = SimulatedProber(), Reports()
        other = TcpCheck("127.0.0.1", 2)
        async with HealthMonitor(prober) as monitor:
            monitor.watch("web", (probe(), probe("other", other, interval=1.0)), reports.append)
            await asyncio.sleep(59)
            before = len(reports)
            await asyncio.sleep(3)
            assert len(reports) == before + 1
            prober.verdicts[other] = FAILED
            await asyncio.sleep(3)
            prober.verdicts[other] = Verdict(succeeded=False, reason="another reason")
            await asyncio.sleep(3)
        return reports.outcomes()

    both = ["Success", "Success"]
    failing = ["Success", "Failure"]
    assert run_virtual(run())[0] == [["Success"], both, both, failing, failing]


def test_watching_the_same_probes_again_goes_on_and_other_probes_begin_anew() -> None:
    async def run() -> list[list[str]]:
        prober, reports = SimulatedProber(), Reports()
        async with HealthMonitor(prober) as monitor:
            for _ in range(3):
                monitor.watch("web", (probe(),), reports.append)
                await asyncio.sleep(1)
            monitor.watch("web", (probe(interval=2.0),), reports.append)
            await asyncio.sleep(1)
            monitor.forget("web")
            monitor.forget("web")
            await asyncio.sleep(100)
        return reports.outcomes()

    assert run_virtual(run())[0] == [["Success"], ["Success"]]


@pytest.mark.parametrize(
    ("outcomes", "health"),
    [
        ({"a": "Success", "b": "Success"}, "Healthy"),
        ({"a": "Success", "b": "Failure"}, "Unhealthy"),
        ({"a": "Failure"}, "Unhealthy"),
        ({"a": "Success"}, "Caution"),
        ({"a": "Success", "b": "Unknown"}, "Caution"),
        ({}, "Caution"),
    ],
)
def test_health_is_the_sum_of_the_outcomes(outcomes, health) -> None:
    results = [_result(name, each) for name, each in outcomes.items()]
    assert health_of(("a", "b"), results) == health


def _result(name: str, outcome: str) -> HealthProbeResult:
    return HealthProbeResult(probe_name=name, outcome=outcome, timestamp=MicroTime.parse("2026-01-01T00:00:00Z"))  # type: ignore[arg-type]


PROBES = [
    HealthProbe(
        name="http",
        type="HTTP",
        http_probe=HttpProbe(url="http://{{a}}", headers=[HttpHeader(name="X", value="{{b}}")]),
        schedule=ProbeSchedule(interval="2s", timeout="500ms", initial_delay="1s", kind="UntilSuccess"),
    ),
    HealthProbe(
        name="program",
        type="Executable",
        executable_probe=ExecutableProbe(
            executable_template=ProbeTemplate(spec=ProbeProgram(executable_path="check", args=["{{a}}"]))
        ),
        schedule=ProbeSchedule(interval="2s"),
    ),
    AddedProbe(name="tcp", tcp=TcpProbe(port=80), schedule=AddedProbeSchedule(interval="2s")),
    AddedProbe(
        name="exec",
        exec=ExecProbe(command=["true", "{{b}}"]),
        schedule=AddedProbeSchedule(interval="2s", failure_threshold=3, start_period="1m"),
    ),
    AddedProbe(
        name="added",
        http=HttpProbe(url="http://{{a}}", headers=[HttpHeader(name="X", value="{{b}}")]),
        schedule=AddedProbeSchedule(interval="2s"),
    ),
]


def test_declared_probes_are_expanded() -> None:
    workload = ProbedWorkload(
        expand=lambda text: text.replace("{{a}}", "A").replace("{{b}}", "B"),
        env={"E": "1"},
        folder="/work",
        command=lambda words: ("podman", "exec", "id", *words),
    )
    plain = Schedule(interval=2, timeout=2)
    assert declared_probes(PROBES, workload) == (
        Probe(
            "http",
            HttpCheck("http://A", (("X", "B"),)),
            Schedule(interval=2, timeout=0.5, initial_delay=1, until_success=True),
        ),
        Probe("program", CommandCheck("check", ("A",), {"E": "1"}, "/work"), plain),
        Probe("tcp", TcpCheck("127.0.0.1", 80), plain),
        Probe(
            "exec",
            CommandCheck("podman", ("exec", "id", "true", "B"), {"E": "1"}, "/work"),
            Schedule(interval=2, timeout=2, failure_threshold=3, start_period=60),
        ),
        Probe("added", HttpCheck("http://A", (("X", "B"),)), plain),
    )


def test_the_texts_of_probes_are_all_that_is_expanded() -> None:
    """A text left out would keep the template of a service from being filled in."""
    assert probe_texts(PROBES) == ["http://{{a}}", "{{b}}", "{{a}}", "true", "{{b}}", "http://{{a}}", "{{b}}"]


@pytest.mark.parametrize("action", [TcpProbe(port=80), ExecProbe(command=["true"]), HttpProbe(url="http://localhost")])
def test_a_probe_has_the_action_that_it_was_made_of(action: AddedAction) -> None:
    probe = AddedProbe.of("up", action, AddedProbeSchedule(interval="1s"))
    assert probe.action is action
    assert probes_of(None, ProcessAdditions(health_probes=[probe])) == [probe]


@asynccontextmanager
async def server(answer: bytes | None) -> AsyncIterator[int]:
    """A port that answers each request with these bytes and closes; None: it never answers."""
    requests: list[bytes] = []
    open_ones: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.append(writer)
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        if answer is not None:
            writer.write(answer)
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        for writer in open_ones:
            writer.close()


@asynccontextmanager
async def prober() -> AsyncIterator[RealProber]:
    async with ZygoteRunner() as processes, RealProber(processes) as real:
        yield real


async def verdict(real: RealProber, check: Check) -> Verdict:
    found: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
    real.start(check, 20, found.set_result)
    return await found


async def first_report(real: RealProber, probe: Probe) -> tuple[HealthProbeResult, ...]:
    report: asyncio.Future[tuple[HealthProbeResult, ...]] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(60), HealthMonitor(real) as monitor:
        monitor.watch("web", (probe,), lambda results: report.done() or report.set_result(results))
        return await report


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", None),
        (b"HTTP/1.0 302 Found\r\nLocation: /gone\r\n\r\n", None),
        (b"HTTP/1.1 503 Not Ready\r\n\r\nno", "503 Not Ready: URL"),
        (b"HTTP/1.1 404\r\n\r\n", "404: URL"),
        (b"SSH-2.0-OpenSSH\r\n", "the answer is not HTTP: URL"),
        (b"", "closed without an answer: URL"),
        (None, "no result within 2 s: URL"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000, None),
    ],
)
async def test_http_checks(answer, reason) -> None:
    async with server(answer) as port, prober() as real:
        url = f"http://localhost:{port}/healthz?full=1"
        check = HttpCheck(url, (("Authorization", "Bearer x"),))
        patience = Schedule(interval=60, timeout=2 if answer is None else 50)
        [result] = await first_report(real, Probe("http", check, patience))
        assert result.outcome == ("Success" if reason is None else "Failure")
        assert result.reason == (reason and reason.replace("URL", url))


async def test_a_command_that_cannot_be_started_is_a_failure(monkeypatch) -> None:
    """The prober of the session runs the checks of all services: such a check must not end it."""
    async with prober() as real:
        found = await verdict(real, CommandCheck("tr\0ue"))
        assert found.reason.startswith("cannot start tr\0ue: an argument, a variable or a path contains a zero byte")
        monkeypatch.setattr(ZygoteRunner, "start", AsyncMock(side_effect=OSError(24, "Too many open files")))
        found = await verdict(real, CommandCheck("true"))
        assert found == Verdict(succeeded=False, reason="cannot start true: [Errno 24] Too many open files")


async def test_a_tcp_check_needs_an_open_port() -> None:
    async with prober() as real:
        async with server(None) as port:
            assert await verdict(real, TcpCheck("localhost", port)) == Verdict(succeeded=True)
        refused = await verdict(real, TcpCheck("127.0.0.1", port))
        assert refused == Verdict(succeeded=False, reason=f"connection refused: 127.0.0.1:{port}")


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://", "http://127.0.0.1:99999/", "http://127.0.0.1/\r\nX: y"])
async def test_a_url_that_cannot_be_asked_fails_the_check(url) -> None:
    async with prober() as real:
        found = await verdict(real, HttpCheck(url))
        assert not found.succeeded
        assert found.reason


async def test_a_command_check_succeeds_with_exit_code_0_and_says_why_it_failed(tmp_path) -> None:
    env = {"PATH": os.environ["PATH"]}
    async with prober() as real:

        def check(script: str) -> CommandCheck:
            return CommandCheck("sh", ("-c", script), env, str(tmp_path))

        assert await verdict(real, check("exit 0")) == Verdict(succeeded=True)
        assert await verdict(real, check("echo starting; echo no database >&2; exit 3")) == Verdict(
            succeeded=False, reason="no database: sh, exit code 3"
        )
        assert (await verdict(real, check("kill -9 $$"))).reason == "signal 9: sh"
        slow = Probe("slow", check("echo $$ > pid; sleep 300"), Schedule(interval=60, timeout=1))
        [result] = await first_report(real, slow)
        assert result.reason == "no result within 1 s: sh"
        pid = int((tmp_path / "pid").read_text())
        await eventually(lambda: not Path(f"/proc/{pid}").exists())
        missing = await verdict(real, CommandCheck("/no/such/program", (), env, str(tmp_path)))
        assert not missing.succeeded
        assert missing.reason == "No such file or directory: /no/such/program"


async def test_a_simulated_check_of_a_command_reports_what_was_set_for_it() -> None:
    """Its variables are a map, which has no hash."""
    prober, found = SimulatedProber(), list[Verdict]()
    prober.verdicts[TcpCheck("localhost", 1)] = Verdict(succeeded=False, reason="refused")
    prober.start(CommandCheck("true", env={"A": "b"}), 1.0, found.append)
    prober.start(TcpCheck("localhost", 1), 1.0, found.append)
    await eventually(lambda: len(found) == 2)
    assert [each.succeeded for each in found] == [True, False]
