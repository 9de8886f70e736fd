"""Children that are never pruned stay so, whatever happens to their annotations and labels."""

from __future__ import annotations

import pytest

from steersman import Manager, MergePatch, ObjectMeta, Resource, Spec, Status
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import owner_reference
from steersman.patterns import Outputs, child, reconciles
from steersman.patterns.children import membership
from steersman.testing import eventually

MANAGER = "teams"
PRUNE, CLAIMED = "steersman.dev/prune", "steersman.dev/claimed"


class TeamSpec(Spec):
    #: The names of the declared children, each with "!" for one that is kept.
    pages: list[str]
    label: str = "a"


class Team(Resource[TeamSpec, Status], group="kept.test.steersman.dev", version="v1"):
    """A team with pages."""


@reconciles(Team, children=(child(ConfigMap, claims=lambda team: {"team": team.spec.label}),))
async def pages(team: Team, out: Outputs) -> Done:
    for name in team.spec.pages:
        page = ConfigMap(metadata=ObjectMeta(name=name.rstrip("!")), data={"text": "declared"})
        out.apply(page, prune=not name.endswith("!"))
    return Done()


def operator():
    manager = Manager(name=MANAGER)
    manager.add(pages)
    return manager


def team(*names):
    return Team(metadata=ObjectMeta(name="pay"), spec=TeamSpec(pages=list(names)))


async def declare(client, *names):
    await client.patch(Team, "pay", MergePatch({"spec": {"pages": list(names)}}))


async def replace_annotations(client, name, **labels):
    """What a tool does that knows nothing of ours."""
    page = await client.get(ConfigMap, name)
    page.metadata.annotations = {"example.com/revision": "2"}
    if labels:
        page.metadata.labels = labels
    await client.update(page)


async def managers(client, name):
    found = await client.get(ConfigMap, name)
    return {each.manager for each in found.metadata.managed_fields if each.manager.startswith(MANAGER)}


async def adopted(plane):
    metadata = ObjectMeta(name="wiki", labels={"team": "a"})
    await plane.client.create(ConfigMap(metadata=metadata, data={"text": "precious"}))
    await eventually(plane.client, ConfigMap, "wiki", lambda page: bool(page.metadata.owner_references))


@pytest.mark.parametrize("down", [False, True], ids=["running", "down"])
async def test_an_adopted_object_outlives_its_annotation(plane, down):
    client = plane.client
    async with plane.running(operator()) as running:
        await client.create(team("index"))
        await adopted(plane)
        await running.drained()
        if not down:
            await replace_annotations(client, "wiki")
            await running.drained()
    if down:
        await replace_annotations(client, "wiki")
    async with plane.running(operator()) as running:
        await running.drained()
        wiki = await client.get(ConfigMap, "wiki")
        assert wiki.metadata.annotations == {"example.com/revision": "2", CLAIMED: "true"}
        # without its labels too, it is released, not pruned
        await replace_annotations(client, "wiki", team="b")
        await running.drained()
        wiki = await client.get(ConfigMap, "wiki")
        assert wiki.metadata.owner_references is None
        assert wiki.metadata.annotations == {"example.com/revision": "2"}


@pytest.mark.parametrize("down", [False, True], ids=["running", "down"])
async def test_a_kept_child_outlives_its_annotation(plane, down):
    client = plane.client
    async with plane.running(operator()) as running:
        await client.create(team("index", "data!"))
        await running.drained()
        assert await managers(client, "data") == {f"{MANAGER}/kept-children"}
        await declare(client, "index")
        await running.drained()
        if not down:
            await replace_annotations(client, "data")
            await running.drained()
    if down:
        await replace_annotations(client, "data")
    async with plane.running(operator()) as running:
        await running.drained()
        data = await client.get(ConfigMap, "data")
        assert data.metadata.annotations == {"example.com/revision": "2", PRUNE: "false"}
        # what is not kept goes
        await declare(client)
        await running.drained()
        assert await client.find(ConfigMap, "index") is None
        assert await client.find(ConfigMap, "data") is not None


async def test_a_child_can_be_kept_and_not_kept_again(plane):
    """The mark follows the declaration both ways, and a converged child costs no write."""
    client = plane.client
    async with plane.running(operator()) as running:
        await client.create(team("data"))
        await running.drained()
        kept = f"{MANAGER}/kept-children"
        for number, (name, manager) in enumerate((("data!", kept), ("data", MANAGER), ("data!", kept))):
            await declare(client, name)
            await running.drained()
            assert await managers(client, "data") == {manager}
            with plane.writes() as writes:
                await client.patch(Team, "pay", MergePatch({"metadata": {"labels": {"look": str(number)}}}))
                await running.drained()
            assert writes.by(MANAGER) == []
        await declare(client, "data")
        await running.drained()
        await declare(client)
        await running.drained()
        assert await client.find(ConfigMap, "data") is None


@pytest.mark.parametrize("annotation", [PRUNE, CLAIMED])
async def test_children_of_earlier_releases_are_kept(plane, annotation):
    """Earlier releases marked kept children under the plain name: the annotation decides once, and never again."""
    client = plane.client
    await plane.install(Team)
    owner = await client.create(team())
    marks = {annotation: {PRUNE: "false", CLAIMED: "true"}[annotation]}
    labels = {"team": "a"} if annotation == CLAIMED else None
    metadata = ObjectMeta(name="old", annotations=marks, labels=labels, owner_references=[owner_reference(owner)])
    await plane.client_with(field_manager=MANAGER).apply(ConfigMap(metadata=metadata, data={"a": "b"}))
    async with plane.running(operator()) as running:
        await running.drained()
    await replace_annotations(client, "old")
    async with plane.running(operator()) as running:
        await running.drained()
        assert (await client.get(ConfigMap, "old")).metadata.annotations == {"example.com/revision": "2", **marks}


async def test_managed_fields_are_decoded_once(control_plane, monkeypatch):
    """A reconcile asks several times for the part that keeps an object; the answer costs one decoding."""
    client, decoded, decode = control_plane.client, [], membership._decoder.decode

    class Counted:
        def decode(self, text):
            decoded.append(text)
            return decode(text)

    async with control_plane.running(operator()) as running:
        await client.create(team("index!"))
        await adopted(control_plane)
        await running.drained()
        membership._entries.cache_clear()  # as after a start
        monkeypatch.setattr(membership, "_decoder", Counted())
        await client.patch(Team, "pay", MergePatch({"metadata": {"labels": {"look": "again"}}}))
        await running.drained()
    assert len(decoded) == 2  # the adopted object and the kept one
