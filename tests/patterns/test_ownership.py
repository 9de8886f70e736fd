"""A child is ours if our own field manager marked it. Objects of others are never changed by force or deleted."""

import pytest
from patterns.declaring import own, reconciling

from samples.site import Site
from steersman import Done, Kind, Manager, MergePatch, ObjectMeta, Unstructured
from steersman.aio import Supervisor, name_suffix
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.kinds.rbac_v1 import ClusterRole
from steersman.objects import set_owner
from steersman.patterns import Outputs, reconciles
from steersman.patterns.children.membership import PRUNE_ANNOTATION, STATE_LABEL
from steersman.testing import eventually

pytestmark = pytest.mark.both_servers("managed fields prove what is ours")

LABEL = "steersman.dev/owner-uid"
NAMESPACES = Kind("v1", "Namespace")


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace)


@pytest.fixture
def theirs(client):
    """Another program."""
    return client.with_transport(lambda inner: inner, field_manager="theirs")


def page(name="page", **metadata):
    return ConfigMap(metadata=ObjectMeta(name=name, **metadata), data={"text": "hello"})


def declare(*children, **options):
    def build(site, out):
        for child in children:
            out.apply(child, **options)

    return build


def nothing(site, out):
    """Declare no child."""


@pytest.mark.parametrize("how", ["apply", "create", "merge", "update", "replace"])
async def test_what_we_made_is_pruned_however_it_was_written(client, home, namespace, how):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare(page(), how=how))
    async with reconciling(client, home, (ConfigMap,)) as stage:  # as after a restart
        assert (await stage.run(nothing)).writes == ["DELETE page"]


async def test_an_overwrite_keeps_the_marks_of_another_program(client, theirs, home, namespace):
    """Without its marks, the other program would forget which state made the object, and that it keeps it."""
    made = page("shared", namespace=namespace)
    made.metadata.labels = {STATE_LABEL: "theirs", "role": "primary"}
    made.metadata.annotations = {PRUNE_ANNOTATION: "false", "note": "x"}
    set_owner(made, home)
    await theirs.create(made)
    async with reconciling(client, home, (ConfigMap,)) as stage:
        written = await stage.run(declare(page("shared"), how="replace"))
        assert written.writes == ["PUT shared"]
        metadata = written[0].object.metadata
        assert (metadata.labels, metadata.annotations) == ({STATE_LABEL: "theirs"}, {PRUNE_ANNOTATION: "false"})
        assert (await stage.run(declare(page("shared"), how="replace"))).writes == []


async def test_what_another_program_made_for_the_same_owner_is_changed_but_stays(
    client, theirs, home, namespace, caplog
):
    caplog.set_level("INFO")
    made = page("shared", namespace=namespace)
    set_owner(made, home)
    await theirs.create(made)
    labeled = ConfigMap.only(metadata=ObjectMeta(name="shared", labels={"role": "primary"}))
    async with reconciling(client, home, (ConfigMap,)) as stage:
        assert (await stage.run(declare(labeled))).writes == ["PATCH shared"]
        assert (await client.get(ConfigMap, (namespace, "shared"))).metadata.labels == {"role": "primary"}
        assert (await stage.run(declare(labeled))).writes == []
        for _ in range(2):
            assert (await stage.run(nothing)).writes == []
        said = [each.getMessage() for each in caplog.records if "does not prune it" in each.getMessage()]
        words = f"ConfigMap {namespace}/shared belongs to it, but was not created under field manager tests; Steersman does not prune it"
        assert said == [f"{namespace}/home: {words}"]
    async with reconciling(client, home, (ConfigMap,)) as stage:
        # taken over, it is ours like any other
        adopted = await stage.run(declare(labeled, adopt=True))
        assert (adopted.writes, adopted[0].change) == (["PATCH shared"], "adopted")
        assert (await stage.run(declare(labeled, adopt=True))).writes == []
        assert (await stage.run(nothing)).writes == ["DELETE shared"]


async def test_a_label_of_another_writer_proves_nothing(client, theirs, home, namespace):
    role, copied = f"role-{name_suffix()}", f"copy-{name_suffix()}"
    async with reconciling(client, home, (ClusterRole, ConfigMap)) as stage:
        made = await stage.run(declare(ClusterRole(metadata=ObjectMeta(name=role))))
        marks = made[0].object.metadata
        await theirs.create(
            ClusterRole(metadata=ObjectMeta(name=copied, labels=marks.labels, annotations=marks.annotations))
        )
        await theirs.create(page("near", namespace=namespace, labels={LABEL: home.uid}))
        await stage.seen(ClusterRole, copied)
        await stage.seen(ConfigMap, "near")
        # in the owner's own namespace the label means nothing at all
        refused = await stage.run(declare(page("near"), ClusterRole(metadata=ObjectMeta(name=copied))))
        assert [each.problem.reason for each in refused.result.children] == ["NotOurs", "NotOurs"]
        assert "has the label of this owner, but this program did not set it" in refused[1].problem.message
        assert refused.writes == [f"DELETE {role}"]
        assert await stage.delete_in_order() == ()
    for kind, key in ((ClusterRole, copied), (ConfigMap, (namespace, "near"))):
        await client.delete(await client.get(kind, key))


async def test_what_is_shared_is_not_taken_by_force(client, theirs, home, namespace):
    controlled = page("controlled", namespace=namespace)
    set_owner(controlled, await own(client, "other", namespace))
    await theirs.create(controlled)
    await theirs.apply(page("contended", namespace=namespace))
    wanted = [
        ConfigMap(metadata=ObjectMeta(name=name), data={"text": "ours"}) for name in ("controlled", "contended", "new")
    ]
    async with reconciling(client, home, (ConfigMap,)) as stage:
        done = await stage.run(declare(*wanted, owner=False))
        first, second, third = done.result.children
        assert first.problem.message == (
            f"ConfigMap {namespace}/controlled exists and is controlled by Site other; owner=False shares only objects"
            " without a controller; give the child another name"
        )
        assert (second.problem.reason, third.change) == ("FieldConflict", "created")
        assert '.data.text is owned by "theirs"' in second.problem.message
        assert (await client.get(ConfigMap, (namespace, "contended"))).data == {"text": "hello"}
        # fields without another owner can be shared
        more = ConfigMap(metadata=ObjectMeta(name="contended"), data={"more": "words"})
        assert (await stage.run(declare(more, owner=False)))[0].problem is None
        assert (await client.get(ConfigMap, (namespace, "contended"))).data == {"text": "hello", "more": "words"}


async def test_a_kind_without_a_class_lives_where_the_server_keeps_it(client, home, namespace):
    """Nothing is pruned because its namespace was guessed wrongly."""
    name = f"tenant-{name_suffix()}"
    tenant = Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "namespace": namespace}})
    async with reconciling(client, home, (NAMESPACES,)) as stage:
        assert stage.memory.children.needs_finalizer
        made = await stage.run(declare(tenant))
        assert (made.writes, made.pruned) == ([f"PATCH {name}"], ())
        again = await stage.run(declare(tenant))
        assert (again.writes, again.pruned) == ([], ())
    await client.delete(Namespace, name)


async def test_a_password_says_which_state_declares_it_now(client, home, namespace):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare(page(), how="create"), phase="first", labels=True)
        await client.patch(ConfigMap, (namespace, "page"), MergePatch({"data": {"text": "changed"}}))
        await stage.seen(ConfigMap, "page", lambda view: view.object.data == {"text": "changed"})
        moved = await stage.run(declare(page(), how="create"), phase="second", labels=True)
        assert moved.writes == ["PATCH page"]
        there = await client.get(ConfigMap, (namespace, "page"))
        assert (there.metadata.labels, there.data) == ({"steersman.dev/state": "second"}, {"text": "changed"})
        assert (await stage.run(declare(page(), how="create"), phase="second", labels=True)).writes == []


async def test_an_object_does_not_write_to_another_namespace_without_a_mark(client, home, namespace):
    """Otherwise the author of a Site could write to any namespace, with the rights of the operator."""
    other = await client.create(Namespace(metadata=ObjectMeta(generate_name="victim-")))
    target = other.key.name
    await client.create(ConfigMap(metadata=ObjectMeta(name="there", namespace=target), data={"text": "theirs"}))

    @reconciles(Site, children=(ConfigMap,))
    async def deputy(home: Site, out: Outputs) -> Done:
        for name in ("there", "new"):
            metadata = ObjectMeta(name=name, namespace=target)
            out.apply(ConfigMap(metadata=metadata, data={"more": "ours"}), owner=False)
        return Done()

    manager = Manager(client.with_transport(lambda inner: inner, field_manager="deputy"), name="deputy")
    manager.add(deputy)
    async with Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name="manager")
        words = "across_namespaces=True"
        refused = await eventually(client, Site, home.key, lambda found: found.status and found.status.conditions)
        (ready,) = refused.status.conditions
        assert (ready.status, words in ready.message) == ("False", True)
        manager.stop()
    assert await client.find(ConfigMap, (target, "new")) is None
    assert (await client.get(ConfigMap, (target, "there"))).data == {"text": "theirs"}
    await client.delete(other)
