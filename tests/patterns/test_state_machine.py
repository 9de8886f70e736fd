"""What a state machine is to a manager and to a type checker."""

from __future__ import annotations

from pathlib import Path

import pytest

from samples.postgres import Cluster, Postgres, conditions, managed, postgres, statuses
from samples.type_checkers import check_with_pyright, marked, rejected_by_mypy
from steersman import Key, Manager, MergePatch, ObjectMeta, Resource, Spec, Struct
from steersman.aio import utc_now
from steersman.controller import ChannelSource, ControllerBuilder, Done
from steersman.kinds.apps_v1 import StatefulSet
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret, Service
from steersman.kinds.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from steersman.manager import PermissionRule, permissions_of
from steersman.objects import Condition
from steersman.patterns import Next, Outputs, StateMachine, Wait, finalizer, state
from steersman.testing import eventually

ROOT = Path(__file__).parents[2]
READ = ("get", "list", "watch")
ALL = (*READ, "create", "update", "patch", "delete")


class Wide(StateMachine[Postgres], children=(StatefulSet, ClusterRole), retired=(ConfigMap,), name="wide"):
    """Has a child in no namespace, and once made others."""

    def __init__(self) -> None:
        self.bells = ChannelSource("bells")

    @state(condition="PrimaryReady")
    async def primary(self, pg: Postgres, out: Outputs) -> Done | Wait:
        if pg.spec.backup is None:
            return Wait("for the bell")
        return Done()

    def declare(self, controller: ControllerBuilder[Postgres]) -> None:
        controller.watches(Secret, map=lambda secret: [secret.key]).options(concurrency=7)


def test_a_machine_is_a_plan():
    blueprint = Wide().blueprint()
    assert (blueprint.name, blueprint.primary, blueprint.options.concurrency) == ("wide", Postgres, 7)
    assert blueprint.kinds() == {
        Postgres: False,
        StatefulSet: False,
        ClusterRole: False,
        ConfigMap: True,
        Secret: False,
    }
    assert [source.name for source in blueprint.sources] == ["bells"]
    assert blueprint.conditions == ("Ready", "PrimaryReady")
    manager = Manager(name="databases")
    manager.add(Wide())
    assert manager.own_kinds == [Postgres]


def test_what_a_machine_makes_it_may_write():
    needs = permissions_of(managed(Wide()))
    group = Postgres.gvk().group
    assert set(needs.rules) == {
        PermissionRule("", ("configmaps",), ALL),
        PermissionRule("", ("secrets",), READ),
        PermissionRule("apps", ("statefulsets",), ALL),
        PermissionRule(group, ("postgreses",), (*READ, "update", "patch")),
        PermissionRule(group, ("postgreses/finalizers",), ("update",)),
        PermissionRule(group, ("postgreses/status",), ("get", "update", "patch")),
        PermissionRule("events.k8s.io", ("events",), ("create", "patch")),
        PermissionRule("rbac.authorization.k8s.io", ("clusterroles",), ALL),
    }


async def test_a_source_of_a_machine_wakes_it(control_plane):
    client, machine = control_plane.client, Wide()
    async with control_plane.running(managed(machine)) as operator:
        await client.create(postgres())
        await operator.drained()
        runs = len(operator.runs)
        machine.bells.send(Key(control_plane.namespace, "pg"), "it rang")
        await eventually(lambda: len(operator.runs) > runs)
        assert "it rang" in str(operator.runs[-1][1].causes)


async def test_a_machine_runs_with_the_rights_that_are_written_down_for_it(control_plane):
    client = control_plane.client
    needs = permissions_of(managed(Cluster()))
    rules = [
        PolicyRule(api_groups=[each.group], resources=list(each.resources), verbs=list(each.verbs))
        for each in needs.rules
    ]
    await client.create(ClusterRole(metadata=ObjectMeta(name="databases"), rules=rules))
    binding = ClusterRoleBinding(
        metadata=ObjectMeta(name="databases"),
        role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="databases"),
        subjects=[Subject(api_group="rbac.authorization.k8s.io", kind="User", name="databases")],
    )
    await client.create(binding)
    await control_plane.install(Postgres)
    async with control_plane.running(managed(Cluster()), user="databases", install=False) as operator:
        await client.create(postgres())
        await operator.drained()
        assert {record.result for _, record in operator.runs} == {"success"}
        assert conditions(await client.get(Postgres, "pg"))["StorageReady"][0] == "True"


class Plain(StateMachine[Namespace], children=(ConfigMap,), ready="defaults.example.com/Ready"):
    @state(condition="defaults.example.com/Made")
    async def defaults(self, namespace: Namespace, out: Outputs) -> Done:
        if namespace.metadata.labels and "team" in namespace.metadata.labels:
            out.apply(ConfigMap(metadata=ObjectMeta(name="defaults", namespace=namespace.key.name)))
        return Done()


async def test_a_kind_of_kubernetes_keeps_its_own_conditions(control_plane):
    client, name = control_plane.client, control_plane.namespace
    theirs = {"type": "NamespaceContentRemaining", "status": "False", "reason": "ContentRemoved", "message": "none"}
    await client.patch(Namespace, name, MergePatch({"status": {"conditions": [theirs]}}), subresource="status")
    async with control_plane.running(managed(Plain())) as operator:
        await client.patch(Namespace, name, MergePatch({"metadata": {"labels": {"team": "db"}}}))
        await operator.drained()
        found = await client.get(Namespace, name)
        ours = {"defaults.example.com/Ready": "True", "defaults.example.com/Made": "True"}
        assert statuses(found) == {**ours, "NamespaceContentRemaining": "False"}
        assert await client.find(ConfigMap, "defaults") is not None
        with control_plane.writes() as writes:
            await client.patch(Namespace, name, MergePatch({"metadata": {"labels": {"look": "again"}}}))
            await operator.drained()
        assert [str(each) for each in writes if each.manager != "test"] == []


class AtomicStatus(Struct):
    conditions: list[Condition] | None = None
    title: str | None = None


class Atomic(Resource[Spec, AtomicStatus], group="atomic.test.steersman.dev", version="v1"):
    """Its conditions are a plain list, which has one writer or a fight."""


class Titled(StateMachine[Atomic], children=(ConfigMap,)):
    @state(condition="TitleReady")
    async def title(self, obj: Atomic, out: Outputs) -> Done:
        obj.status = obj.status or AtomicStatus()
        obj.status.title = "Hello"
        return Done()


async def test_conditions_that_cannot_be_shared_are_written_with_those_of_others(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Titled())) as operator:
        await client.create(Atomic(metadata=ObjectMeta(name="a"), spec=Spec()))
        await operator.drained()
        found = await client.get(Atomic, "a")
        found.status.conditions.append(
            Condition(type="Theirs", status="True", reason="Said", last_transition_time=utc_now())
        )
        await client.update(found, subresource="status")
        await client.patch(Atomic, "a", MergePatch({"metadata": {"labels": {"steersman.dev/suspend": "yes"}}}))
        await operator.drained()
        found = await client.get(Atomic, "a")
        assert statuses(found) == {"Ready": "True", "TitleReady": "True", "Theirs": "True", "Suspended": "True"}
        assert found.status.title == "Hello"
        with control_plane.writes() as writes:
            await client.patch(Atomic, "a", MergePatch({"metadata": {"labels": {"look": "again"}}}))
            await operator.drained()
        assert [str(each) for each in writes if each.manager != "test"] == []


class Quiet(StateMachine[ConfigMap], children=(Secret,)):
    @state(condition="PageReady")
    async def page(self, book: ConfigMap, out: Outputs) -> Done:
        if "page" in (book.metadata.labels or {}):
            out.apply(Secret(metadata=ObjectMeta(name=f"{book.key.name}-page")))
        return Done()


class Silent(StateMachine[Service], children=(ConfigMap,)):
    @state(condition="PageReady")
    async def page(self, service: Service, out: Outputs) -> Next | Wait:
        out.apply(ConfigMap(metadata=ObjectMeta(name=f"{service.key.name}-page")))
        return Next()

    @state(condition="OtherReady")
    async def other(self, service: Service, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def clean_up(self, service: Service, out: Outputs) -> Done:
        return Done()


async def test_a_kind_without_conditions_is_not_reported_on(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(Quiet())) as operator:
        with control_plane.writes() as writes:
            await client.create(ConfigMap(metadata=ObjectMeta(name="book", labels={"page": "yes"})))
            await operator.drained()
        ours = [each for each in writes if each.manager.startswith("databases")]
        assert [(each.kind, each.subresource) for each in ours] == [("Secret", "")]


def test_the_finalizer_of_a_kind_of_kubernetes_has_our_name():
    assert Silent().blueprint().reconciler.machine.finalizers(("op",)).current == "steersman.dev/op.service"


PROGRAM = """\
from typing import TypeVar

from typing_extensions import reveal_type

from steersman import Done, Object, Resource, Spec, Status
from steersman.controller import ControllerBuilder
from steersman.kinds.apps_v1 import StatefulSet
from steersman.kinds.core_v1 import Secret
from steersman.manager import Manager
from steersman.patterns import Failed, Goto, Next, Outputs, StateMachine, Wait, finalizer, state

AnyT = TypeVar("AnyT", bound=Object)


class PostgresSpec(Spec):
    replicas: int = 1


class PostgresStatus(Status):
    endpoint: str | None = None


class Postgres(Resource[PostgresSpec, PostgresStatus], group="db.example.com", version="v1"):
    pass


class Cluster(StateMachine[Postgres], children=(StatefulSet,), retired=(Secret,), ordered_deletion=True):
    @state(condition="StorageReady", to=("degraded",))
    async def storage(self, pg: Postgres, out: Outputs) -> Next | Goto | Wait:
        reveal_type(pg.spec.replicas)  # int
        return Goto("degraded") if pg.spec.replicas == 0 else Next(wait=False)

    @state(condition="PrimaryReady")
    async def primary(self, pg: Postgres, out: Outputs) -> Done | Failed:
        return Done() if pg.spec.replicas else Failed("there is none")

    @state(condition="Degraded")
    async def degraded(self, pg: Postgres, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done | Wait:
        return Wait("for it")

    def declare(self, controller: ControllerBuilder[Postgres]) -> None:
        controller.options(concurrency=2)

    @state(condition="WrongReady")  # wrong: not async
    def not_async(self, pg: Postgres, out: Outputs) -> Done:
        return Done()

    @state(condition="NoStep")  # wrong: a number is no step
    async def number(self, pg: Postgres, out: Outputs) -> int:
        return 1

    @finalizer  # wrong: nothing follows
    async def goes_on(self, pg: Postgres, out: Outputs) -> Next:
        return Next()

    @state(condition=1)  # wrong: no name
    async def unnamed(self, pg: Postgres, out: Outputs) -> Done:
        return Done()


    @state(condition="OtherKind")  # wrong: takes another kind
    async def other(self, secret: Secret, out: Outputs) -> Done:
        return Done()

    @finalizer  # wrong: takes another kind
    async def other_end(self, secret: Secret, out: Outputs) -> Done:
        return Done()

    @state(condition="NoObject")  # wrong: takes no object
    async def none(self, out: Outputs) -> Done:
        return Done()

    @state(condition="AnyKind")
    async def any_kind(self, obj: Object, out: Outputs) -> Done:
        return Done()


class Wrong(StateMachine[int]):  # wrong: no kind
    pass


class Misspelled(StateMachine[Postgres], childern=(StatefulSet,)):  # wrong: no such option
    pass


class Mistyped(StateMachine[Postgres], ordered_deletion="yes"):  # wrong: no bool
    pass


class Each(StateMachine[AnyT]):
    @state(condition="EachReady")
    async def each(self, obj: AnyT, out: Outputs) -> Done:
        return Done()


class OfPostgres(Each[Postgres]):
    @state(condition="EachReady")
    async def each(self, obj: Postgres, out: Outputs) -> Done:
        return Done()


async def test_it(pg: Postgres, secret: Secret, out: Outputs) -> None:
    reveal_type(await Cluster().storage(pg, out))  # Next | Goto | Wait
    await Cluster().storage(secret, out)  # wrong: another kind


manager = Manager(name="databases")
manager.add(Cluster())
manager.add(Cluster)  # wrong: a class
manager.add("cluster")  # wrong: no blueprint
"""


def test_a_type_checker_knows_the_object_and_the_steps(tmp_path: Path) -> None:
    check_with_pyright(tmp_path, PROGRAM)


def test_mypy_finds_the_same_mistakes(tmp_path: Path) -> None:
    """All but one: mypy cannot relate a method's parameter to the kind of its class. There the class itself raises."""
    missed = marked(PROGRAM) - rejected_by_mypy(tmp_path, PROGRAM)
    assert missed == marked(PROGRAM, "# wrong: takes another kind")


def test_a_state_that_takes_another_kind_is_refused_with_the_class() -> None:
    """Whatever the type checker, or without one."""
    with pytest.raises(TypeError) as refusal:

        class Cluster(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, secret: Secret, out: Outputs) -> Done:
                return Done()

    assert str(refusal.value) == (
        "class Cluster(StateMachine[Postgres]), state storage takes a Secret, but its machine reconciles Postgres;"
        " write async def storage(self, obj: Postgres, out: Outputs)"
    )
