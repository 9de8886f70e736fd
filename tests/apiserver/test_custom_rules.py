"""What a custom resource may not become, by whatever request, and what is not there of its group."""

import pytest

from samples.site import GROUP

V1 = f"/apis/{GROUP}/v1"
SITES = f"{V1}/namespaces/default/sites"


@pytest.fixture
async def one(raw):
    spec = {"image": "example.com/web:1"}
    made = await raw.post(SITES, {"apiVersion": f"{GROUP}/v1", "kind": "Site", "metadata": {"name": "a"}, "spec": spec})
    assert made.code == 201
    return made.body


@pytest.mark.parametrize(
    ("below", "change", "field"),
    [
        ("", {"spec": {"image": True}}, "spec.image"),
        ("", {"spec": {"mode": "lazy"}}, "spec.mode"),
        ("", {"spec": {"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}}, "spec.ports[1]"),
        ("", {"spec": None}, "spec"),
        ("/status", {"status": {"replicas": "x"}}, "status.replicas"),
        ("/scale", {"spec": {"replicas": 51}}, "spec.replicas"),
    ],
    ids=["type", "enumeration", "key-twice", "required", "status", "scale"],
)
async def test_a_change_is_judged_as_a_new_object_is(raw, one, below, change, field):
    refused = await raw.patch(f"{SITES}/a{below}", change)
    assert (refused.code, refused.causes[0][0]) == (422, field)
    assert (await raw.get(f"{SITES}/a")).body == one


async def test_replicas_are_a_number_that_can_be(raw, one):
    for replicas in (-1, 2**31, 2.0, "3"):
        refused = await raw.patch(f"{SITES}/a", {"spec": {"replicas": replicas}})
        assert (".spec.replicas", "FieldValueInvalid") in refused.causes, replicas


async def test_a_change_is_pruned_and_defaulted(raw, one):
    changed = await raw.patch(f"{SITES}/a", {"spec": {"mode": None, "replicas": 3, "color": "red"}})
    assert changed.body["spec"] == {"image": "example.com/web:1", "replicas": 3, "mode": "static"}
    assert 'unknown field \\"spec.color\\"' in changed.headers["Warning"]


@pytest.mark.parametrize("path", [f"{V1}/nope", f"{V1}/namespaces/default/nope", f"{V1}/sites/a", f"{V1}/namespaces/x"])
async def test_of_a_custom_group_nothing_but_its_resources_is_known(raw, path):
    answered = await raw.get(path)
    assert (answered.code, answered.text) == (404, b"404 page not found\n")


async def test_requests_that_only_custom_resources_take_so(raw, one):
    assert (await raw.get(f"{SITES}/a/nope")).body["message"] == f'sites.{GROUP} "a" not found'
    assert (await raw.put(SITES, one)).body["message"] == "name must be provided"
    again = await raw.post(f"{SITES}/b", one | {"metadata": {"name": "b"}})
    assert (again.code, again.body["metadata"]["name"]) == (201, "b")
