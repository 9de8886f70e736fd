"""Whatever notation a child is written in: what is once so is not written again, not even by a new process."""

import pytest
from patterns.declaring import own, reconciling
from patterns.noncanonical_forms import forms

from steersman import Kind, MergePatch, ObjectMeta, Unstructured
from steersman.kinds.core_v1 import ConfigMap
from steersman.kinds.rbac_v1 import RoleBinding, RoleRef, Subject
from steersman.objects import OwnerReference
from steersman.patterns import child

pytestmark = pytest.mark.both_servers("the server normalizes values")

WIDE = {"PersistentVolume", "PriorityClass", "RuntimeClass", "StorageClass"}
MARK = "steersman.dev/intent"


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace)


async def test_more_than_twenty_built_in_kinds_are_written_once(client, home):
    trees = forms()
    kinds = [Kind(tree["apiVersion"], tree["kind"]) for tree in trees]
    assert len(set(kinds)) > 20

    def build(site, out):
        for tree in trees:
            out.apply(Unstructured(tree), wait=False)

    children = [child(kind, across_namespaces=kind.kind in WIDE) for kind in kinds]
    async with reconciling(client, home, children) as stage:
        assert len((await stage.run(build)).result.changes) == len(kinds)
        assert (await stage.run(build)).writes == []
    async with reconciling(client, home, children) as stage:  # as after a restart
        assert (await stage.run(build)).writes == []


def binding(name, *users):
    """The server fills in the group of each subject: what is declared is not what is there."""
    return RoleBinding(
        metadata=ObjectMeta(name=name),
        role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="reader"),
        subjects=[Subject(kind="User", name=user) for user in users],
    )


def plain_binding(name):
    """The server stores it as it is declared."""
    subject = Subject(kind="ServiceAccount", name="runner", namespace="web")
    role = RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="reader")
    return RoleBinding(metadata=ObjectMeta(name=name), role_ref=role, subjects=[subject])


def declare(*children):
    def build(site, out):
        for each in children:
            out.apply(each)

    return build


async def test_what_is_written_down_otherwise_is_known_again_and_its_drift_is_corrected(client, home, namespace):
    async with reconciling(client, home, (RoleBinding,)) as stage:
        first = await stage.run(declare(binding("first", "jane")))
        assert first.writes == ["PATCH first", "PATCH first"]  # the second says what it was made from
        assert MARK in first[0].object.metadata.annotations
        both = await stage.run(declare(binding("first", "jane"), binding("second", "joe")))
        assert both.writes == ["PATCH second"]  # which those after it say at once
    drifts = [
        {"subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"}]},
        {"metadata": {"annotations": {MARK: None}}},
    ]
    other = client.with_transport(lambda inner: inner, field_manager="another-operator")
    for drift in drifts:  # each while no operator runs
        await other.patch(RoleBinding, (namespace, "first"), MergePatch(drift))
        async with reconciling(client, home, (RoleBinding,)) as stage:
            corrected = await stage.run(declare(binding("first", "jane"), binding("second", "joe")))
            assert "PATCH first" in corrected.writes
            assert [each.name for each in corrected[0].object.subjects] == ["jane"]
            assert (await stage.run(declare(binding("first", "jane"), binding("second", "joe")))).writes == []
    async with reconciling(client, home, (RoleBinding,)) as stage:
        changed = await stage.run(declare(binding("first", "jill"), binding("second", "joe")))
        assert changed.writes == ["PATCH first"]
        assert [each.name for each in changed[0].object.subjects] == ["jill"]


async def test_children_that_are_written_at_the_same_time_all_say_what_they_were_made_from(client, home):
    """Otherwise each start of the operator writes again those whose answer came second."""
    bindings = [binding(f"at-once-{number}", "jane") for number in range(4)]
    async with reconciling(client, home, (RoleBinding,)) as stage:
        made = await stage.run(declare(*bindings))
        assert [MARK in each.object.metadata.annotations for each in made.result.children] == [True] * 4
    async with reconciling(client, home, (RoleBinding,)) as stage:  # as after a restart
        assert (await stage.run(declare(*bindings))).writes == []


async def test_a_child_that_differs_from_many_others_is_recognized_after_a_restart(client, home):
    """The server stores most children of the kind as declared; the one that it normalizes must not be written again."""
    plain = [plain_binding(f"plain-{number}") for number in range(5)]
    async with reconciling(client, home, (RoleBinding,)) as stage:
        assert (await stage.run(declare(*plain))).writes == [f"PATCH plain-{number}" for number in range(5)]
        added = await stage.run(declare(*plain, binding("odd", "jane")))
        assert added.writes == ["PATCH odd", "PATCH odd"]  # the second adds the annotation
    async with reconciling(client, home, (RoleBinding,)) as stage:  # as after a restart
        assert (await stage.run(declare(*plain, binding("odd", "jane")))).writes == []


async def test_a_child_without_declared_fields_is_recognized_after_a_restart(client, home, namespace):
    """Another program created the child: it gets no mark, so the operator owns no field of it."""
    other = client.with_transport(lambda inner: inner, field_manager="another-program")
    owner = OwnerReference(
        api_version=home.api_version, kind="Site", name="home", uid=home.metadata.uid, controller=True
    )
    for name in ("late", "early"):
        await other.create(
            ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, owner_references=[owner]), data={"a": "b"})
        )
        async with reconciling(client, home, (ConfigMap,)) as stage:
            await stage.seen(ConfigMap, name)
            await stage.run(declare(ConfigMap(metadata=ObjectMeta(name=name))))
            assert (await stage.run(declare(ConfigMap(metadata=ObjectMeta(name=name))))).writes == []
    children = [ConfigMap(metadata=ObjectMeta(name=name)) for name in ("late", "early")]
    async with reconciling(client, home, (ConfigMap,)) as stage:  # as after a restart
        assert (await stage.run(declare(*children))).writes == []
    for each in children:
        live = await client.get(ConfigMap, (namespace, each.metadata.name))
        assert MARK not in (live.metadata.annotations or {})
