"""Passes of a state machine over objects of a control plane."""

from __future__ import annotations

from typing import Annotated, ClassVar

import pytest

from samples.postgres import (
    GROUP,
    Cluster,
    Postgres,
    PostgresSpec,
    PostgresStatus,
    conditions,
    deployment,
    managed,
    postgres,
    report,
    settings,
    statuses,
)
from steersman import MergePatch, ObjectMeta, Resource, Status, TerminalError
from steersman.aio import utc_now
from steersman.controller import Done, RequeueAfter
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.markers import Maximum
from steersman.objects import find_condition
from steersman.patterns import Failed, Goto, Next, Outputs, StateMachine, Wait, reconciles, state
from steersman.testing import Plane, eventually
from steersman.testing.embedded_host import EmbeddedHost
from steersman.testing.plugin import namespace_for

MANAGER = "databases"


async def test_a_pass_stops_at_the_first_state_that_is_not_complete_and_says_why(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        await client.create(postgres())
        await eventually(client, Deployment, "pg-primary")
        await report(client, "pg-primary", ready=False)
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert conditions(pg) == {
            "Ready": ("False", "ChildrenNotReady", "Deployment pg-primary: 0 of 1 replica is ready"),
            "StorageReady": ("True", "Complete", "its child is ready"),
            "PrimaryReady": ("False", "ChildrenNotReady", "Deployment pg-primary: 0 of 1 replica is ready"),
            "ReplicasReady": ("Unknown", "NotReached", "waits for PrimaryReady"),
        }
        assert pg.status.observed_generation == pg.generation
        assert pg.status.endpoint == "pg-primary:5432"
        assert await client.find(ConfigMap, "pg-replica-0") is None

        await report(client, "pg-primary")
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert set(statuses(pg).values()) == {"True"}
        assert conditions(pg)["Ready"] == ("True", "Ready", "all states are complete")
        assert await client.find(ConfigMap, "pg-replica-0") is not None


async def converged(plane, operator) -> None:
    await plane.client.create(postgres(replicas=2))
    await eventually(plane.client, Deployment, "pg-primary")
    await report(plane.client, "pg-primary")
    await operator.drained()


async def test_once_all_is_as_it_should_be_nothing_is_written(plane):
    client = plane.client
    async with plane.running(managed(Cluster()), namespaces=[plane.namespace]) as operator:
        await converged(plane, operator)
        with plane.writes() as writes:
            # the children are touched, and nothing of what was declared
            for name in ("pg-storage", "pg-replica-0"):
                await client.patch(ConfigMap, name, MergePatch({"metadata": {"labels": {"team": "db"}}}))
            await operator.drained()
        assert len(operator.runs) >= 3
        assert writes.by(MANAGER) == []
        assert writes.by(f"{MANAGER}/postgres") == []
    with plane.writes() as writes:
        async with plane.running(managed(Cluster()), namespaces=[plane.namespace]) as operator:
            await operator.drained()
    assert operator.runs_of("pg")
    assert writes == []


async def test_an_unready_primary_never_removes_a_replica(plane):
    client = plane.client
    async with plane.running(managed(Cluster()), namespaces=[plane.namespace]) as operator:
        await converged(plane, operator)
        await report(client, "pg-primary", ready=False)
        await client.patch(Postgres, "pg", MergePatch({"spec": {"replicas": 0}}))
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert statuses(pg) == {
            "Ready": "False",
            "StorageReady": "True",
            "PrimaryReady": "False",
            "ReplicasReady": "Unknown",
        }
        for number in range(2):
            assert await client.find(ConfigMap, f"pg-replica-{number}") is not None

        await report(client, "pg-primary")
        await operator.drained()
        assert await client.find(ConfigMap, "pg-replica-0") is None
        assert await client.find(ConfigMap, "pg-replica-1") is None
        assert set(statuses(await client.get(Postgres, "pg")).values()) == {"True"}


async def test_the_time_of_a_condition_moves_with_its_status_alone(control_plane, clock):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        await converged(control_plane, operator)
        before = await client.get(Postgres, "pg")
        await clock.advance(60)
        await client.patch(Postgres, "pg", MergePatch({"spec": {"version": "18"}}))
        await operator.drained()
        after = await client.get(Postgres, "pg")
        for condition in ("Ready", "StorageReady", "ReplicasReady"):
            old, new = (find_condition(each.status.conditions, condition) for each in (before, after))
            assert new.observed_generation == old.observed_generation + 1
            assert new.last_transition_time == old.last_transition_time

        await report(client, "pg-primary", ready=False)
        await operator.drained()
        last = await client.get(Postgres, "pg")
        for condition, moved in (("Ready", True), ("StorageReady", False), ("ReplicasReady", True)):
            old, new = (find_condition(each.status.conditions, condition) for each in (before, last))
            assert (new.last_transition_time > old.last_transition_time) is moved


class Panic(BaseException):
    """What extensions written in Rust raise."""


class Moody(StateMachine[Postgres], children=(ConfigMap,)):
    """Behaves as its mood says."""

    mood: ClassVar[str] = "done"

    @state(condition="FirstReady")
    async def first(self, pg: Postgres, out: Outputs) -> Next:
        out.apply(settings("first"))
        if self.mood == "done":
            out.apply(settings("first-too"))
        return Next()

    @state(condition="SecondReady")
    async def second(self, pg: Postgres, out: Outputs) -> Next | Wait | Failed:
        out.apply(settings("second", mood=self.mood))
        if self.mood == "done":
            out.apply(settings("second-too"))
        match self.mood:
            case "wait":
                return Wait("for better weather", reason="BadWeather", after=3600)
            case "fail":
                return Failed("there is no image", reason="NoImage")
            case "raise":
                raise ConnectionError("the archive does not answer")
            case "panic":
                raise Panic("out of memory")
            case "give up":
                raise TerminalError("this cannot work")
            case _:
                return Next()

    @state(condition="ThirdReady")
    async def third(self, pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("third"))
        return Done()


ALL = {"first", "first-too", "second", "second-too", "third"}


async def there(client, names=ALL) -> set[str]:
    return {name for name in names if await client.find(ConfigMap, name) is not None}


async def changed_mood(control_plane, monkeypatch, operator, mood: str) -> Postgres:
    client = control_plane.client
    monkeypatch.setattr(Moody, "mood", "done")
    await client.create(postgres())
    await operator.drained()
    assert await there(client) == ALL
    monkeypatch.setattr(Moody, "mood", mood)
    await client.patch(Postgres, "pg", MergePatch({"spec": {"version": "18"}}))
    found = await eventually(client, Postgres, "pg", has={"status": {"observedGeneration": 2}})
    await control_plane.settled()
    return found


async def test_a_state_that_waits_applies_and_prunes_nothing_of_its_own(control_plane, monkeypatch):
    client = control_plane.client
    async with control_plane.running(managed(Moody())) as operator:
        pg = await changed_mood(control_plane, monkeypatch, operator, "wait")
        assert conditions(pg) == {
            "Ready": ("False", "BadWeather", "for better weather"),
            "FirstReady": ("True", "Complete", "its child is ready"),
            "SecondReady": ("False", "BadWeather", "for better weather"),
            "ThirdReady": ("Unknown", "NotReached", "waits for SecondReady"),
        }
        # of the state that is complete, what is declared no longer is gone
        assert await there(client) == ALL - {"first-too"}
        assert (await client.get(ConfigMap, "second")).data == {"mood": "wait"}
        place = operator.controllers[0].place(operator.runs[-1][1].request)
        assert place.state == "delayed"
        assert 3500 < place.next_run <= 3600


async def test_a_state_that_failed_waits_for_a_change(control_plane, monkeypatch):
    client = control_plane.client
    async with control_plane.running(managed(Moody())) as operator:
        pg = await changed_mood(control_plane, monkeypatch, operator, "fail")
        await operator.drained()
        assert conditions(pg)["Ready"] == ("False", "NoImage", "there is no image")
        assert conditions(pg)["SecondReady"] == ("False", "NoImage", "there is no image")
        assert await there(client) == ALL - {"first-too"}
        assert operator.runs[-1][1].result == "success"
        assert operator.controllers[0].place(operator.runs[-1][1].request).state == "idle"


@pytest.mark.parametrize(
    ("mood", "message", "result"),
    [
        ("raise", "ConnectionError: the archive does not answer", "error"),
        ("panic", "Panic: out of memory", "error"),
        ("give up", "this cannot work", "terminal_error"),
    ],
)
async def test_a_state_that_raises_applies_nothing_and_the_pass_prunes_nothing(
    control_plane, monkeypatch, mood, message, result
):
    client = control_plane.client
    async with control_plane.running(managed(Moody())) as operator:
        pg = await changed_mood(control_plane, monkeypatch, operator, mood)
        assert conditions(pg) == {
            "Ready": ("False", "Error", message),
            "FirstReady": ("True", "Complete", "its child is ready"),
            "SecondReady": ("False", "Error", message),
            "ThirdReady": ("Unknown", "NotReached", "waits for SecondReady"),
        }
        assert await there(client) == ALL
        assert (await client.get(ConfigMap, "second")).data == {"mood": "done"}
        await eventually(lambda: operator.runs[-1][1].result == result)
        monkeypatch.setattr(Moody, "mood", "fine")
        await client.patch(Postgres, "pg", MergePatch({"spec": {"version": "19"}}))
        await operator.drained()
        assert await there(client) == {"first", "second", "third"}
        assert set(statuses(await client.get(Postgres, "pg")).values()) == {"True"}


async def test_in_a_namespace_that_ends_nothing_is_tried_again(request):
    host = EmbeddedHost({"controllers": ()}, in_thread=False, lasting=False)
    plane = Plane(host, namespace=namespace_for(request.node.name))
    client = plane.client
    try:
        await plane.install(Postgres)
        await client.create(postgres())
        await client.delete(Namespace, plane.namespace)  # and no controller empties it
        async with plane.running(managed(Cluster())) as operator:
            await operator.drained()
            assert [record.result for _, record in operator.runs] == ["success"]
            assert conditions(await client.get(Postgres, "pg"))["Ready"] == (
                "False",
                "NamespaceTerminating",
                f"its namespace {plane.namespace} is being deleted",
            )
    finally:
        plane.end()
        host.end()


class Branching(StateMachine[Postgres], children=(Deployment, ConfigMap)):
    """Leaves its usual way while a backup is restored."""

    @state(condition="PrimaryReady", to=("restoring",))
    async def primary(self, pg: Postgres, out: Outputs) -> Next | Goto:
        out.apply(settings("primary"))
        return Goto("restoring") if pg.spec.backup else Next()

    @state(condition="ReplicasReady")
    async def replicas(self, pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("replica"))
        return Done()

    @state(condition="Restored")
    async def restoring(self, pg: Postgres, out: Outputs) -> Done | Wait:
        out.apply(deployment("restore"))
        return Done()


async def test_states_that_a_complete_pass_left_aside_have_no_condition_and_keep_their_children(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Branching())) as operator:
        await client.create(postgres())
        await operator.drained()
        assert statuses(await client.get(Postgres, "pg")) == {
            "Ready": "True",
            "PrimaryReady": "True",
            "ReplicasReady": "True",
        }
        await client.patch(Postgres, "pg", MergePatch({"spec": {"backup": "monday"}}))
        await operator.drained()
        # of the way that was left nothing is said, not even that it was not reached: the pass will not come there
        assert statuses(await client.get(Postgres, "pg")) == {
            "Ready": "False",
            "PrimaryReady": "True",
            "Restored": "False",
        }
        await report(client, "restore")
        await operator.drained()
        assert statuses(await client.get(Postgres, "pg")) == {
            "Ready": "True",
            "PrimaryReady": "True",
            "Restored": "True",
        }
        assert await client.find(ConfigMap, "replica") is not None


class Forgetful(StateMachine[Postgres], children=(ConfigMap,)):
    """Sets more in its status in one pass than in another."""

    @state(condition="FirstReady")
    async def first(self, pg: Postgres, out: Outputs) -> Next | Wait:
        pg.status = pg.status or PostgresStatus()
        if pg.spec.version == "17":
            pg.status.endpoint = "first:5432"
        return Wait("for 17") if pg.spec.version == "18" else Next()

    @state(condition="SecondReady")
    async def second(self, pg: Postgres, out: Outputs) -> Done:
        assert pg.status is not None
        pg.status.restored = pg.spec.backup
        return Done()


async def test_what_states_set_in_the_status_stays_until_they_change_it(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Forgetful())) as operator:
        await client.create(postgres(backup="monday"))
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert (pg.status.endpoint, pg.status.restored) == ("first:5432", "monday")
        # the second state is not reached, and what it said before may still be true
        await client.patch(Postgres, "pg", MergePatch({"spec": {"version": "18"}}))
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert (pg.status.endpoint, pg.status.restored) == ("first:5432", "monday")
        assert statuses(pg)["Ready"] == "False"
        await client.patch(Postgres, "pg", MergePatch({"spec": {"version": "19", "backup": None}}))
        await operator.drained()
        pg = await client.get(Postgres, "pg")
        assert (pg.status.endpoint, pg.status.restored) == ("first:5432", None)
        assert statuses(pg)["Ready"] == "True"


async def test_what_another_program_made_for_the_object_is_not_ours_to_prune(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        await converged(control_plane, operator)
        pg = await client.get(Postgres, "pg")
        await client.create(settings("theirs"), owner=pg)
        await client.patch(Postgres, "pg", MergePatch({"spec": {"replicas": 0}}))
        await operator.drained()
        assert await there(client, {"theirs", "pg-replica-0", "pg-replica-1"}) == {"theirs"}


class LimitedStatus(Status):
    share: Annotated[int, Maximum(100)] | None = None


class Limited(Resource[PostgresSpec, LimitedStatus], group=GROUP, version="v1"):
    """Its status has rules."""


class Careless(StateMachine[Limited], children=(ConfigMap,)):
    @state(condition="FirstReady")
    async def first(self, obj: Limited, out: Outputs) -> Next:
        return Next()

    @state(condition="SecondReady")
    async def second(self, obj: Limited, out: Outputs) -> Done:
        obj.status = obj.status or LimitedStatus()
        obj.status.share = obj.spec.replicas
        return Done()


async def test_a_status_that_is_not_allowed_is_reported_without_what_is_wrong(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Careless())) as operator:
        await client.create(Limited(metadata=ObjectMeta(name="it"), spec=PostgresSpec(replicas=101)))
        ready = {"type": "Ready", "status": "False", "reason": "Error"}
        found = await eventually(client, Limited, "it", has={"status": {"conditions": [ready]}})
        assert "share" in conditions(found)["Ready"][2]
        assert found.status.share is None
        assert statuses(found) == {"Ready": "False", "FirstReady": "True", "SecondReady": "False"}
        await client.patch(Limited, "it", MergePatch({"spec": {"replicas": 99}}))
        await operator.drained()
        found = await client.get(Limited, "it")
        assert (found.status.share, set(statuses(found).values())) == (99, {"True"})


class Certificate(StateMachine[Postgres], children=(ConfigMap,)):
    @state(condition="CertificateReady")
    async def certificate(self, pg: Postgres, out: Outputs) -> RequeueAfter:
        """Issued for a day, by the hour at which it was looked at."""
        out.apply(settings("certificate", issued=f"{utc_now():%dT%H}"))
        return RequeueAfter(86400)


async def test_a_state_that_is_complete_can_ask_to_be_looked_at_again(control_plane, clock):
    client = control_plane.client
    async with control_plane.running(managed(Certificate())) as operator:
        await client.create(postgres())
        await operator.drained()
        assert conditions(await client.get(Postgres, "pg"))["Ready"] == ("True", "Ready", "its child is ready")
        first = (await client.get(ConfigMap, "certificate")).data
        await clock.advance(86401)
        await operator.drained()
        assert (await client.get(ConfigMap, "certificate")).data != first


async def test_a_schedule_does_not_wait_for_a_child_that_is_not_ready(control_plane, clock):
    """A run that hangs, or a rollout that fails, would otherwise stop all later ones."""

    @reconciles(Postgres, children=(Deployment,))
    async def hourly(pg: Postgres, out: Outputs) -> RequeueAfter:
        out.apply(deployment(f"run-{utc_now():%dt%H}"))
        return RequeueAfter(3600)

    client = control_plane.client
    async with control_plane.running(managed(hourly)) as operator:
        await client.create(postgres())
        await operator.drained()
        assert conditions(await client.get(Postgres, "pg"))["Ready"][1] == "ChildrenNotReady"
        first = {each.key.name for each in await client.list(Deployment)}
        await clock.advance(3601)
        await operator.drained()
        assert not first >= {each.key.name for each in await client.list(Deployment)}
