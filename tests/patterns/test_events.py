"""What a machine shows to people: events, metrics, and the columns of kubectl."""

from __future__ import annotations

import re
from typing import ClassVar

from samples.postgres import Cluster, Postgres, conditions, managed, postgres, report, settings
from steersman import Manager, MergePatch
from steersman.controller import Done
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.core_v1 import ConfigMap
from steersman.kinds.events_v1 import Event
from steersman.patterns import Failed, Outputs, StateMachine, Wait, finalizer, state
from steersman.telemetry import expose
from steersman.telemetry.names import OBJECTS, STATE_DURATION
from steersman.testing import eventually


async def told(client) -> list[tuple[str, str, str]]:
    events = sorted(await client.list(Event, namespace=client.namespace), key=lambda each: each.event_time)
    return [(each.type, each.reason, each.note.replace(f"{client.namespace}/", "")) for each in events]


async def test_events_tell_of_changes_and_of_nothing_else(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        await client.create(postgres())
        await operator.drained()
        # that a new database is not ready at once is to be expected
        assert await told(client) == []
        await report(client, "pg-primary")
        await operator.drained()
        await report(client, "pg-primary", ready=False)
        await operator.drained()
        await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
        await report(client, "pg-primary")
        await operator.drained()
        await client.patch(Postgres, "pg", MergePatch({"spec": {"replicas": 0}}))
        await operator.drained()
        events = await client.list(Event, namespace=client.namespace)
        assert sorted((each.reason, each.series.count if each.series else 1) for each in events) == [
            ("ChildrenNotReady", 1),
            ("Pruned", 1),
            ("Ready", 2),
        ]
        assert sorted(await told(client)) == [
            ("Normal", "ChildrenNotReady", "Deployment pg-primary: 0 of 1 replica is ready"),
            ("Normal", "Pruned", "ConfigMap pg-replica-0 is no longer declared and was deleted"),
            ("Normal", "Ready", "all states are complete"),
        ]


class Troubled(StateMachine[Postgres], children=(ConfigMap,)):
    trouble: ClassVar[str] = ""

    @state(condition="FirstReady")
    async def first(self, pg: Postgres, out: Outputs) -> Done | Wait | Failed:
        match self.trouble:
            case "fail":
                return Failed("there is no image", reason="NoImage")
            case "raise":
                raise ConnectionError("no answer")
            case "wait":
                return Wait("for the weather")
            case _:
                return Done()


async def test_a_problem_is_one_event(control_plane, monkeypatch):
    client = control_plane.client
    async with control_plane.running(managed(Troubled())) as operator:
        for number, trouble in enumerate(("wait", "fail", "fail", "", "raise", "")):
            monkeypatch.setattr(Troubled, "trouble", trouble)
            if not number:
                await client.create(postgres())
            await client.patch(Postgres, "pg", MergePatch({"spec": {"replicas": number}}))
            if trouble == "raise":
                await eventually(lambda: operator.runs[-1][1].failures >= 3)
            else:
                await operator.drained()
        await operator.drained()
    assert await told(client) == [
        ("Warning", "NoImage", "there is no image"),
        ("Normal", "Ready", "Postgres pg is ready"),
        ("Warning", "Error", "ConnectionError: no answer"),
    ]


async def test_a_child_of_another_owner_is_reported_and_waited_for(control_plane):
    client = control_plane.client
    await client.create(settings("pg-storage", mine="yes"))
    async with control_plane.running(managed(Cluster())) as operator:
        await client.create(postgres())
        await operator.drained()
        await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        status, reason, message = conditions(pg)["Ready"]
        assert (status, reason) == ("False", "NotOurs")
        assert "ConfigMap" in message
        assert [(kind, reason) for kind, reason, _ in await told(client)] == [("Warning", "NotOurs")]
        assert (await client.get(ConfigMap, "pg-storage")).data == {"mine": "yes"}
        await client.delete(ConfigMap, "pg-storage")
        await operator.drained()
        assert conditions(await client.get(Postgres, "pg"))["StorageReady"][0] == "True"


async def test_suspending_and_resuming_are_events(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Troubled())) as operator:
        await client.create(postgres())
        for value in ("holiday", None):
            patch = MergePatch({"metadata": {"labels": {"steersman.dev/suspend": value}}})
            await client.patch(Postgres, "pg", patch)
            await operator.drained()
    assert (await told(client))[-2:] == [
        (
            "Normal",
            "Suspended",
            "label steersman.dev/suspend=holiday: Steersman applies, prunes and finalizes nothing until the label is removed",
        ),
        ("Normal", "Resumed", "label steersman.dev/suspend is gone"),
    ]


def series(manager: Manager, name: str) -> dict[str, float]:
    text = expose(manager.registry)[1].decode()
    return {labels: float(value) for labels, value in re.findall(rf"^{name}{{(.*?)}} (\S+)$", text, re.MULTILINE)}


async def test_objects_are_counted_by_the_reason_of_their_readiness(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        manager = operator.manager
        for name in ("a", "b", "c"):
            await client.create(postgres(name))
        await operator.drained()
        waiting = 'controller="postgres",ready="False",reason="ChildrenNotReady"'
        ready = 'controller="postgres",ready="True",reason="Ready"'
        assert series(manager, OBJECTS.name) == {waiting: 3}
        await report(client, "a-primary")
        await client.delete(Postgres, "b")
        await operator.drained()
        assert series(manager, OBJECTS.name) == {waiting: 1, ready: 1}
        assert series(manager, "steersman_convergence_seconds_count") == {'controller="postgres"': 1}

        await client.patch(Postgres, "a", MergePatch({"metadata": {"labels": {"steersman.dev/suspend": "yes"}}}))
        await operator.drained()
        assert series(manager, "steersman_suspended_objects") == {'controller="postgres"': 1}
        await client.delete(Postgres, "a")
        await client.delete(Postgres, "c")
        await operator.drained()
        assert series(manager, "steersman_suspended_objects") == {'controller="postgres"': 0}
        assert series(manager, OBJECTS.name) == {}
        counts = series(manager, f"{STATE_DURATION.name}_count")
        assert counts['controller="postgres",state="storage"'] >= counts['controller="postgres",state="replicas"'] >= 1
        await manager.remove("postgres")
        assert series(manager, f"{STATE_DURATION.name}_count") == {}
        assert series(manager, "steersman_suspended_objects") == {}


class CleansUp(StateMachine[Postgres], children=(ConfigMap,)):
    @state(condition="FirstReady")
    async def first(self, pg: Postgres, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done:
        return Done()


async def test_an_object_that_was_cleaned_up_is_counted_no_longer(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(CleansUp())) as operator:
        await client.create(postgres())
        await operator.drained()
        assert series(operator.manager, OBJECTS.name) == {'controller="postgres",ready="True",reason="Ready"': 1}
        await client.delete(Postgres, "pg")
        await operator.drained()
        assert await client.find(Postgres, "pg") is None
        assert series(operator.manager, OBJECTS.name) == {}


async def test_an_object_that_was_ready_before_the_start_tells_nothing_of_how_long_that_took(control_plane, clock):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        await client.create(postgres())
        await operator.drained()
        await clock.advance(40)
        await report(client, "pg-primary")
        await operator.drained()
        assert 40 <= series(operator.manager, "steersman_convergence_seconds_sum")['controller="postgres"'] < 60
    async with control_plane.running(managed(Cluster())) as operator:
        await operator.drained()
        assert operator.runs_of("pg")
        assert series(operator.manager, "steersman_convergence_seconds_count") == {}
        await client.patch(Postgres, "pg", MergePatch({"spec": {"version": "18"}}))
        await operator.drained()
        assert series(operator.manager, "steersman_convergence_seconds_count") == {'controller="postgres"': 1}


async def test_kubectl_shows_what_is_waited_for(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        await client.create(postgres())
        await operator.drained()
        await report(client, "pg-primary", ready=False)
        await operator.drained()
        await client.create(postgres("other"))
        await eventually(client, Deployment, "other-primary")
        await report(client, "other-primary")
        await operator.drained()
        shown = await control_plane.kubectl("get", "postgreses")
    assert [re.split(r" {2,}", line.strip()) for line in shown.splitlines()] == [
        ["NAME", "READY", "REASON", "MESSAGE"],
        ["other", "True", "Ready", "all states are complete"],
        ["pg", "False", "ChildrenNotReady", "Deployment pg-primary: 0 of 1 replica is ready"],
    ]
