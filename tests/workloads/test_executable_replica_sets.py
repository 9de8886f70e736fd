"""ExecutableReplicaSets on simulated processes and files: names, scaling, restarts, replacement."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from workloads.plane import Plane, until_true, workloads_plane

from samples.eventually import eventually
from steersman import aio
from steersman.apiserver import Attributes, Plugin
from steersman.objects import Key, is_true
from steersman.workloads.kinds import (
    Dependency,
    Executable,
    ExecutableReplicaSet,
    FileWatch,
    ProcessAdditions,
    ReplicaSetAdditions,
    RestartPolicy,
)
from steersman.workloads.processes import SimulatedProcesses


@pytest.fixture
def processes() -> SimulatedProcesses:
    return SimulatedProcesses()


@pytest.fixture
async def plane(tmp_path, processes):
    async with workloads_plane(tmp_path, processes) as plane:
        yield plane


def restarts(policy: str, **options: object) -> ReplicaSetAdditions:
    return ReplicaSetAdditions(restart=RestartPolicy(policy=policy, **{"delay": "20ms", **options}))  # type: ignore[arg-type]


class RefuseOnce(Plugin):
    """Refuses the next deletion of an Executable, or its next update, as a webhook or a full disk might."""

    def __init__(self, operation: str) -> None:
        self.operations = frozenset({operation})
        self.refused = False

    async def admit(self, attributes: Attributes) -> None:
        if not self.refused and attributes.definition.gvk.kind == "Executable" and not attributes.subresource:
            self.refused = True
            raise attributes.refused("not now")


async def names(plane: Plane) -> list[str]:
    return sorted(each.key.name for each in await plane.client.list(Executable))


async def test_children_are_named_after_parent_template_and_sequence(plane: Plane):
    await plane.replica_set(replicas=3)
    status = await plane.until_set("api", lambda status: status.running_replicas == 3)
    found = await names(plane)
    assert [re.fullmatch(r"api-[0-9a-f]{8}-(\d)", name)[1] for name in found] == ["1", "2", "3"]
    assert (status.observed_replicas, status.health_status) == (3, "Healthy")
    assert status.last_scale_time is not None
    assert all(is_true(status.conditions, kind) for kind in ("Started", "Healthy", "Ready"))


async def test_scaling_up_and_down(plane: Plane, processes):
    """Without stopOnScaleDown the latest Executables are deleted."""
    await plane.replica_set(replicas=1)
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    await plane.change_set("api", lambda each: setattr(each.spec, "replicas", 3))
    await plane.until_set("api", lambda status: status.running_replicas == 3)
    kept = (await names(plane))[0]
    await plane.change_set("api", lambda each: setattr(each.spec, "replicas", 1))
    await plane.until_set("api", lambda status: status.observed_replicas == 1)
    await eventually(lambda: len(processes.running) == 1)

    async def one_left() -> bool:
        return await names(plane) == [kept]

    await until_true(one_left)


async def test_stop_on_scale_down_keeps_the_objects(plane: Plane, processes):
    await plane.replica_set(replicas=2, stop_on_scale_down=True)
    await plane.until_set("api", lambda status: status.running_replicas == 2)
    await plane.change_set("api", lambda each: setattr(each.spec, "replicas", 1))
    await plane.until_set("api", lambda status: status.observed_replicas == 1)
    await eventually(lambda: len(processes.running) == 1)
    found = await names(plane)
    assert len(found) == 2
    await plane.until_state(found[1], "Terminated")
    await plane.change_set("api", lambda each: setattr(each.spec, "replicas", 2))
    await plane.until_set("api", lambda status: status.running_replicas == 2)
    assert len(await names(plane)) == 3


async def test_a_changed_template_replaces_the_executables(plane: Plane, processes):
    """The old process ends before the new one starts."""
    await plane.replica_set()
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    old = processes.started[0]
    old.ignores_signals = True
    await plane.change_set("api", lambda each: setattr(each.spec.template.spec, "args", ["--new"]))
    await plane.until_state((await names(plane))[0], "Stopping")
    assert len(processes.started) == 1
    old.exit(-9)
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    await eventually(lambda: len(processes.running) == 1)
    assert processes.running[0].launch.args == ("--new",)


async def test_policy_never_keeps_what_has_ended(plane: Plane, processes):
    await plane.replica_set()
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    processes.started[0].exit(1)
    status = await plane.until_set("api", lambda status: status.finished_replicas == 1)
    assert (status.observed_replicas, status.health_status) == (1, "Unhealthy")
    assert len(processes.started) == 1


async def test_policy_on_failure_restarts_failures_alone(plane: Plane, processes):
    await plane.replica_set(added=restarts("OnFailure"))
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    processes.started[0].exit(1)
    status = await plane.until_set("api", lambda s: s.steersman.restarts == 1 and s.running_replicas == 1)
    assert re.fullmatch(r"api-\w{8}-1 ended with exit code 1\.", status.steersman.last_restart_reason or "")
    processes.started[1].exit(0)
    await plane.until_set("api", lambda status: status.finished_replicas == 1)
    assert len(processes.started) == 2


async def test_the_latest_run_that_has_ended_stays_for_its_output(plane: Plane, processes):
    """A crash that is restarted at once can still be looked at; earlier ones are deleted."""
    await plane.replica_set(added=restarts("Always"))
    for number in range(3):
        await eventually(lambda number=number: len(processes.started) == number + 1)
        await plane.until_set("api", lambda status: status.running_replicas == 1)
        processes.started[number].exit(7)
    await plane.until_set("api", lambda s: s.steersman.restarts == 3 and s.running_replicas == 1)

    async def two_left() -> bool:
        return [name.rpartition("-")[2] for name in await names(plane)] == ["3", "4"]

    await until_true(two_left)
    assert (await plane.until_state((await names(plane))[0], "Finished")).exit_code == 7


async def test_policy_always_restarts_successes_too(plane: Plane, processes):
    await plane.replica_set(added=restarts("Always"))
    for number in range(3):
        await eventually(lambda number=number: len(processes.started) == number + 1)
        await plane.until_set("api", lambda status: status.running_replicas == 1)
        processes.started[number].exit(0)
    await plane.until_set("api", lambda status: status.steersman.restarts == 3 and status.running_replicas == 1)


async def test_a_program_that_cannot_start_is_restarted(plane: Plane, processes):
    processes.failures["/bin/api"] = "no such file"
    await plane.replica_set(added=restarts("OnFailure"))
    await plane.until_set("api", lambda status: status.steersman and status.steersman.restarts >= 1)
    processes.failures.clear()
    await plane.until_set("api", lambda status: status.running_replicas == 1)


async def test_the_delay_doubles_and_the_next_restart_is_announced(plane: Plane, processes):
    await plane.replica_set(added=restarts("Always", delay="1s", maximum_delay="1h"))
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    processes.started[0].exit(1)
    await eventually(lambda: len(processes.started) == 2)
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    processes.started[1].exit(1)
    status = await plane.until_set("api", lambda s: s.steersman.next_restart is not None and s.finished_replicas == 1)
    ended = max(await plane.client.list(Executable), key=lambda each: each.key.name).status
    # the delay counts from when the controller saw the end
    assert 1.75 < (status.steersman.next_restart - ended.finish_timestamp).total_seconds() < 4
    await plane.until_set("api", lambda s: s.running_replicas == 1 and s.steersman.next_restart is None)


async def test_a_clock_that_is_set_back_does_not_delay_a_restart(plane: Plane, processes, monkeypatch):
    """After an hour back, as with a wrong time zone of the hardware clock, a restart in a second would take an hour."""
    await plane.replica_set(added=restarts("Always", delay="1s"))
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    now = aio.utc_now
    with monkeypatch.context() as patch:
        patch.setattr(aio, "utc_now", lambda: now() + timedelta(hours=1))
        processes.started[0].exit(1)
        await plane.until_set("api", lambda status: status.finished_replicas == 1)
    await plane.until_set("api", lambda status: status.running_replicas == 1)


async def test_the_maximum_of_restarts_in_a_row(plane: Plane, processes):
    processes.on_start = lambda process: process.exit(1)
    await plane.replica_set(added=restarts("OnFailure", maximum_restarts=2))
    status = await plane.until_set("api", lambda s: s.steersman and "the maximum" in (s.steersman.waiting_for or ""))
    assert status.steersman.restarts == 2
    assert len(processes.started) == 3


async def test_a_stopped_executable_is_not_restarted(plane: Plane, processes):
    """A user who stops one replica wants it stopped, whatever the policy says."""
    await plane.replica_set(added=restarts("Always"))
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    await plane.stop((await names(plane))[0])
    await plane.until_set("api", lambda status: status.finished_replicas == 1)
    assert len(processes.started) == 1


async def test_a_deleted_executable_is_replaced(plane: Plane, processes):
    await plane.replica_set()
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    await plane.client.delete(Executable, Key("", (await names(plane))[0]))
    await eventually(lambda: len(processes.started) == 2)
    await plane.until_set("api", lambda status: status.running_replicas == 1)


async def test_deletion_waits_for_every_executable(plane: Plane, processes):
    await plane.replica_set(replicas=2)
    await plane.until_set("api", lambda status: status.running_replicas == 2)
    processes.started[0].ignores_signals = True
    await plane.client.delete(ExecutableReplicaSet, Key("", "api"))
    await eventually(lambda: len(processes.running) == 1)
    assert await plane.client.find(ExecutableReplicaSet, Key("", "api")) is not None
    processes.started[0].exit(-9)
    await plane.until_gone("api", ExecutableReplicaSet)
    assert await names(plane) == []


async def test_a_changed_file_restarts_and_is_named(plane: Plane, processes):
    await plane.replica_set(added=ReplicaSetAdditions(watch=FileWatch(paths=["src/**/*.py"], debounce="50ms")))
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    for _ in range(5):
        plane.files.change("src/a.py")
    status = await plane.until_set("api", lambda s: s.steersman.restarts == 1 and s.running_replicas == 1)
    assert status.steersman.last_restart_reason == "The file src/a.py has changed."
    await eventually(lambda: len(processes.running) == 1)
    assert len(processes.started) == 2


async def test_a_restart_that_a_failed_write_interrupts_is_made_once(plane: Plane, processes):
    watch = FileWatch(paths=["*"], debounce="20ms", cascade=True)
    needs_api = ProcessAdditions(depends_on=[Dependency(kind="ExecutableReplicaSet", name="api")])
    await plane.replica_set("api", replicas=2, added=ReplicaSetAdditions(watch=watch))
    await plane.replica_set("web", process=needs_api)
    await plane.until_set("api", lambda status: status.running_replicas == 2)
    await plane.until_set("web", lambda status: status.running_replicas == 1)
    refusal = RefuseOnce("DELETE")
    plane.server.admission.add(refusal)
    before = await names(plane)
    plane.files.change("src/a.py")
    await plane.until_set("web", lambda s: s.steersman.restarts == 1 and s.running_replicas == 1)
    status = await plane.until_set("api", lambda s: s.steersman.restarts == 1 and s.running_replicas == 2)
    assert refusal.refused
    assert status.steersman.last_restart_reason == "The file src/a.py has changed."
    assert not set(before) & set(await names(plane))
    assert len(processes.started) == 6


async def test_a_restart_of_the_policy_is_counted_once_if_its_write_fails(plane: Plane, processes):
    await plane.replica_set(added=restarts("Always"))
    await plane.until_set("api", lambda status: status.running_replicas == 1)
    refusal = RefuseOnce("UPDATE")
    plane.server.admission.add(refusal)
    processes.running[0].exit(1)
    status = await plane.until_set("api", lambda s: s.running_replicas == 1 and s.steersman.restarts >= 1)
    assert refusal.refused
    assert status.steersman.restarts == 1


async def test_a_restart_cascades_in_the_order_of_dependencies(plane: Plane, processes):
    """The database restarts, then the server that depends on it, then the client of the server."""
    needs_db = ProcessAdditions(depends_on=[Dependency(kind="ExecutableReplicaSet", name="db")])
    needs_api = ProcessAdditions(depends_on=[Dependency(kind="ExecutableReplicaSet", name="api")])
    watch = FileWatch(paths=["*"], debounce="20ms", cascade=True)
    await plane.replica_set("db", executable_path="db", added=ReplicaSetAdditions(watch=watch))
    await plane.replica_set("api", executable_path="api", process=needs_db)
    await plane.replica_set("web", executable_path="web", process=needs_api)
    await plane.replica_set("other", executable_path="other")
    for name in ("db", "api", "web", "other"):
        await plane.until_set(name, lambda status: status.running_replicas == 1)
    plane.files.change("schema.sql")
    for name in ("db", "api", "web"):
        await plane.until_set(name, lambda s: s.steersman.restarts == 1 and s.running_replicas == 1)
    assert [each.launch.program for each in processes.started[4:]] == ["db", "api", "web"]
    status = await plane.until_set("web", lambda _: True)
    assert status.steersman.last_restart_reason == "ExecutableReplicaSet api has restarted."
