"""Children that a new version of a program declares in another state."""

from __future__ import annotations

from samples.postgres import Postgres, managed, postgres, settings
from steersman import Key, MergePatch
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import GroupKind
from steersman.patterns import Next, Outputs, StateMachine, Wait, state
from steersman.patterns.children import ChildIdentity
from steersman.patterns.children.declaration_history import DeclarationHistory
from steersman.testing import Plane

KEY = Key("default", "pg")
ONE, TWO = (ChildIdentity(GroupKind("", "ConfigMap"), Key("default", name)) for name in ("one", "two"))


class Before(StateMachine[Postgres], children=(ConfigMap,)):
    @state(condition="StorageReady")
    async def storage(self, pg: Postgres, out: Outputs) -> Next:
        out.apply(settings("settings"))
        out.apply(settings("data", precious="yes"))
        return Next()

    @state(condition="PrimaryReady")
    async def primary(self, pg: Postgres, out: Outputs) -> Done:
        return Done()


class After(StateMachine[Postgres], children=(ConfigMap,)):
    @state(condition="StorageReady")
    async def storage(self, pg: Postgres, out: Outputs) -> Next:
        out.apply(settings("settings"))
        return Next()

    @state(condition="PrimaryReady")
    async def primary(self, pg: Postgres, out: Outputs) -> Next | Wait:
        return Next() if pg.spec.version == "18" else Wait("for version 18")

    @state(condition="DataReady")
    async def data(self, pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("data", precious="yes"))
        return Done()


async def test_a_child_that_a_new_version_moves_to_a_later_state_stays(control_plane: Plane) -> None:
    client = control_plane.client
    async with control_plane.running(managed(Before())) as operator:
        await client.create(postgres())
        await operator.drained()
        uid = (await client.get(ConfigMap, "data")).uid
    async with control_plane.running(managed(After())) as operator:
        await operator.drained()
        assert (await client.get(ConfigMap, "data")).uid == uid, "the state that declares it was not reached yet"
        await client.patch(Postgres, "pg", MergePatch({"spec": {"version": "18"}}))
        await operator.drained()
        data = await client.get(ConfigMap, "data")
        assert data.uid == uid
        assert (data.metadata.labels or {})["steersman.dev/state"] == "data"


def test_only_what_was_seen_counts() -> None:
    declarations = DeclarationHistory()
    declarations.note(KEY, "uid", {ONE: "storage"}, complete=False)
    declarations.note(KEY, "uid", {TWO: "primary"}, complete=False)
    assert declarations.seen(KEY, "uid") == {ONE: "storage", TWO: "primary"}
    assert declarations.seen(KEY, "another uid") == {}


def test_what_is_pruned_or_gone_is_forgotten() -> None:
    declarations = DeclarationHistory()
    declarations.note(KEY, "uid", {ONE: "storage", TWO: "storage"}, complete=False)
    declarations.note(KEY, "uid", {TWO: "storage"}, complete=False, pruned=[ONE])
    assert declarations.seen(KEY, "uid") == {TWO: "storage"}
    declarations.note(KEY, "uid", {ONE: "storage"}, complete=True)
    assert declarations.seen(KEY, "uid") == {ONE: "storage"}
    declarations.forget(KEY)
    assert declarations.seen(KEY, "uid") == {}
