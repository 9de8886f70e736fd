"""Custom resources of the embedded server: served as soon as they are defined, in all their versions, until they go."""

import asyncio
import json

import pytest

from samples.embedded import Raw
from samples.site import GROUP as SITE_GROUP, Site
from samples.virtual_time import run_virtual
from steersman import Client, Resource, Spec
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer, Limits
from steersman.apiserver.storage import MemoryStorage
from steersman.markers import Rule
from steersman.objects import Key, ObjectMeta

GROUP = "sea.test.steersman.dev"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/boats.{GROUP}"
BOATS = f"/apis/{GROUP}/v1/namespaces/default/boats"
NEWER = BOATS.replace("/v1/", "/v2/")
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name="v1", *, storage=True, served=True, spec=None):
    schema = {"type": "object", "properties": {"spec": spec or ANYTHING}}
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}}


def crd(*versions, group=GROUP, **spec):
    names = {"plural": "boats", "kind": "Boat"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"boats.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions) or [version()]}
        | spec,
    }


def boat(name="a", version="v1", group=GROUP, **more):
    return {"apiVersion": f"{group}/{version}", "kind": "Boat", "metadata": {"name": name}} | more


@pytest.fixture
async def server():
    async with ApiServer() as server:
        yield server


async def gone(raw, path=CRD):
    async with asyncio.timeout(60):
        while (await raw.get(path)).code == 200:  # noqa: ASYNC110 - the server notifies watchers only
            await asyncio.sleep(0.005)


async def test_a_definition_is_served_when_its_creation_is_answered(raw):
    made = await raw.post(CRDS, crd())
    assert (made.code, made.body["status"]["conditions"]) == (201, None)
    assert (await raw.post(BOATS, boat())).code == 201
    assert (await raw.get(f"/apis/{GROUP}/v1")).body["resources"][0]["name"] == "boats"
    conditions = (await raw.get(CRD)).body["status"]["conditions"]
    assert [(each["type"], each["status"]) for each in conditions] == [
        ("NamesAccepted", "True"),
        ("Established", "True"),
    ]


async def test_it_is_served_no_more_when_its_deletion_is_done(raw):
    await raw.post(CRDS, crd())
    for name in "abc":
        await raw.post(BOATS, boat(name))
    assert (await raw.delete(CRD)).code == 200
    await gone(raw)
    # As on kube-apiserver, a kind is withdrawn a moment after its definition is gone.
    await gone(raw, BOATS)
    assert (await raw.get(BOATS)).code == 404
    await raw.post(CRDS, crd())
    assert (await raw.get(BOATS)).names == []


async def test_all_definitions_are_deleted_at_once(raw):
    groups = [f"g{number}.test.steersman.dev" for number in range(5)]
    for group in groups:
        await raw.post(CRDS, crd(group=group))
        await raw.post(f"/apis/{group}/v1/namespaces/default/boats", boat(group=group))
    assert (await raw.delete(CRDS)).code == 200
    for group in groups:
        await gone(raw, f"{CRDS}/boats.{group}")
    assert (await raw.get(CRDS)).names == []


async def test_who_writes_to_the_store_defines_too(server, raw):
    """Another server on the same store, say."""
    await raw.post(CRDS, crd())
    record, _ = await server.storage.get(f"apiextensions.k8s.io/customresourcedefinitions/boats.{GROUP}")
    assert record is not None
    changed = record.value.replace(b'"served":true', b'"served":false')
    await server.storage.put(record.key, changed, expect=record.modified)
    await gone(raw, BOATS)
    await server.storage.delete(record.key, expect=(await server.storage.get(record.key))[0].modified)
    await gone(raw)


async def test_a_watch_ends_when_the_schema_changes_and_the_next_begins_anew(raw):
    await raw.post(CRDS, crd())
    made = await raw.post(BOATS, boat(spec={"name": 1}))
    watch = await raw.watch(f"{BOATS}?watch=1&resourceVersion={made.body['metadata']['resourceVersion']}")
    named = {"type": "object", "properties": {"name": {"type": "string"}}}
    await raw.patch(CRD, {"spec": {"versions": [version(spec=named)]}})
    assert await watch.next() is None
    again = await raw.watch(f"{BOATS}?watch=1&resourceVersion={made.body['metadata']['resourceVersion']}")
    assert (await again.next())["object"]["code"] == 410


def test_no_bookmark_covers_a_change_that_an_ended_watch_does_not_show():
    """A client that reads slowly would resume after the change, and never see it."""

    async def follow():
        async with ApiServer(limits=Limits(bookmarks=60)) as server:
            raw = Raw(server.handler)
            await raw.post(CRDS, crd())
            made = await raw.post(BOATS, boat())
            watch = await raw.watch(f"{BOATS}?watch=1&allowWatchBookmarks=true&resourceVersion={made.version}")
            await raw.patch(f"{BOATS}/a", {"spec": {"length": 1}})
            assert (await watch.next())["type"] == "MODIFIED"
            length = {"type": "object", "properties": {"length": {"type": "integer"}}}
            await raw.patch(CRD, {"spec": {"versions": [version(spec=length)]}})
            assert (await raw.patch(f"{BOATS}/a", {"spec": {"length": 2}})).code == 200
            await asyncio.sleep(61)
            return await watch.rest()

    assert run_virtual(follow())[0] == []


@pytest.mark.parametrize("changed", [{}, {"scope": "Cluster"}], ids=["deleted", "made-again-with-another-scope"])
async def test_nothing_is_stored_under_a_definition_that_is_gone(changed):
    """An instance that waited for a webhook all the time would belong to no definition, or no path would lead to it."""
    waits, goes = asyncio.Event(), asyncio.Event()

    async def slow(attributes):
        if attributes.name == "late":
            waits.set()
            await goes.wait()

    async with ApiServer(admission=[slow]) as server, Supervisor() as tasks:
        raw = Raw(server.handler)
        await raw.post(CRDS, crd())
        late = tasks.start(raw.post(BOATS, boat("late")), name="late creation")
        await waits.wait()
        await raw.delete(CRD)
        await gone(raw)
        if changed:
            await raw.post(CRDS, crd(**changed))
        goes.set()
        assert (await late).code == 404
        assert (await server.storage.list(GROUP)).records == []


async def test_of_two_definitions_that_come_at_once_one_has_the_names(server, raw):
    """As two servers may store them."""
    for plural in ("boats", "ships"):
        made = crd() | {"metadata": {"name": f"{plural}.{GROUP}", "uid": plural}}
        made["spec"]["names"] |= {"plural": plural, "singular": plural[:-1], "listKind": "BoatList"}
        key = f"apiextensions.k8s.io/customresourcedefinitions/{plural}.{GROUP}"
        await server.storage.put(key, json.dumps(made).encode(), expect=0)
    await server.custom_resources.catch_up()
    accepted = {name: (await raw.get(f"{CRDS}/{name}.{GROUP}")).body["status"] for name in ("boats", "ships")}
    assert [accepted[name]["conditions"][0]["reason"] for name in accepted] == ["NoConflicts", "ListKindConflict"]
    assert accepted["ships"]["conditions"][0]["message"] == '"BoatList" is already in use'


async def test_a_stored_object_that_is_no_definition_affects_no_other(server, raw):
    key = f"apiextensions.k8s.io/customresourcedefinitions/boats.{GROUP}"
    nothing = {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "x"}}
    await server.storage.put(key, json.dumps(nothing).encode(), expect=0)
    assert await server.custom_resources.catch_up()
    assert (await raw.post(CRDS, crd(group="other.test.steersman.dev"))).code == 201
    assert (await raw.get("/apis/other.test.steersman.dev/v1/boats")).code == 200


# versions


def to_version(obj, api_version):
    """In v1 a boat has one name, in v2 a first and a last one."""
    spec = obj.get("spec", {})
    if api_version.endswith("/v2"):
        first, _, last = spec.get("name", "").partition(" ")
        changed = {"first": first, "last": last}
    else:
        changed = {"name": f"{spec['first']} {spec['last']}"}
    obj["metadata"]["name"] = "ignored"
    obj["metadata"].setdefault("annotations", {})["converted"] = api_version.rpartition("/")[2]
    return obj | {"apiVersion": api_version, "spec": changed}


async def test_a_function_converts():
    async with ApiServer(conversions={f"boats.{GROUP}": to_version}) as server:
        raw = Raw(server.handler)
        await raw.post(CRDS, crd(version("v1"), version("v2", storage=False)))
        watch = await raw.watch(f"{NEWER}?watch=1")
        await raw.post(BOATS, boat(spec={"name": "Ada Lovelace"}))
        assert (await watch.next())["object"]["spec"] == {"first": "Ada", "last": "Lovelace"}
        shown = (await raw.get(f"{NEWER}/a")).body
        assert (shown["apiVersion"], shown["spec"]) == (f"{GROUP}/v2", {"first": "Ada", "last": "Lovelace"})
        assert (shown["metadata"]["name"], shown["metadata"]["annotations"]) == ("a", {"converted": "v2"})
        assert (await raw.get(BOATS)).body["items"][0]["spec"] == {"name": "Ada Lovelace"}
        patched = await raw.patch(f"{NEWER}/a", {"spec": {"first": "Augusta"}})
        assert patched.body["spec"] == {"first": "Augusta", "last": "Lovelace"}
        assert (await raw.get(f"{BOATS}/a")).body["spec"] == {"name": "Augusta Lovelace"}
        refused = await raw.post(NEWER, boat("b", "v2", spec={"first": "x"}))
        assert (refused.code, refused.body["message"]) == (
            500,
            f"conversion webhook for {GROUP}/v2, Kind=Boat failed: 'last'",
        )
        assert (await raw.delete(f"{NEWER}/a")).code == 200


async def test_a_function_converts_for_managed_fields():
    """An apply in another version sees the fields under their other names; the function never sees an object without parts."""
    name = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    names = {"first": {"type": "string"}, "last": {"type": "string"}}
    newer = {"type": "object", "properties": names, "required": list(names)}
    async with ApiServer(conversions={f"boats.{GROUP}": to_version}) as server:
        raw = Raw(server.handler)
        await raw.post(CRDS, crd(version("v1", spec=name), version("v2", storage=False, spec=newer)))
        labels = {"name": "a", "labels": {"team": "x"}}
        applied = (
            boat(metadata=labels, spec={"name": "Ada Lovelace"}),
            boat(version="v2", metadata={"name": "a"}, spec={"first": "Augusta", "last": "King"}),
            boat(metadata={"name": "a"}, spec={"name": "Ada King"}),
        )
        for intent in applied:
            path = f"{BOATS if intent['apiVersion'].endswith('v1') else NEWER}/a?fieldManager=me"
            answer = await raw.patch(path, intent, content_type="application/apply-patch+yaml")
            assert answer.code in {200, 201}, answer.body
        shown = (await raw.get(f"{BOATS}/a")).body
        assert shown["spec"] == {"name": "Ada King"}
        assert "labels" not in shown["metadata"]
        managers = [(each["manager"], each["apiVersion"]) for each in shown["metadata"]["managedFields"]]
        assert managers == [("me", f"{GROUP}/v1")]


async def test_a_webhook_that_cannot_be_reached_is_reported(raw):
    hook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1"}}
    conversion = {"strategy": "Webhook", "webhook": hook}
    await raw.post(CRDS, crd(version("v1"), version("v2", storage=False), conversion=conversion))
    assert (await raw.get(NEWER)).code == 200
    assert (await raw.post(BOATS, boat())).code == 201
    for asked in (raw.get(NEWER), raw.get(f"{NEWER}/a"), raw.post(NEWER, boat("b", "v2")), raw.delete(f"{NEWER}/a")):
        answered = await asked
        assert (answered.code, "connection refused" in answered.body["message"]) == (500, True)
    watch = await raw.watch(
        f"{NEWER}?watch=1&resourceVersion={(await raw.get(BOATS)).body['metadata']['resourceVersion']}"
    )
    await raw.post(BOATS, boat("c"))
    assert "connection refused" in (await watch.next())["object"]["message"]
    assert await watch.next() is None
    await raw.delete(CRD)
    await gone(raw)


async def test_a_definition_goes_though_no_version_is_served(raw):
    await raw.post(CRDS, crd())
    await raw.post(BOATS, boat())
    await raw.patch(CRD, {"spec": {"versions": [version(served=False)]}})
    assert (await raw.get(BOATS)).code == 404
    await raw.delete(CRD)
    await gone(raw)


async def test_defaults_come_to_what_is_stored_already(server, raw):
    await raw.post(CRDS, crd(version(spec={"type": "object", "properties": {"name": {"type": "string"}}})))
    await raw.post(BOATS, boat(spec={"name": "x"}))
    properties = {"name": {"type": "string"}, "masts": {"type": "integer", "default": 2}}
    await raw.patch(CRD, {"spec": {"versions": [version(spec={"type": "object", "properties": properties})]}})
    assert (await raw.get(f"{BOATS}/a")).body["spec"] == {"name": "x", "masts": 2}
    record, _ = await server.storage.get(f"{GROUP}/boats/default/a")
    assert b"masts" not in record.value
    assert (await raw.get(BOATS)).body["items"][0]["spec"]["masts"] == 2
    assert (await raw.get(f"{BOATS}?fieldSelector=spec.masts%3D2")).code == 400


# classes


class HullSpec(Spec):
    length: int


class Hull(Resource[HullSpec, None], group=GROUP, version="v1", storage=False):
    """A hull."""


class NewerHullSpec(Spec, rules=(Rule(rule="self.metres > 0", message="too short"),)):
    metres: int


class NewerHull(Resource[NewerHullSpec, None], group=GROUP, version="v2", kind="Hull"):
    """A hull, measured anew."""


def measured(obj, api_version):
    spec = obj["spec"]
    length = spec["length"] if "length" in spec else spec["metres"]
    return obj | {"spec": {"metres" if api_version.endswith("v2") else "length": length}}


@pytest.mark.parametrize("kinds", [None, []])
async def test_classes_are_versions(kinds):
    conversions = {f"hulls.{GROUP}": measured}
    server = ApiServer(kinds=kinds, resources=[Hull, NewerHull], conversions=conversions)
    async with server, Client(server.transport()) as client:
        await client.create(Hull(metadata=ObjectMeta(name="a", namespace="default"), spec=HullSpec(length=3)))
        assert (await client.get(NewerHull, Key("default", "a"))).spec.metres == 3
        raw = Raw(server.handler)
        path = f"/apis/{GROUP}/v2/namespaces/default/hulls"
        body = {"apiVersion": f"{GROUP}/v2", "kind": "Hull", "metadata": {"name": "b"}, "spec": {"metres": 0}}
        refused = await raw.post(path, body)
        assert (refused.code, refused.causes) == (422, [("spec", "FieldValueInvalid")])
        assert (await raw.get(f"{CRDS}/hulls.{GROUP}")).code == (200 if kinds is None else 404)


async def test_a_class_that_changed_changes_its_definition():
    storage = MemoryStorage()
    async with storage:
        async with ApiServer(storage=storage, resources=[Site]) as server:
            before = (await Raw(server.handler).get(f"{CRDS}/sites.{SITE_GROUP}")).body
        async with ApiServer(storage=storage, resources=[Site]) as server:
            assert (await Raw(server.handler).get(f"{CRDS}/sites.{SITE_GROUP}")).body == before
        async with ApiServer(storage=storage, resources=[Hull2]) as server:
            first = (await Raw(server.handler).get(f"{CRDS}/hulls.{GROUP}")).body
        async with ApiServer(storage=storage, resources=[Hull3]) as server:
            raw = Raw(server.handler)
            assert (await raw.get(f"/apis/{SITE_GROUP}/v1/sites")).code == 200
            changed = (await raw.get(f"{CRDS}/hulls.{GROUP}")).body
        assert (first["metadata"]["generation"], changed["metadata"]["generation"]) == (1, 2)


class Hull2(Resource[HullSpec, None], group=GROUP, version="v1", kind="Hull"):
    """A hull."""


class Hull3(Resource[HullSpec, None], group=GROUP, version="v1", kind="Hull", short_names=("hl",)):
    """A hull."""


def test_a_definition_made_again_keeps_its_instances():
    """The deletion of an older definition, which lost its finalizer, must not go on with those of the new one."""

    async def play():
        async with ApiServer() as server:
            raw = Raw(server.handler)
            await raw.post(CRDS, crd())
            waits = boat() | {"metadata": {"name": "a", "finalizers": ["test.steersman.dev/wait"]}}
            assert (await raw.post(BOATS, waits)).code == 201
            await raw.delete(CRD)
            await raw.patch(CRD, {"metadata": {"finalizers": None}})
            await gone(raw)
            await raw.post(CRDS, crd())
            assert (await raw.post(BOATS, boat("b"))).code == 201
            # Much longer than a deletion waits before it looks again.
            await asyncio.sleep(300)
            conditions = (await raw.get(CRD)).body["status"]["conditions"]
            return (await raw.get(BOATS)).names, [each["type"] for each in conditions]

    assert run_virtual(play())[0] == (["a", "b"], ["NamesAccepted", "Established"])


def test_a_definition_made_again_keeps_the_instances_that_are_not_deleted_yet():
    """A deletion of many instances ends in the middle once its own definition has lost its finalizer."""

    async def play():
        async with ApiServer() as server:
            raw = Raw(server.handler)
            await raw.post(CRDS, crd())
            for number in range(100):
                assert (await raw.post(BOATS, boat(f"b{number}"))).code == 201
            await raw.delete(CRD)
            for _ in range(1000):
                if len((await raw.get(BOATS)).names) < 100:
                    break
                await asyncio.sleep(0)
            await raw.patch(CRD, {"metadata": {"finalizers": None}})
            await gone(raw)
            await raw.post(CRDS, crd())
            left = (await raw.get(BOATS)).names
            await asyncio.sleep(300)
            return left, (await raw.get(BOATS)).names

    left, later = run_virtual(play())[0]
    assert len(left) > 50
    assert later == left


async def test_a_definition_that_is_mended_while_it_ends_is_deleted():
    """Its instances are deleted as it is now: here a conversion webhook that fails is removed meanwhile."""

    async def call(target, body, *, timeout):  # noqa: ASYNC109
        called.set()
        raise OSError("it is gone")

    called = asyncio.Event()
    async with ApiServer(webhook_caller=call) as server:
        raw = Raw(server.handler)
        await raw.post(CRDS, crd(version(), version("v2", storage=False)))
        assert (await raw.post(BOATS, boat())).code == 201
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://hooks.invalid/"}}
        by = {"strategy": "Webhook", "webhook": webhook}
        await raw.put(
            CRD, (await raw.get(CRD)).body | {"spec": crd(version(storage=False), version("v2"), conversion=by)["spec"]}
        )
        await raw.delete(CRD)
        await called.wait()
        assert (await raw.patch(CRD, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})).code == 200
        await gone(raw)


async def test_others_are_answered_while_many_instances_are_deleted(raw):
    await raw.post(CRDS, crd())
    for number in range(50):
        await raw.post(BOATS, boat(f"b{number}"))
    answered = 0

    async def ask():
        nonlocal answered
        while names := (await raw.get(BOATS)).names:
            answered += len(names) < 50
            await asyncio.sleep(0)

    await asyncio.gather(raw.delete(BOATS), ask())
    assert answered > 10


# restarts


async def test_definitions_are_served_again_after_a_restart(tmp_path):
    async with ApiServer(storage=tmp_path) as server:
        raw = Raw(server.handler)
        await raw.post(CRDS, crd())
        body = boat(spec={"name": "x"}) | {"metadata": {"name": "a", "finalizers": ["test.steersman.dev/wait"]}}
        assert (await raw.post(BOATS, body)).code == 201
        await raw.delete(CRD)
    async with ApiServer(storage=tmp_path) as server:
        raw = Raw(server.handler)
        assert (await raw.get(BOATS)).names == ["a"]
        assert (await raw.post(BOATS, boat("b"))).code == 403
        await raw.patch(f"{BOATS}/a", {"metadata": {"finalizers": None}})
        await gone(raw)
        # As on kube-apiserver, a kind is withdrawn a moment after its definition is gone.
        await gone(raw, BOATS)
        assert (await raw.get(BOATS)).code == 404


async def test_kinds_of_the_servers_own_stay_its_own(raw):
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    await raw.post(roles, {"metadata": {"name": "r"}, "rules": []})
    taken = crd(group="rbac.authorization.k8s.io")
    taken["metadata"] = {
        "name": "roles.rbac.authorization.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved"},
    }
    taken["spec"]["names"] = {"plural": "roles", "kind": "Role"}
    assert (await raw.post(CRDS, taken)).code == 201
    assert (await raw.get(roles)).body["kind"] == "RoleList"
    await raw.delete(f"{CRDS}/roles.rbac.authorization.k8s.io")
    await gone(raw, f"{CRDS}/roles.rbac.authorization.k8s.io")
    assert (await raw.get(roles)).names == ["r"]


async def test_a_damaged_definition_is_not_served_and_affects_no_other(server, raw, caplog):
    await raw.post(CRDS, crd())
    key = f"apiextensions.k8s.io/customresourcedefinitions/boats.{GROUP}"
    record, _ = await server.storage.get(key)
    await server.storage.put(key, record.value.replace(b'"storage":true', b'"storage":false'), expect=record.modified)
    await gone(raw, BOATS)
    assert "cannot be served" in caplog.text
    assert (await raw.post(CRDS, crd(group="other.test.steersman.dev"))).code == 201
    assert (await raw.get("/apis/other.test.steersman.dev/v1/boats")).code == 200


async def test_a_scale_stores_no_field_that_the_schema_lacks(raw):
    scaled = version(spec={"type": "object", "properties": {"color": {"type": "string"}}})
    paths = {"specReplicasPath": ".spec.masts", "statusReplicasPath": ".status.masts"}
    await raw.post(CRDS, crd(scaled | {"subresources": {"scale": paths}}))
    await raw.post(BOATS, boat(spec={"color": "red"}))
    written = await raw.patch(f"{BOATS}/a/scale", {"spec": {"replicas": 3}})
    assert (written.code, written.body["spec"]) == (200, {})
    assert (await raw.get(f"{BOATS}/a")).body["spec"] == {"color": "red"}
