"""Requests at the seams between parts that are each right: selectors and conversions, options and preconditions."""

import asyncio
import functools
import json

import pytest

from samples.embedded import Raw
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOATS = "/apis/x.example.com/{}/namespaces/default/boats"


def boats():
    """A kind in two versions; a webhook converts."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
    client = {"service": {"namespace": "default", "name": "hook"}}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    spec = {"group": "x.example.com", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"}}
    spec |= {"versions": versions, "conversion": {"strategy": "Webhook", "webhook": webhook}}
    return {"metadata": {"name": "boats.x.example.com"}, "spec": spec}


async def relabel(_target, body, *, timeout, cargo=""):  # noqa: ASYNC109 - as the protocol has it
    """A webhook that labels what it converts."""
    del timeout
    review = json.loads(body)
    objects = review["request"]["objects"]
    for each in objects:
        each["apiVersion"] = review["request"]["desiredAPIVersion"]
        each["metadata"]["labels"] = {"converted": "yes"}
        each["cargo"] = cargo
    answer = {"uid": review["request"]["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
    return json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer}).encode()


@pytest.mark.parametrize("options", ["", "&resourceVersion=1"], ids=["initial", "changes"])
async def test_a_watch_selects_by_the_labels_that_its_version_shows(options):
    """A list and a watch of one version show the same objects, whatever the stored labels are."""
    async with ApiServer(kinds=["apiextensions.k8s.io/v1"], webhook_caller=relabel) as server:
        raw = Raw(server.handler)
        assert (await raw.post(CRDS, boats())).code == 201
        boat = {"apiVersion": "x.example.com/v1", "kind": "Boat", "metadata": {"name": "a"}}
        made = await raw.post(BOATS.format("v1"), boat)
        assert (await raw.get(f"{BOATS.format('v1')}?labelSelector=converted&resourceVersion=0")).names == []
        assert (await raw.get(f"{BOATS.format('v2')}?labelSelector=converted")).names == ["a"]
        since = options and f"&resourceVersion={int(made.version) - 1}"
        new = await raw.watch(f"{BOATS.format('v2')}?watch=1&labelSelector=converted{since}")
        old = await raw.watch(f"{BOATS.format('v1')}?watch=1&labelSelector=converted{since}")
        boat["metadata"] = {"name": "b", "labels": {"converted": "no"}}
        await raw.post(BOATS.format("v1"), boat)
        first = [await watch.next() for watch in (new, old)]
        assert [each["object"]["metadata"]["name"] for each in first] == ["a", "b"]
        await new.close()
        await old.close()


async def test_a_watch_that_is_far_behind_gets_large_converted_objects():
    """It has missed more than the server keeps of converted objects: each is converted when it is shown."""
    cargo = "x" * 8_000_000
    async with ApiServer(
        kinds=["apiextensions.k8s.io/v1"], webhook_caller=functools.partial(relabel, cargo=cargo)
    ) as server:
        raw = Raw(server.handler)
        assert (await raw.post(CRDS, boats())).code == 201
        for name in "abcdef":
            made = await raw.post(
                BOATS.format("v1"), {"apiVersion": "x.example.com/v1", "kind": "Boat", "metadata": {"name": name}}
            )
        late = await raw.watch(f"{BOATS.format('v2')}?watch=1&resourceVersion={made.version - 6}")
        frames = await late.take(6)
        assert [frame["object"].get("apiVersion") for frame in frames] == ["x.example.com/v2"] * 6
        await late.close()


@pytest.mark.parametrize("content_type", ["application/apply-patch+yaml", "application/merge-patch+json"])
async def test_a_write_among_many_others_has_all_its_conversions(content_type):
    """Others write while the webhook converts: however often the write is retried, it succeeds and keeps managed fields."""
    due, path = [], f"{BOATS.format('v1')}/a?fieldManager="

    async def convert(_target, body, *, timeout):  # noqa: ASYNC109 - as the protocol has it
        del timeout
        review = json.loads(body)
        for each in review["request"]["objects"]:
            each["apiVersion"] = review["request"]["desiredAPIVersion"]
        if due and due[0] != "writing":
            number = due[0]
            due[0] = "writing"
            assert (await raw.patch(f"{path}other", {"metadata": {"labels": {"number": f"{number}"}}})).code == 200
            del due[0]
        answer = {"uid": review["request"]["uid"], "result": {"status": "Success"}}
        answer["convertedObjects"] = review["request"]["objects"]
        return json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer}).encode()

    async with ApiServer(kinds=["apiextensions.k8s.io/v1"], webhook_caller=convert) as server:
        raw = Raw(server.handler)
        assert (await raw.post(CRDS, boats())).code == 201
        boat = {"apiVersion": "x.example.com/v2", "kind": "Boat", "metadata": {"name": "a"}, "sails": 1}
        assert (await raw.post(f"{BOATS.format('v2')}?fieldManager=two", boat)).code == 201
        due.extend(range(120))
        change = {"apiVersion": "x.example.com/v1", "kind": "Boat", "crew": 2}
        forced = "&force=true" if "apply" in content_type else ""
        made = await raw.send("PATCH", f"{path}one{forced}", change, content_type=content_type)
        assert (made.code, due) == (200, []), made.text
        assert (made.body["crew"], made.body["metadata"]["labels"]) == (2, {"number": "119"})
        assert {each["manager"] for each in made.body["metadata"]["managedFields"]} == {"one", "two", "other"}


async def test_a_policy_gets_its_parameters_in_the_version_that_it_names():
    """A webhook converts them: also an object that no client has read yet."""
    async with ApiServer(
        kinds=["v1", "apiextensions.k8s.io/v1", "admissionregistration.k8s.io/v1"],
        webhook_caller=functools.partial(relabel, cargo="none"),
    ) as server:
        raw = Raw(server.handler)
        assert (await raw.post(CRDS, boats())).code == 201
        boat = {"apiVersion": "x.example.com/v1", "kind": "Boat", "metadata": {"name": "a"}}
        assert (await raw.post(BOATS.format("v1"), boat)).code == 201
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
        policy = {
            "paramKind": {"apiVersion": "x.example.com/v2", "kind": "Boat"},
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "params.cargo != 'none'", "message": "no cargo"}],
        }
        path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic{}"
        assert (await raw.post(path.format("ies"), {"metadata": {"name": "p"}, "spec": policy})).code == 201
        bound = {
            "policyName": "p",
            "paramRef": {"name": "a", "namespace": "default", "parameterNotFoundAction": "Deny"},
        }
        binding = {"metadata": {"name": "b"}, "spec": bound | {"validationActions": ["Deny"]}}
        assert (await raw.post(path.format("ybindings"), binding)).code == 201
        denied = await raw.post(MAPS, {"metadata": {"name": "a"}})
        assert (denied.code, denied.body["message"].rpartition(": ")[2]) == (422, "no cargo")


@pytest.mark.parametrize("path", [f"{MAPS}/a", MAPS])
@pytest.mark.parametrize("precondition", ["uid=other", "resourceVersion=1"])
async def test_preconditions_in_the_query_of_a_deletion_count(raw, path, precondition):
    """kube-apiserver reads them from the query, too; an object that another one replaced is not deleted."""
    await raw.post(MAPS, {"metadata": {"name": "a"}})
    await raw.send("DELETE", f"{path}?{precondition}")
    assert (await raw.get(f"{MAPS}/a")).code == 200


async def test_a_page_that_begins_after_an_object_does_not_have_it(raw):
    for name in "abc":
        await raw.post(MAPS, {"metadata": {"name": name}})
    token = (await raw.get(f"{MAPS}?limit=2")).body["metadata"]["continue"]
    found = [(await raw.get(f"{MAPS}?continue={token}&fieldSelector=metadata.name%3D{name}")).names for name in "ac"]
    assert found == [[], ["c"]]


async def test_nothing_is_stored_in_a_namespace_that_is_gone():
    """What waited for a webhook all the time would appear in the next namespace of that name."""
    waits, goes = asyncio.Event(), asyncio.Event()

    async def slow(attributes):
        if attributes.name == "late":
            waits.set()
            await goes.wait()

    async with ApiServer(kinds=["v1"], admission=[slow]) as server, Supervisor() as tasks:
        raw = Raw(server.handler)
        await raw.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        late = tasks.start(
            raw.post("/api/v1/namespaces/shop/configmaps", {"metadata": {"name": "late"}}), name="late creation"
        )
        await waits.wait()
        ended = (await raw.delete("/api/v1/namespaces/shop")).body
        await raw.put("/api/v1/namespaces/shop/finalize", ended | {"spec": {}})
        assert (await raw.get("/api/v1/namespaces/shop")).code == 404
        goes.set()
        assert (await late).code == 404
        assert (await server.storage.list("core/configmaps/shop/")).records == []
