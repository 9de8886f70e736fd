"""Executables on simulated processes: every state and every rule once."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta

import pytest
from workloads.plane import Plane, until_true, workloads_plane

from samples.eventually import eventually
from steersman.client import Deleted, Modified
from steersman.errors import Conflict
from steersman.objects import Condition, Key, MicroTime, find_condition
from steersman.workloads.controllers.executables import FINALIZER
from steersman.workloads.kinds import (
    AddedProbe,
    AddedProbeSchedule,
    Dependency,
    Endpoint,
    EnvVar,
    Executable,
    HealthProbe,
    HttpProbe,
    ProbeSchedule,
    ProcessAdditions,
    TcpProbe,
)
from steersman.workloads.monitored_process import started_at
from steersman.workloads.probes import HttpCheck, SimulatedProber, TcpCheck, Verdict
from steersman.workloads.processes import Ended, Exited, Lost, Refused, SimulatedPersistentProcesses, SimulatedProcesses


@pytest.fixture
def processes() -> SimulatedProcesses:
    return SimulatedProcesses()


@pytest.fixture
async def plane(tmp_path, processes):
    async with workloads_plane(tmp_path, processes, ambient={"PATH": "/bin", "AMBIENT": "yes"}) as plane:
        yield plane


def condition(status, kind: str) -> Condition:
    found = find_condition(status.conditions, kind)
    assert found is not None
    return found


async def test_a_program_starts_and_its_status_says_so(plane: Plane, processes):
    """State "" -> Running."""
    await plane.executable(args=["--port", "80"], env=[EnvVar(name="MODE", value="dev")])
    status = await plane.until_state("web", "Running")
    launch = processes.started[0].launch
    assert (launch.program, launch.args) == ("/bin/web", ("--port", "80"))
    assert launch.env == {"PATH": "/bin", "AMBIENT": "yes", "MODE": "dev"}
    assert (status.pid, status.effective_args) == (1000, ["--port", "80"])
    assert status.startup_timestamp is not None
    assert status.std_out_file == launch.stdout
    assert status.health_status == "Healthy"
    assert {each.type: each.status for each in status.conditions or ()} == {
        "Started": "True",
        "Healthy": "True",
        "Completed": "False",
        "Ready": "True",
    }


@pytest.mark.parametrize(("code", "health"), [(0, "Caution"), (3, "Unhealthy")])
async def test_a_program_that_ends_by_itself_is_finished(plane: Plane, processes, code, health):
    """State Running -> Finished, with the exit code; Completed holds for exit code 0 alone."""
    await plane.executable()
    await plane.until_state("web", "Running")
    processes.started[0].exit(code)
    status = await plane.until_state("web", "Finished")
    assert (status.exit_code, status.health_status) == (code, health)
    assert status.finish_timestamp is not None
    assert condition(status, "Completed").status == ("True" if code == 0 else "False")
    assert status.steersman is not None
    assert status.steersman.message == f"Ended with exit code {code}."


async def test_a_short_run_passes_through_legal_states(plane: Plane, processes):
    """A program that ended before the first status write still goes "" -> Running or Starting -> Finished."""
    processes.on_start = lambda process: asyncio.get_running_loop().call_soon(process.exit, 0)
    async with plane.client.watch(Executable) as watch:
        await plane.executable()
        states = [""]
        async with asyncio.timeout(60):
            async for event in watch:
                state = event.object.status.state if event.object.status is not None else ""
                if state != states[-1]:
                    states.append(state)
                if state == "Finished":
                    break
    assert states in (
        ["", "Starting", "Finished"],
        ["", "Starting", "Running", "Finished"],
        ["", "Running", "Finished"],
    )


async def test_a_program_that_cannot_start_says_why(plane: Plane, processes):
    """State "" -> FailedToStart."""
    processes.failures["/bin/web"] = "/bin/web: No such file or directory"
    await plane.executable()
    status = await plane.until_state("web", "FailedToStart")
    assert status.steersman is not None
    assert status.steersman.message == "/bin/web: No such file or directory"
    assert status.health_status == "Unhealthy"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"env_files": ["missing.env"]}, "Cannot read the file of variables missing.env: No such file or directory."),
        ({"args": ['{{portForServing "api"}}']}, "Service api, which this workload does not produce"),
        ({"args": ["a\0b"]}, "contains a zero byte"),
    ],
)
async def test_a_spec_that_cannot_be_launched_says_why(plane: Plane, processes, spec, message):
    await plane.executable(**spec)
    status = await plane.until_state("web", "FailedToStart")
    assert status.steersman is not None
    assert message in (status.steersman.message or "")
    assert processes.started == []


async def test_a_stop_ends_in_terminated(plane: Plane, processes):
    """States Running -> Stopping -> Terminated; the stop signal and the timeout are those of the spec."""
    added = ProcessAdditions(stop_signal="INT", stop_timeout="200ms")
    await plane.executable(added=added)
    await plane.until_state("web", "Running")
    processes.started[0].ignores_signals = True
    await plane.stop("web")
    await plane.until("web", lambda status: status.state == "Stopping" and status.steersman.descendants == 1)
    status = await plane.until_state("web", "Terminated")
    assert (status.exit_code, processes.started[0].signals) == (-9, [2])


@pytest.mark.parametrize("ignores_signals", [False, True])
async def test_a_deletion_writes_a_status_only_if_the_process_takes_time_to_end(
    plane: Plane, processes, ignores_signals
):
    """The end of a session deletes everything at once: a state that no client can see would make it last twice as long."""
    await plane.executable(added=ProcessAdditions(stop_timeout="200ms"))
    await plane.until_state("web", "Running")
    processes.started[0].ignores_signals = ignores_signals
    states: set[str] = set()
    async with asyncio.timeout(60), plane.client.watch(Executable) as events:
        await plane.client.delete(Executable, "web")
        async for event in events:
            if isinstance(event, Modified) and event.object.status is not None:
                states.add(event.object.status.state)
            if isinstance(event, Deleted):
                break
    assert states == ({"Running", "Stopping"} if ignores_signals else {"Running"})


async def test_a_process_of_another_user_is_named(plane: Plane, processes):
    await plane.executable()
    await plane.until_state("web", "Running")
    processes.started[0].ignores_signals = True
    await plane.stop("web")
    await plane.until_state("web", "Stopping")
    processes.started[0].emit(Refused((77,)))
    status = await plane.until("web", lambda status: "77" in (status.steersman.message or ""))
    assert status.steersman is not None
    assert "Cannot end the processes 77: they run as another user" in (status.steersman.message or "")
    processes.started[0].exit(-9)


async def test_a_program_that_is_held_back_starts_later(plane: Plane, processes):
    """State "" while spec.start is false; then Running."""
    await plane.executable(start=False)
    status = await plane.until("web", lambda status: status.steersman is not None)
    assert (status.state, status.steersman and status.steersman.waiting_for) == ("", "spec.start to be true")
    found = await plane.client.get(Executable, Key("", "web"))
    found.spec.start = True
    await plane.client.update(found)
    status = await plane.until_state("web", "Running")
    assert status.steersman is not None
    assert status.steersman.waiting_for is None


async def test_a_stop_before_the_start_is_terminated(plane: Plane, processes):
    """State "" -> Terminated."""
    await plane.executable(start=False)
    await plane.until("web", lambda status: status.steersman is not None)
    await plane.stop("web")
    await plane.until_state("web", "Terminated")
    assert processes.started == []


async def test_a_lost_process_is_unknown(plane: Plane, processes):
    """State Running -> Unknown."""
    await plane.executable()
    await plane.until_state("web", "Running")
    processes.started[0].emit(Lost())
    status = await plane.until_state("web", "Unknown")
    assert status.steersman is not None
    assert "its exit code is unknown" in (status.steersman.message or "")


async def test_deletion_waits_for_the_process(plane: Plane, processes):
    """The finalizer stays until nothing is left."""
    await plane.executable(added=ProcessAdditions(stop_timeout="1h"))
    await plane.until_state("web", "Running")
    process = processes.started[0]
    process.ignores_signals = True
    await plane.client.delete(Executable, Key("", "web"))
    await plane.until_state("web", "Stopping")
    found = await plane.client.get(Executable, Key("", "web"))
    assert found.metadata.finalizers == [FINALIZER]
    process.exit(-9)
    await plane.until_gone("web")


async def test_deletion_before_the_start_is_immediate(plane: Plane, processes):
    await plane.executable(start=False)
    await plane.until("web", lambda status: status.steersman is not None)
    await plane.client.delete(Executable, Key("", "web"))
    await plane.until_gone("web")
    assert processes.started == []


async def test_conflicting_status_writes_start_nothing_twice(plane: Plane, processes, monkeypatch):
    """The record says that the program was started, even if two status writes in a row are refused."""
    from steersman.controller import ReconcileClient
    from steersman.errors import ApiStatus

    saved, refused = ReconcileClient.save, 0

    async def save(self, obj):
        nonlocal refused
        if isinstance(obj, Executable) and refused < 2:
            refused += 1
            raise Conflict(ApiStatus(message="changed", reason="Conflict", code=409), tried="update")
        return await saved(self, obj)

    monkeypatch.setattr(ReconcileClient, "save", save)
    await plane.executable()
    await plane.until_state("web", "Running")
    assert (refused, len(processes.started)) == (2, 1)


async def test_an_object_that_lost_its_finalizer_leaves_no_process(plane: Plane, processes):
    """A forced deletion ends the process too, and a successor of the same name waits for that."""
    await plane.executable()
    await plane.until_state("web", "Running")
    processes.started[0].ignores_signals = True
    found = await plane.client.get(Executable, Key("", "web"))
    found.metadata.finalizers = None
    await plane.client.update(found)
    await plane.client.delete(Executable, Key("", "web"))
    await plane.until_gone("web")
    await plane.executable()
    await plane.until("web", lambda status: status.steersman and "pid 1000" in (status.steersman.waiting_for or ""))
    processes.started[0].exit(-9)
    status = await plane.until_state("web", "Running")
    assert status.pid == 1001


async def test_a_template_waits_for_its_service(plane: Plane, processes):
    """State Starting while a service has no address; then Running with it."""
    await plane.executable(env=[EnvVar(name="DB", value='{{addressFor "db"}}:{{portFor "db"}}')])
    status = await plane.until_state("web", "Starting")
    assert status.steersman is not None
    assert status.steersman.waiting_for == "Service db to be created"
    await plane.service("db", None, None)
    await plane.until("web", lambda status: "to get an address" in (status.steersman.waiting_for or ""))
    await plane.service("db", "127.0.0.1", 5432)
    await plane.until_state("web", "Running")
    assert processes.started[0].launch.env["DB"] == "127.0.0.1:5432"


async def test_a_stop_while_a_service_is_missing_fails_the_start(plane: Plane, processes):
    """State Starting -> FailedToStart: it never ran."""
    await plane.executable(args=['{{portFor "db"}}'])
    await plane.until_state("web", "Starting")
    await plane.stop("web")
    await plane.until_state("web", "FailedToStart")


async def test_a_producer_gets_a_port_and_an_endpoint_while_it_runs(plane: Plane, processes):
    await plane.executable(
        annotations={"service-producer": '[{"serviceName": "api"}, {"serviceName": "web", "port": 8080}]'},
        args=['{{addressForServing "api"}}:{{portForServing "api"}}', '{{portForServing "web"}}'],
    )
    await plane.until_state("web", "Running")
    assert processes.started[0].launch.args == ("127.0.0.1:20000", "8080")

    expected = {("api", "127.0.0.1", 20000), ("web", "127.0.0.1", 8080)}

    async def has_endpoints() -> bool:
        found = await plane.client.list(Endpoint)
        return {(each.spec.service_name, each.spec.address, each.spec.port) for each in found} == expected

    await until_true(has_endpoints)
    processes.started[0].exit(0)
    expected.clear()
    await until_true(has_endpoints)
    await plane.client.delete(Executable, Key("", "web"))
    await plane.until_gone("web")
    assert "executable/web/api" in plane.ports.released


async def test_dependencies_hold_an_executable_back(plane: Plane, processes):
    """State "" with waitingFor in words, until every dependency is met."""
    needs = [
        Dependency(kind="Executable", name="migrate", condition="Completed"),
        Dependency(kind="Service", name="db"),
    ]
    await plane.executable(added=ProcessAdditions(depends_on=needs))
    status = await plane.until("web", lambda status: status.steersman is not None)
    assert status.state == ""
    assert status.steersman is not None
    assert status.steersman.waiting_for == "Executable migrate to be created; Service db to be created"
    await plane.executable("migrate", executable_path="/bin/migrate")
    await plane.until_state("migrate", "Running")
    await plane.service("db", "127.0.0.1", 1, ready=True)
    await plane.until("web", lambda s: s.steersman.waiting_for == "Executable migrate to complete: It is Running.")
    processes.started[0].exit(0)
    await plane.until_state("web", "Running")


async def test_a_failed_dependency_is_explained(plane: Plane, processes):
    needs = [Dependency(kind="Executable", name="migrate", condition="Completed")]
    await plane.executable("migrate")
    await plane.executable(added=ProcessAdditions(depends_on=needs))
    await plane.until_state("migrate", "Running")
    processes.started[0].exit(1)
    expected = "Executable migrate to complete: Ended with exit code 1."
    await plane.until("web", lambda status: status.steersman and status.steersman.waiting_for == expected)
    assert len(processes.started) == 1


async def test_a_cycle_of_dependencies_is_named(plane: Plane, processes):
    """Each would wait for the other for ever, so both say why."""
    for name, other in (("web", "api"), ("api", "web")):
        await plane.executable(name, added=ProcessAdditions(depends_on=[Dependency(kind="Executable", name=other)]))
    words = "the dependencies form a cycle: Executable web -> Executable api -> Executable web"
    await plane.until("web", lambda status: words in ((status.steersman and status.steersman.waiting_for) or ""))
    assert processes.started == []


TCP = AddedProbe(name="port", tcp=TcpProbe(port=80), schedule=AddedProbeSchedule(interval="50ms"))
#: The check of a simulated process, whose shim has pid 1: it reaches only the descendants of the shim.
CHECK = TcpCheck("127.0.0.1", 80, 1)


async def test_probes_decide_the_health(tmp_path, processes):
    """No result: Caution; a failure: Unhealthy; success: Healthy."""
    prober = SimulatedProber()
    prober.verdicts[CHECK] = Verdict(succeeded=False, reason="connection refused")
    async with workloads_plane(tmp_path, processes, prober=prober) as plane:
        await plane.executable(added=ProcessAdditions(health_probes=[TCP]))
        status = await plane.until("web", lambda status: status.health_status == "Unhealthy")
        assert status.state == "Running"
        assert condition(status, "Healthy").message == "Probe port: connection refused."
        prober.verdicts[CHECK] = Verdict(succeeded=True)
        status = await plane.until("web", lambda status: status.health_status == "Healthy")
        assert [each.outcome for each in status.health_probe_results or ()] == ["Success"]
        assert condition(status, "Ready").status == "True"


async def test_a_start_up_deadline_fails_the_start(tmp_path, processes):
    """States Starting -> FailedToStart; the process is stopped."""
    prober = SimulatedProber()
    prober.verdicts[CHECK] = Verdict(succeeded=False, reason="connection refused")
    async with workloads_plane(tmp_path, processes, prober=prober) as plane:
        await plane.executable(added=ProcessAdditions(health_probes=[TCP], startup_deadline="300ms"))
        await plane.until_state("web", "Starting")
        status = await plane.until_state("web", "FailedToStart")
        assert status.steersman is not None
        assert status.steersman.message == "Not healthy within 300ms. Probe port: connection refused."
        assert processes.running == []


async def test_a_healthy_start_meets_its_deadline(tmp_path, processes):
    """State Starting -> Running when the probes succeed."""
    prober = SimulatedProber()
    async with workloads_plane(tmp_path, processes, prober=prober) as plane:
        await plane.executable(added=ProcessAdditions(health_probes=[TCP], startup_deadline="10s"))
        await plane.until_state("web", "Running")


async def test_secrets_are_masked_in_the_status(plane: Plane):
    await plane.executable(env=[EnvVar(name="DB_PASSWORD", value="hunter2")])
    status = await plane.until_state("web", "Running")
    assert {each.name: each.value for each in status.effective_env or ()}["DB_PASSWORD"] == "********"


async def test_a_persistent_process_survives_and_is_adopted(tmp_path, processes):
    """Mode persistent: neither the object's nor the control plane's end stops it; the same key adopts it."""
    known = SimulatedPersistentProcesses()
    async with workloads_plane(tmp_path, processes, persistent=known) as plane:
        await plane.executable(mode="persistent")
        await plane.until_state("web", "Running")
        await eventually(lambda: known.known["web"].pid == 1000)
        await plane.client.delete(Executable, Key("", "web"))
        await plane.until_gone("web")
        assert len(processes.running) == 1
        await plane.executable(mode="persistent")
        status = await plane.until_state("web", "Running")
        assert status.pid == 1000
    async with workloads_plane(tmp_path, processes, persistent=known) as plane:
        await plane.executable(mode="persistent")
        status = await plane.until_state("web", "Running")
        assert (status.pid, len(processes.started)) == (1000, 1)
        await plane.stop("web")
        await plane.until_state("web", "Terminated")
        assert (processes.running, known.known) == ([], {})


async def test_a_persistent_process_survives_also_if_its_object_lost_its_finalizer(tmp_path, processes):
    """A forced deletion must not end what outlives its object; a successor adopts it."""
    async with workloads_plane(tmp_path, processes, persistent=SimulatedPersistentProcesses()) as plane:
        await plane.executable(mode="persistent")
        await plane.until_state("web", "Running")
        found = await plane.client.get(Executable, Key("", "web"))
        found.metadata.finalizers = None
        await plane.client.update(found)
        await plane.client.delete(Executable, Key("", "web"))
        await plane.until_gone("web")
        await plane.executable(mode="persistent")
        status = await plane.until_state("web", "Running")
        assert (status.pid, processes.started[0].signals) == (1000, [])


async def test_another_lifecycle_key_replaces_a_persistent_process(tmp_path, processes):
    known = SimulatedPersistentProcesses()
    async with workloads_plane(tmp_path, processes, persistent=known) as plane:
        await plane.executable(mode="persistent")
        await plane.until_state("web", "Running")
        await plane.client.delete(Executable, Key("", "web"))
        await plane.until_gone("web")
        await plane.executable(mode="persistent", args=["--new"])
        status = await plane.until_state("web", "Running")
        assert status.pid == 1001
        assert [each.pid for each in processes.running] == [1001]


async def test_mode_cleanup_adopts_and_never_starts(tmp_path, processes):
    """State "" -> NotFound without a process; with one: Running, and deletion ends it."""
    known = SimulatedPersistentProcesses()
    async with workloads_plane(tmp_path, processes, persistent=known) as plane:
        await plane.executable(mode="cleanup")
        await plane.until_state("web", "NotFound")
        assert processes.started == []
        await plane.client.delete(Executable, Key("", "web"))
        await plane.until_gone("web")
        await plane.executable(mode="persistent")
        await plane.until_state("web", "Running")
        await plane.client.delete(Executable, Key("", "web"))
        await plane.until_gone("web")
        await plane.executable(mode="cleanup")
        await plane.until_state("web", "Running")
        await plane.client.delete(Executable, Key("", "web"))
        await plane.until_gone("web")
        assert (processes.running, known.known) == ([], {})


async def test_a_persistent_executable_that_is_held_back_is_not_found(tmp_path, processes):
    """State NotFound -> Running when spec.start is set."""
    async with workloads_plane(tmp_path, processes) as plane:
        await plane.executable(mode="persistent", start=False)
        await plane.until_state("web", "NotFound")
        found = await plane.client.get(Executable, Key("", "web"))
        found.spec.start = True
        await plane.client.update(found)
        await plane.until_state("web", "Running")


def http_probe(url: str) -> HealthProbe:
    return HealthProbe(name="http", type="HTTP", http_probe=HttpProbe(url=url), schedule=ProbeSchedule(interval="1s"))


async def test_a_probe_reaches_another_service(tmp_path, processes):
    """Templates in probes: a service without an address is no success, and its address ends the wait."""
    prober = SimulatedProber()
    async with workloads_plane(tmp_path, processes, prober=prober) as plane:
        await plane.executable(health_probes=[http_probe('http://{{addressFor "db"}}:{{portFor "db"}}/')])
        status = await plane.until("web", lambda it: bool(it.health_probe_results))
        assert status.health_status == "Unhealthy"
        assert [each.reason for each in status.health_probe_results or ()] == ["waits for Service db to be created"]
        await plane.service("db", "127.0.0.1", 5432)
        await plane.until("web", lambda it: it.health_status == "Healthy")
    assert HttpCheck("http://127.0.0.1:5432/") in prober.runs


async def test_a_probe_with_an_impossible_template_fails_and_the_status_goes_on(tmp_path, processes):
    async with workloads_plane(tmp_path, processes) as plane:
        await plane.executable(health_probes=[http_probe('http://127.0.0.1:{{portForServing "other"}}/')])
        status = await plane.until("web", lambda it: bool(it.health_probe_results))
        assert (status.state, status.health_status) == ("Running", "Unhealthy")
        [result] = status.health_probe_results or ()
        assert "which this workload does not produce" in (result.reason or "")


async def held_back(plane: Plane, **spec: object) -> None:
    """A persistent Executable in state NotFound."""
    await plane.executable(mode="persistent", start=False, **spec)
    await plane.until_state("web", "NotFound")


async def set_start(plane: Plane) -> None:
    found = await plane.client.get(Executable, Key("", "web"))
    found.spec.start = True
    await plane.client.update(found)


async def test_not_found_becomes_starting_while_a_service_is_missing(plane: Plane):
    """State NotFound -> Starting."""
    await held_back(plane, args=['{{portFor "db"}}'])
    await set_start(plane)
    await plane.until_state("web", "Starting")


async def test_not_found_becomes_terminated_by_a_stop(plane: Plane):
    """State NotFound -> Terminated."""
    await held_back(plane)
    await plane.stop("web")
    await plane.until_state("web", "Terminated")


async def test_not_found_becomes_failed_to_start(plane: Plane, processes):
    """State NotFound -> FailedToStart."""
    processes.failures["/bin/web"] = "/bin/web: No such file or directory"
    await held_back(plane)
    await set_start(plane)
    await plane.until_state("web", "FailedToStart")


async def test_a_program_whose_descendants_live_on_is_stopping_until_they_end(plane: Plane, processes):
    """State Running -> Stopping -> Finished: it stopped by itself."""
    await plane.executable()
    await plane.until_state("web", "Running")
    processes.started[0].emit(Exited(0))
    await plane.until_state("web", "Stopping")
    processes.started[0].emit(Ended())
    assert (await plane.until_state("web", "Finished")).exit_code == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_monitored_process_is_named_by_pid_and_timestamp(plane: Plane, processes):
    """A process that has the pid of an ended one is not monitored: the start fails."""
    began = started_at(os.getpid())
    assert began is not None
    named = {"mode": "persistent", "monitor_pid": os.getpid()}
    await plane.executable("other", monitor_timestamp=MicroTime.of(began - timedelta(minutes=1)), **named)
    status = await plane.until_state("other", "FailedToStart")
    assert status.steersman is not None
    assert f"has ended: pid {os.getpid()} began at " in (status.steersman.message or "")
    await plane.executable("web", monitor_timestamp=MicroTime.of(began), **named)
    await plane.until_state("web", "Running")
    assert [each.launch.monitor_pid for each in processes.started] == [os.getpid()]
