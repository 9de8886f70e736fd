"""Single objects: made, read, changed and deleted, by raw requests."""

import asyncio
import re

import pytest

from samples.embedded import JSON_PATCH

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
SITES = "/apis/web.test.steersman.dev/v1/namespaces/default/sites"


def config_map(name="a", **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name} | metadata, "data": {"k": "v"}}


def a_site(name="s", **spec):
    return {
        "apiVersion": "web.test.steersman.dev/v1",
        "kind": "Site",
        "metadata": {"name": name},
        "spec": {"image": "i"} | spec,
    }


async def test_a_new_object_gets_its_identity_from_the_server(raw):
    forged = config_map(uid="mine", creationTimestamp="2001-01-01T00:00:00Z", deletionTimestamp="2001-01-01T00:00:00Z")
    made = await raw.post(MAPS, forged)
    metadata = made.body["metadata"]
    assert made.code == 201
    assert re.fullmatch("[0-9a-f-]{36}", metadata["uid"])
    assert metadata["creationTimestamp"] > "2020"
    assert metadata["namespace"] == "default"
    assert "deletionTimestamp" not in metadata
    assert (await raw.get(f"{MAPS}/a")).body == made.body


async def test_a_name_is_generated_and_short_enough(raw):
    made = await raw.post(MAPS, {"metadata": {"generateName": "g" * 70}})
    assert re.fullmatch("g{58}[bcdfghjklmnpqrstvwxz2456789]{5}", made.body["metadata"]["name"])


async def test_what_is_there_cannot_be_made(raw):
    await raw.post(MAPS, config_map())
    again = await raw.post(MAPS, config_map())
    assert (again.code, again.body["reason"]) == (409, "AlreadyExists")
    assert again.body["message"] == 'configmaps "a" already exists'


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": ""}, "metadata.name"),
        ({"name": "A"}, "metadata.name"),
        ({"labels": {"a b": ""}}, "metadata.labels"),
        ({"labels": {"a": "-"}}, "metadata.labels"),
        ({"annotations": {"/": ""}}, "metadata.annotations"),
        ({"annotations": {"a": "x" * 262_144}}, "metadata.annotations"),
        ({"finalizers": ["nobody"]}, "metadata.finalizers[0]"),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, "metadata.finalizers"),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a"}]}, "metadata.ownerReferences[0].uid"),
    ],
)
async def test_metadata_are_judged(raw, metadata, field):
    refused = await raw.post(MAPS, config_map(**metadata))
    assert refused.code == 422
    assert field in [path for path, _ in refused.causes]


@pytest.mark.parametrize("metadata", [{"labels": 1}, {"name": 1}, {"finalizers": {}}, {"ownerReferences": [1]}, 5, []])
async def test_metadata_of_wrong_types_are_a_bad_request(raw, metadata):
    assert (await raw.post(MAPS, {"metadata": metadata})).code == 400


async def test_names_and_namespaces_must_agree_with_the_path(raw):
    await raw.post(MAPS, config_map())
    assert (await raw.post(MAPS, config_map(namespace="other"))).code == 400
    assert (await raw.put(f"{MAPS}/a", config_map("b"))).code == 400
    assert (await raw.put(f"{MAPS}/a", config_map(namespace="other"))).code == 400
    assert (await raw.patch(f"{MAPS}/a", {"metadata": {"name": "b"}})).code == 400


async def test_nothing_is_made_without_a_namespace(raw):
    missing = await raw.post("/api/v1/namespaces/nowhere/configmaps", config_map())
    assert (missing.code, missing.body["message"]) == (404, 'namespaces "nowhere" not found')


async def test_an_update_rests_on_the_version_that_it_names(raw):
    made = await raw.post(MAPS, config_map())
    changed = await raw.put(f"{MAPS}/a", made.body | {"data": {"k": "2"}})
    stale = await raw.put(f"{MAPS}/a", made.body | {"data": {"k": "3"}})
    assert (changed.code, stale.code, stale.body["reason"]) == (200, 409, "Conflict")
    assert (await raw.get(f"{MAPS}/a")).body["data"] == {"k": "2"}


async def test_an_update_for_another_object_of_the_name_is_a_conflict(raw):
    await raw.post(MAPS, config_map())
    other = await raw.put(f"{MAPS}/a", config_map(uid="another"))
    assert other.code == 409
    assert "UID in precondition: another" in other.body["message"]


async def test_some_kinds_want_a_version_and_some_are_made_by_put(raw):
    made = await raw.put(f"{LEASES}/l", {"metadata": {"name": "l"}})
    again = await raw.put(f"{LEASES}/l", {"metadata": {"name": "l"}})
    assert (made.code, again.code) == (201, 422)
    assert again.causes == [("metadata.resourceVersion", "FieldValueInvalid")]
    assert (await raw.put(f"{MAPS}/a", config_map())).code == 404


async def test_a_write_that_changes_nothing_makes_no_version(raw):
    made = await raw.post(MAPS, config_map(labels={"a": "b"}))
    reordered = {"data": {"k": "v"}, "metadata": {"labels": {"a": "b"}, "name": "a"}}
    assert (await raw.put(f"{MAPS}/a", reordered)).body == made.body
    assert (await raw.patch(f"{MAPS}/a", {"data": {"k": "v"}})).body == made.body
    assert (await raw.get(MAPS)).version == made.version


async def test_fields_of_the_server_stay(raw):
    made = await raw.post(MAPS, config_map())
    changed = await raw.patch(
        f"{MAPS}/a", {"metadata": {"creationTimestamp": None, "generation": 9}, "data": {"k": "2"}}
    )
    assert changed.body["metadata"]["creationTimestamp"] == made.body["metadata"]["creationTimestamp"]
    assert "generation" not in changed.body["metadata"]
    uid = await raw.patch(f"{MAPS}/a", {"metadata": {"uid": "x"}})
    assert (uid.code, uid.causes[0]) == (422, ("metadata.uid", "FieldValueInvalid"))


async def test_patches(raw):
    await raw.post(MAPS, config_map())
    merged = await raw.patch(f"{MAPS}/a", {"data": {"k": None, "m": "n"}})
    assert merged.body["data"] == {"m": "n"}
    operations = [{"op": "test", "path": "/data/m", "value": "n"}, {"op": "add", "path": "/data/o", "value": "p"}]
    patched = await raw.patch(f"{MAPS}/a", operations, content_type=JSON_PATCH)
    assert patched.body["data"] == {"m": "n", "o": "p"}
    failed = await raw.patch(f"{MAPS}/a", [{"op": "test", "path": "/data/m", "value": "x"}], content_type=JSON_PATCH)
    assert (failed.code, failed.body["reason"]) == (422, "Invalid")


async def test_an_unknown_form_of_patch_is_refused(raw):
    await raw.post(MAPS, config_map())
    for content_type in ("application/json", "application/apply-patch+cbor", "text/plain"):
        assert (await raw.patch(f"{MAPS}/a", {}, content_type=content_type)).code == 415
    strategic = await raw.patch(SITES + "/s", {}, content_type="application/strategic-merge-patch+json")
    assert strategic.code == 415


async def test_a_dry_run_tells_everything_and_stores_nothing(raw):
    tried = await raw.post(f"{MAPS}?dryRun=All", config_map())
    assert tried.code == 201
    assert "resourceVersion" not in tried.body["metadata"]
    assert (await raw.get(f"{MAPS}/a")).code == 404
    made = await raw.post(MAPS, config_map())
    assert (await raw.post(f"{MAPS}?dryRun=All", config_map())).code == 409
    assert (await raw.put(f"{MAPS}/a?dryRun=All", config_map() | {"data": {}})).code == 200
    assert (await raw.patch(f"{MAPS}/a?dryRun=All", {"data": {"x": "y"}})).body["data"] == {"k": "v", "x": "y"}
    assert (await raw.delete(f"{MAPS}/a?dryRun=All")).code == 200
    assert (await raw.delete(f"{MAPS}?dryRun=All")).names == ["a"]
    assert (await raw.get(f"{MAPS}/a")).body == made.body


async def test_bad_options_are_refused_together(raw):
    refused = await raw.post(f"{MAPS}?dryRun=x&fieldManager=%01&fieldValidation=y", config_map())
    assert [path for path, _ in refused.causes] == ["fieldManager", "dryRun", "fieldValidation"]


# deletion


async def test_a_deletion_tells_what_is_gone(raw):
    made = await raw.post(MAPS, config_map())
    gone = await raw.delete(f"{MAPS}/a")
    assert gone.body["status"] == "Success"
    assert gone.body["details"] == {"name": "a", "kind": "configmaps", "uid": made.body["metadata"]["uid"]}
    assert (await raw.delete(f"{MAPS}/a")).code == 404


async def test_finalizers_hold_an_object_until_the_last_is_taken_away(raw):
    await raw.post(MAPS, config_map(finalizers=["example.com/a", "example.com/b"]))
    marked = await raw.delete(f"{MAPS}/a")
    assert marked.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked.body["metadata"]["deletionTimestamp"]
    assert (await raw.delete(f"{MAPS}/a")).body == marked.body
    added = await raw.patch(f"{MAPS}/a", {"metadata": {"finalizers": ["example.com/a", "example.com/c"]}})
    assert added.code == 422
    assert (await raw.patch(f"{MAPS}/a", {"metadata": {"finalizers": ["example.com/b"]}})).code == 200
    kept = await raw.get(f"{MAPS}/a")
    assert kept.body["metadata"]["deletionTimestamp"] == marked.body["metadata"]["deletionTimestamp"]
    assert (await raw.patch(f"{MAPS}/a", {"metadata": {"finalizers": None}})).code == 200
    assert (await raw.get(f"{MAPS}/a")).code == 404


@pytest.mark.parametrize(
    ("policy", "finalizers"), [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)]
)
async def test_policies_become_finalizers(raw, policy, finalizers):
    await raw.post(MAPS, config_map())
    answered = await raw.delete(f"{MAPS}/a", {"propagationPolicy": policy})
    if finalizers is None:
        assert (await raw.get(f"{MAPS}/a")).code == 404
    else:
        assert answered.body["metadata"]["finalizers"] == finalizers


async def test_preconditions_are_kept(raw):
    made = await raw.post(MAPS, config_map())
    for wrong in ({"uid": "x"}, {"resourceVersion": "1"}):
        assert (await raw.delete(f"{MAPS}/a", {"preconditions": wrong})).code == 409
    right = {"uid": made.body["metadata"]["uid"], "resourceVersion": str(made.version)}
    assert (await raw.delete(f"{MAPS}/a", {"preconditions": right})).code == 200


async def test_a_collection_is_deleted_by_selector_and_finalizers_count(raw):
    await raw.post(MAPS, config_map("a", labels={"x": "y"}))
    await raw.post(MAPS, config_map("b", labels={"x": "y"}, finalizers=["example.com/a"]))
    await raw.post(MAPS, config_map("c"))
    assert (await raw.delete(f"{MAPS}?labelSelector=x=y")).names == ["a", "b"]
    assert (await raw.get(MAPS)).names == ["b", "c"]


async def test_a_namespace_ends_when_it_is_finalized(raw):
    await raw.post("/api/v1/namespaces", {"metadata": {"name": "n"}})
    ending = await raw.delete("/api/v1/namespaces/n")
    assert ending.body["status"] == {"phase": "Terminating"}
    refused = await raw.post("/api/v1/namespaces/n/configmaps", config_map())
    assert (refused.code, refused.causes) == (403, [("metadata.namespace", "NamespaceTerminating")])
    finished = await raw.put("/api/v1/namespaces/n/finalize", {"metadata": {"name": "n"}, "spec": {}})
    assert finished.code == 200
    assert (await raw.get("/api/v1/namespaces/n")).code == 404
    assert (await raw.delete("/api/v1/namespaces/default")).code == 403


# custom resources and subresources


async def test_a_resource_class_is_served_as_its_crd_would_be(raw):
    made = await raw.post(SITES, a_site() | {"status": {"replicas": 9}})
    assert made.body["metadata"]["generation"] == 1
    assert "status" not in made.body
    unconditional = await raw.put(f"{SITES}/s", a_site())
    assert unconditional.causes == [("metadata.resourceVersion", "FieldValueInvalid")]
    changed = await raw.patch(f"{SITES}/s", {"spec": {"image": "j"}, "status": {"replicas": 1}})
    assert changed.body["metadata"]["generation"] == 2
    assert "status" not in changed.body
    assert (await raw.get(SITES)).body["items"][0]["kind"] == "Site"


async def test_a_status_is_changed_through_itself_alone(raw):
    await raw.post(SITES, a_site())
    change = {"spec": {"image": "j"}, "metadata": {"labels": {"a": "b"}}, "status": {"replicas": 3}}
    changed = await raw.patch(f"{SITES}/s/status", change)
    assert changed.body["status"] == {"replicas": 3, "readyReplicas": 0}
    assert changed.body["spec"]["image"] == "i"
    assert changed.body["metadata"]["generation"] == 1
    assert "labels" not in changed.body["metadata"]
    assert (await raw.patch(f"{MAPS}/a/status", {})).code == 404


async def test_a_deletion_counts_as_a_generation(raw):
    await raw.post(SITES, a_site() | {"metadata": {"name": "s", "finalizers": ["example.com/a"]}})
    marked = await raw.delete(f"{SITES}/s")
    assert marked.body["metadata"]["generation"] == 2


async def test_scale(raw):
    await raw.post(SITES, a_site(replicas=2))
    scale = await raw.get(f"{SITES}/s/scale")
    assert (scale.body["kind"], scale.body["spec"]) == ("Scale", {"replicas": 2})
    scaled = await raw.put(f"{SITES}/s/scale", {"metadata": {"name": "s"}, "spec": {"replicas": 5}})
    assert scaled.body["spec"] == {"replicas": 5}
    assert (await raw.patch(f"{SITES}/s/scale", {"spec": {"replicas": -1}})).code == 422
    stale = {"metadata": {"name": "s", "resourceVersion": "1"}, "spec": {"replicas": 6}}
    assert (await raw.put(f"{SITES}/s/scale", stale)).code == 409
    assert (await raw.get(f"{SITES}/s")).body["spec"]["replicas"] == 5


# the request path


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/apis/nobody.dev/v1/things", 404),
        ("GET", "/api/v1/things", 404),
        ("POST", f"{MAPS}/a", 405),
        ("PUT", MAPS, 405),
        ("PATCH", MAPS, 405),
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("OPTIONS", MAPS, 405),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", f"{MAPS}/%2e%2e", 404),
    ],
)
async def test_paths_and_methods_that_mean_nothing(raw, method, path, code):
    assert (await raw.send(method, path, {} if method != "GET" else None)).code == code


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000, b"[" * 400_000 + b'"', b'{"a":' * 200_000, b'{"kind":1}'],
)
async def test_bodies_that_are_no_objects(raw, body):
    assert (await raw.post(MAPS, body)).code == 400
    assert (await raw.put(f"{MAPS}/a", body)).code == 400


async def test_a_long_body_is_refused(raw):
    assert (await raw.post(MAPS, b" " * (3 * 1024 * 1024 + 1))).code == 413


async def test_fifty_writers_lose_nothing(raw):
    await raw.post(MAPS, config_map())

    async def write(number):
        while True:
            current = (await raw.get(f"{MAPS}/a")).body
            current["data"][f"w{number}"] = str(number)
            # lets the others come between
            await asyncio.sleep(0)
            if (await raw.put(f"{MAPS}/a", current)).code == 200:
                return
            assert current["data"]

    async def patch(number):
        answered = await raw.patch(f"{MAPS}/a", {"data": {f"p{number}": str(number)}})
        assert answered.code == 200

    async with asyncio.TaskGroup() as tasks:
        for number in range(25):
            tasks.create_task(write(number))
            tasks.create_task(patch(number))
    data = (await raw.get(f"{MAPS}/a")).body["data"]
    assert data == {"k": "v"} | {f"{kind}{number}": str(number) for kind in "wp" for number in range(25)}


async def test_the_order_of_a_body_does_not_matter(raw):
    inner = {"metadata": {"labels": {"a": "b"}}}
    body = {"data": {"metadata": '"metadata":{'}, "metadata": {"name": "a"}, "kind": "ConfigMap", "apiVersion": "v1"}
    made = await raw.post(MAPS, body)
    assert made.body["metadata"]["name"] == "a"
    site = {"spec": {"image": "i", "settings": inner}} | {
        name: a_site()[name] for name in ("metadata", "kind", "apiVersion")
    }
    custom = await raw.post(SITES, site)
    assert custom.body["spec"]["settings"] == inner
    assert custom.version == (await raw.get(f"{SITES}/s")).version
    (item,) = (await raw.get(SITES)).body["items"]
    assert item == custom.body
