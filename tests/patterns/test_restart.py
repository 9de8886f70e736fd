"""After a start, a child that matches costs no request, and every difference costs one, including its marks."""

import itertools

import msgspec
import pytest
from patterns.declaring import own, reconciling

from samples.site import site
from steersman import MergePatch, ObjectMeta
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.objects import OwnerReference, encode, replace, to_json
from steersman.patterns.children.membership import Marks


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace)


def page(**labels):
    return ConfigMap(metadata=ObjectMeta(name="page", labels=labels or None), data={"text": "hello", "more": "words"})


def token():
    return Secret(metadata=ObjectMeta(name="token"), string_data={"token": "steady"})


def declare(*children):
    def build(_, out):
        for child in children:
            out.apply(child)

    return build


def drifts(home):
    """Changes by another writer to what is declared, by name."""
    reference = {"apiVersion": home.api_version, "kind": "Site", "name": "home", "uid": home.metadata.uid}
    return {
        "value": {"data": {"text": "bye"}},
        "value removed": {"data": {"more": None}},
        "label": {"metadata": {"labels": {"app": "other"}}},
        "label removed": {"metadata": {"labels": {"app": None}}},
        "state": {"metadata": {"labels": {"steersman.dev/state": "other"}}},
        "state removed": {"metadata": {"labels": {"steersman.dev/state": None}}},
        "reference": {"metadata": {"ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": False}]}},
    }


async def test_every_difference_from_the_declaration_is_corrected_after_a_start(client, home, namespace):
    build = declare(page(app="web"), token())
    async with reconciling(client, home, (ConfigMap, Secret)) as stage:
        await stage.run(build, phase="start", labels=True)
        intact = await stage.client.live.get(ConfigMap, (namespace, "page"))
    for name, drift in drifts(home).items():
        await client.patch(ConfigMap, (namespace, "page"), MergePatch(drift))
        async with reconciling(client, home, (ConfigMap, Secret)) as stage:
            corrected = await stage.run(build, phase="start", labels=True)
            assert corrected.writes == ["PATCH page"], name
            assert corrected[0].object.data == intact.data, name
            assert corrected[0].object.metadata.labels == intact.metadata.labels, name
            assert corrected[0].object.metadata.owner_references == intact.metadata.owner_references, name
        async with reconciling(client, home, (ConfigMap, Secret)) as stage:
            assert (await stage.run(build, phase="start", labels=True)).writes == [], name


async def test_a_declaration_that_changed_while_the_program_was_down_is_applied(client, home):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare(page(app="web")), phase="start", labels=True)
    changed = [
        (declare(page(app="web")), "later"),
        (declare(page()), "later"),
        (declare(replace(page(), data={"text": "hello"})), "later"),
        (declare(replace(page(), metadata=ObjectMeta(name="page", annotations={"note": "x"}))), "later"),
    ]
    for build, state in changed:
        async with reconciling(client, home, (ConfigMap,)) as stage:
            assert (await stage.run(build, phase=state, labels=True)).writes == ["PATCH page"]
        async with reconciling(client, home, (ConfigMap,)) as stage:
            assert (await stage.run(build, phase=state, labels=True)).writes == []


async def test_fields_of_others_cost_nothing_after_a_start(client, home, namespace):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare(page(app="web")))
    await client.patch(
        ConfigMap,
        (namespace, "page"),
        MergePatch({"metadata": {"labels": {"theirs": "1"}, "annotations": {"note": "x"}}, "data": {"theirs": "1"}}),
    )
    async with reconciling(client, home, (ConfigMap,)) as stage:
        again = await stage.run(declare(page(app="web")))
        assert (again.writes, again.reads) == ([], [])
        assert again[0].object.data["theirs"] == "1"


METADATA = {
    "namespace": (None, "web"),
    "labels": (None, {}, {"app": 'quoted "labels":{'}, {"steersman.dev/state": "mine"}),
    "annotations": (None, {"labels": '"metadata":{'}),
    "finalizers": (None, ["example.com/hold"]),
    "owner_references": (None, [], [OwnerReference(api_version="v1", kind="Pod", name="x", uid="u")]),
}


def test_marks_in_bytes_are_the_marks_of_the_object():
    """A comparison of the wrong bytes would skip a write, or repeat one in every reconcile."""
    home = replace(site("home", "web"), metadata=ObjectMeta(name="home", namespace="web", uid="0-1"))
    marks, compared = Marks(home), 0
    for values in itertools.product(*METADATA.values()):
        metadata = ObjectMeta(name="page", **dict(zip(METADATA, values, strict=True)))
        child = ConfigMap(metadata=metadata, data={"labels": '{"metadata":{"labels":{'})
        for label in ("", "start"):
            found = marks.marked_bytes(child, encode(child), state_label=label)
            if found is None:
                continue
            compared += 1
            wanted = to_json(marks.marked(child, "web", bond="reference", state_label=label, prune=True))
            tree = msgspec.json.decode(found)
            tree["metadata"]["namespace"] = "web"  # the request's path names it
            assert tree == wanted
            assert found.count(b'"ownerReferences"') == 1
    assert compared > 20
