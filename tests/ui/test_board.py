"""The Board: rows in words, joined output, actions, and what happens when the connection is gone."""

import asyncio
import json
from contextlib import aclosing

import pytest
from ui.project import Line, print_line, print_lines, shop, until

from steersman import aio
from steersman.application import DEPENDS_ON
from steersman.client import MergePatch
from steersman.objects import Condition, MicroTime, ObjectMeta, OwnerReference
from steersman.ui import ActionRefused, Board
from steersman.ui.joined_logs import BYTES_MAX
from steersman.ui.rows import Objects, rows_of
from steersman.workloads.kinds import (
    RESTARTED_AT,
    AddedProbe,
    AddedProbeSchedule,
    Executable,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableSpec,
    ExecutableStatus,
    ExecutableTemplate,
    HealthProbeResult,
    ProcessAdditions,
    ProcessObservation,
    RestartPolicy,
    Service,
    TcpProbe,
)
from steersman.workloads.kinds.service import ServiceObservation, ServiceSpec, ServiceStatus


@pytest.fixture
async def project(tmp_path):
    async with shop(tmp_path) as project:
        yield project


async def lines_of(board, count, **options):
    """The first lines."""
    found = []
    async with asyncio.timeout(60), aclosing(board.logs(**options)) as lines:
        async for line in lines:
            found.append(line)
            if len(found) == count:
                break
    return found


# rows


async def test_a_service_that_runs_has_its_address_and_its_pid(project):
    await project.process("web")
    await project.port("web", "web", port=8080)
    async with Board(project.client, project="shop") as board:
        row = await until(board, "web", lambda row: row.state == "running" and row.addresses)
        assert (row.kind, row.ready, row.replicas, row.health) == ("process", 1, 1, "")
        assert row.addresses == ("localhost:8080",)
        assert row.pid == project.processes.started[0].pid
        assert row.since is not None
        assert board.connected


def program(name, state, *needs, probed=False, health="Healthy", waiting_for=None):
    """The set and the Executable of a service in a state, which depends on others by Compose's conditions."""
    named = {"steersman.dev/service": name, "steersman.dev/project": "shop"}
    depends = json.dumps([{"service": other, "condition": condition} for other, condition in needs])
    probes = (
        [AddedProbe(name="p", tcp=TcpProbe(port=1), schedule=AddedProbeSchedule(interval="1s"))] if probed else None
    )
    spec = ExecutableSpec(executable_path=name, steersman=ProcessAdditions(health_probes=probes))
    workload = ExecutableReplicaSet(
        metadata=ObjectMeta(name=name, uid=name, labels=named, annotations={"steersman.dev/depends-on": depends}),
        spec=ExecutableReplicaSetSpec(template=ExecutableTemplate(spec=spec)),
    )
    owner = OwnerReference(api_version="v1", kind="ExecutableReplicaSet", name=name, uid=name)
    run = Executable(metadata=ObjectMeta(name=f"{name}-1", labels=named, owner_references=[owner]), spec=spec)
    observed = ProcessObservation(waiting_for=waiting_for)
    run.status = ExecutableStatus(state=state, health_status=health, pid=7 if state else None, steersman=observed)
    return workload, run


def served(name, problem=""):
    """The Service of a service, whose port another program may have."""
    named = {"steersman.dev/service": name, "steersman.dev/project": "shop"}
    service = Service(metadata=ObjectMeta(name=name, labels=named), spec=ServiceSpec(port=8080))
    condition = Condition(type="Served", status="False" if problem else "True", reason="Why", message=problem)
    service.status = ServiceStatus(conditions=[condition], steersman=ServiceObservation(message=problem or None))
    return service


def rows_by_name(*programs, services=()):
    objects = Objects(
        replica_sets={each.key.name: each for each, _ in programs},
        executables={each.key.name: each for _, each in programs},
        services={each.key.name: each for each in services},
    )
    return {row.name: row for row in rows_of(objects, now=aio.utc_now())}


def test_the_exit_code_of_a_program_that_a_signal_ended_is_that_of_a_shell():
    """``up --exit-code-from`` exits with it, and -9 would be 247."""
    killed, ended = program("killed", "Finished"), program("ended", "Finished")
    killed[1].status.exit_code, ended[1].status.exit_code = -9, 3
    rows = rows_by_name(killed, ended)
    assert (rows["killed"].exit_code, rows["ended"].exit_code) == (137, 3)


@pytest.mark.parametrize(("order", "expected"), [("7", 7), ("²", 0), ("9" * 5000, 0), ("-1", 0), ("", 0)])
def test_an_order_that_is_no_number_does_not_end_the_board(order, expected):
    """Any user of the API can write the annotation."""
    web = program("web", "Running")
    web[0].metadata.annotations = {"steersman.dev/order": order}
    assert rows_by_name(web)["web"].order == expected


def test_a_service_whose_port_another_program_has_fails_with_its_dependents():
    """A browser at that address would show the other program, and a migration would change its data."""
    programs = (
        program("db", "Running"),
        program("migrate", "", ("db", "service_started"), waiting_for="ExecutableReplicaSet db to be served"),
        program("web", "", ("migrate", "service_completed_successfully")),
        program("other", "Running"),
    )
    rows = rows_by_name(*programs, services=[served("db", "Service db: port 8080 is in use by nginx, pid 7")])
    db, migrate, web = rows["db"], rows["migrate"], rows["web"]
    assert (db.state, db.ready, db.addresses, db.retried) == ("failed", 0, (), True)
    assert db.message == "port 8080 is in use by nginx, pid 7"
    assert (migrate.state, migrate.message, migrate.retried) == ("failed", "db has failed, and it waits for db", True)
    assert migrate.waiting_for == "", "the message says it, with the reason"
    assert (web.state, web.message) == ("failed", "migrate has failed, and it waits for migrate")
    assert rows["other"].state == "running"
    free = rows_by_name(*programs, services=[served("db")])
    assert (free["db"].state, free["db"].addresses) == ("running", ("localhost:8080",))
    assert (free["migrate"].state, free["migrate"].retried) == ("waiting", False)


def test_an_unhealthy_service_fails_those_that_wait_for_its_health():
    rows = rows_by_name(
        program("db", "Running", probed=True, health="Unhealthy"),
        program("web", "", ("db", "service_healthy")),
        program("log", "", ("db", "service_started")),
    )
    assert (rows["db"].state, rows["db"].retried) == ("running", False)
    assert (rows["web"].state, rows["web"].message) == ("failed", "db is unhealthy, and it waits for db")
    assert rows["log"].state == "waiting"
    slow = rows_by_name(
        program("db", "Running", probed=True, health="Caution"), program("web", "", ("db", "service_healthy"))
    )
    assert slow["web"].state == "waiting", "its retries are not used up"


def refusing(name):
    """The Service of a service whose proxy has reported that nothing takes connections."""
    service = served(name)
    service.status.steersman = ServiceObservation(message="nothing listens at 127.0.0.1:8000, so connections wait")
    return service


def test_a_healthy_service_has_no_message_of_an_earlier_refusal():
    """The proxy reports later than the check that has just connected: the failure is over."""
    healthy, starting, other = (
        rows_by_name(each, services=[refusing("web")])["web"]
        for each in (
            program("web", "Running", probed=True),
            program("web", "Running", probed=True, health="Caution"),
            program("web", "Running"),
        )
    )
    assert (healthy.health, healthy.message, healthy.addresses) == ("healthy", "", ("localhost:8080",))
    assert starting.message == "nothing listens at 127.0.0.1:8000, so connections wait"
    assert other.message == starting.message, "without a check, the proxy is the one that knows"


def test_the_reason_is_that_of_the_unhealthy_replica():
    """The message of a healthy replica would hide why the service is unhealthy."""
    workload, first = program("web", "Running", probed=True)
    _, second = program("web", "Running", probed=True, health="Unhealthy")
    second.metadata.name = "web-2"
    second.status.health_probe_results = [
        HealthProbeResult(
            outcome="Failure", timestamp=MicroTime.of(aio.utc_now()), probe_name="p", reason="connection refused: :1"
        )
    ]
    objects = Objects(replica_sets={"web": workload}, executables={"web-1": first, "web-2": second})
    (row,) = rows_of(objects, now=aio.utc_now())
    assert (row.health, row.message) == ("unhealthy", "connection refused: :1 (health check)")


async def test_a_service_says_what_it_waits_for_without_names_of_kinds(project):
    await project.process("db")
    await project.process("migrate", depends_on=(("db", "service_started"),))
    await project.process("web", depends_on=(("migrate", "service_completed_successfully"),))
    async with Board(project.client, project="shop") as board:
        row = await until(board, "web", lambda row: row.waiting_for == "migrate to complete")
        assert row.state == "waiting"
        assert row.depends_on == (("migrate", "completed"),)
        (await project.started("migrate")).exit(0)
        await until(board, "web", lambda row: row.state == "running" and not row.waiting_for)
        row = await until(board, "migrate", lambda row: row.state == "finished")
        assert row.exit_code == 0
        assert [row.name for row in board.rows] == ["db", "migrate", "web"]


async def test_a_crash_shows_its_exit_code_and_the_next_restart(project):
    await project.process("web", restart=RestartPolicy(policy="OnFailure", delay="3s"))
    await project.process("job")
    async with Board(project.client, project="shop") as board:
        web, job = await project.started("web"), await project.started("job")
        web.exit(3)
        job.exit(4)
        row = await until(board, "web", lambda row: row.summary == "restarting")
        assert row.state in {f"restarting in {seconds} s" for seconds in range(4)}
        assert "exit code 3" in row.message
        row = await until(board, "web", lambda row: row.state == "running")
        assert row.restarts == 1
        assert row.exit_code is None
        row = await until(board, "job", lambda row: row.state == "failed")
        assert row.exit_code == 4


async def test_a_program_that_cannot_start_says_why(project):
    project.processes.failures["/bin/web"] = "There is no program /bin/web."
    await project.process("web")
    async with Board(project.client, project="shop") as board:
        row = await until(board, "web", lambda row: row.state == "failed")
        assert row.message == "There is no program /bin/web."


async def test_replicas_and_containers_of_a_service_are_one_row(project):
    await project.process("web", replicas=2)
    await project.container("cache-1", "cache")
    await project.container("cache-2", "cache")
    async with Board(project.client, project="shop") as board:
        row = await until(board, "web", lambda row: row.ready == 2)
        assert row.replicas == 2
        row = await until(board, "cache", lambda row: row.ready == 2)
        assert (row.kind, row.state, row.replicas) == ("container", "running", 2)


async def test_a_block_begins_with_the_rows_of_the_present(project):
    for number in range(20):
        await project.process(f"s{number:02}")
    async with Board(project.client, project="shop") as board:
        assert len(board.rows) == 20
        assert board.connected


async def test_other_projects_are_not_shown(project):
    await project.process("web")
    async with Board(project.client, project="other") as board:
        assert board.rows == ()
        assert board.connected


# connection


async def test_a_lost_connection_is_shown_and_comes_back_with_what_was_missed(project):
    await project.process("web")
    lines = []
    client = project.client.with_transport(lambda inner: lines.append(Line(inner)) or lines[0])
    async with Board(client, project="shop") as board:
        await until(board, "web", lambda row: row.state == "running")
        assert board.connected
        await lines[0].cut()
        async with asyncio.timeout(60):
            while board.connected:
                await board.wait_changed()
        assert [row.name for row in board.rows] == ["web"], "the last state stays visible"
        (await project.started("web")).exit(1)
        lines[0].is_cut = False
        await until(board, "web", lambda row: row.state == "failed")
        async with asyncio.timeout(60):
            while not board.connected:
                await board.wait_changed()


# logs


async def test_lines_of_all_services_come_in_the_order_of_their_times(project):
    await project.process("web")
    await project.process("db")
    web, db = await project.started("web"), await project.started("db")
    for number in range(3):
        print_line(web, f"web {number}")
        print_line(db, f"db {number}", stream="stderr")
    async with Board(project.client, project="shop") as board:
        await until(board, "db", lambda row: row.state == "running")
        found = await lines_of(board, 6, follow=False)
        assert [line.text for line in found] == ["web 0", "db 0", "web 1", "db 1", "web 2", "db 2"]
        assert {(line.service, line.stream) for line in found} == {("web", "stdout"), ("db", "stderr")}
        only = await lines_of(board, 3, names=["db"], follow=False)
        assert {line.service for line in only} == {"db"}


async def test_a_follower_gets_the_lines_of_the_next_run(project):
    await project.process("web", restart=RestartPolicy(policy="Always", delay="10ms"))
    async with Board(project.client, project="shop") as board, aclosing(board.logs()) as lines:
        first = await project.started("web")
        print_line(first, "one")
        async with asyncio.timeout(60):
            assert (await anext(lines)).text == "one"
            first.exit(0)
            second = await project.started("web", 2)
            print_line(second, "two")
            line = await anext(lines)
        assert line.text == "two"
        assert line.service == "web"


async def test_output_that_is_too_fast_is_dropped_with_a_note_and_hides_no_other_service(project):
    await project.process("loud")
    await project.process("calm")
    loud, calm = await project.started("loud"), await project.started("calm")
    async with Board(project.client, project="shop") as board:
        await until(board, "calm", lambda row: row.state == "running")
        async with aclosing(board.logs()) as lines, asyncio.timeout(60):
            print_line(loud, "begin")
            assert (await anext(lines)).text == "begin"
            moments = (f"2030-01-01T00:00:{number // 1000:02}.{number % 1000:03}000Z" for number in range(60_000))
            print_lines(loud, (f"{moment} {number} {'x' * 100}\n" for number, moment in enumerate(moments)))
            print_line(calm, "still here")
            # The reader is busy elsewhere.
            await asyncio.sleep(1)
            found = []
            async for line in lines:
                found.append(line)
                if line.text.startswith("59999 ") or len(found) > 60_000:
                    break
        assert "still here" in [line.text for line in found]
        dropped = sum(line.dropped for line in found)
        shown = [line for line in found if line.service == "loud" and not line.dropped]
        assert dropped + len(shown) == 60_000
        assert dropped > 0
        assert "too fast" in next(line.text for line in found if line.dropped)
        assert sum(len(line.text) for line in shown) < 10 * BYTES_MAX


# actions


async def test_stop_start_and_restart_do_what_they_say(project):
    await project.process("web")
    async with Board(project.client, project="shop") as board:
        await until(board, "web", lambda row: row.state == "running")
        await board.stop("web")
        annotations = (await project.client.get(ExecutableReplicaSet, "web")).metadata.annotations
        assert annotations["steersman.dev/stopped"] == "true"
        row = await until(board, "web", lambda row: row.state == "stopped")
        assert row.message == ""
        await board.start("web")
        await until(board, "web", lambda row: row.state == "running")
        await board.restart("web")
        await project.started("web", 3)
        await until(board, "web", lambda row: row.state == "running")
        annotations = (await project.client.get(ExecutableReplicaSet, "web")).metadata.annotations
        assert "steersman.dev/stopped" not in annotations
        assert annotations["steersman.dev/restarted-at"].endswith("Z")


async def test_a_restart_reaches_the_dependents_that_ask_for_it(project):
    """depends_on with restart: true, as in Compose: a client reconnects to a database that a command restarts."""
    restart = json.dumps([{"service": "db", "condition": "service_started", "restart": "true"}])
    through = json.dumps([{"service": "api", "condition": "service_started", "restart": "true"}])
    for name, needs in {"db": "[]", "api": restart, "web": through, "job": restart, "other": "[]"}.items():
        await project.process(name)
        patch = MergePatch({"metadata": {"annotations": {DEPENDS_ON: needs}}})
        await project.client.patch(ExecutableReplicaSet, name, patch)
    async with Board(project.client, project="shop") as board:
        for name in ("db", "api", "web", "job", "other"):
            await until(board, name, lambda row: row.state == "running")
        await board.stop("job")
        await until(board, "job", lambda row: row.state == "stopped" and row.restarts_with == ("db",))
        await board.restart("db")
        found = await project.client.list(ExecutableReplicaSet)
        restarted = {each.key.name for each in found if RESTARTED_AT in (each.metadata.annotations or {})}
        assert restarted == {"db", "api", "web"}


async def test_an_unknown_name_is_refused_with_the_nearest_one(project):
    await project.process("worker")
    async with Board(project.client, project="shop") as board:
        await until(board, "worker", lambda row: row.state == "running")
        with pytest.raises(ActionRefused, match="did you mean worker"):
            await board.restart("wroker")
