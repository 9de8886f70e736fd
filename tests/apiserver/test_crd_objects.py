"""CustomResourceDefinitions on the embedded server: what is filled in, counted, kept, warned of and borne with."""

import copy
import json

import pytest

from samples.embedded import Raw
from samples.gadget import FirstGadget, SecondGadget, ThirdGadget
from samples.site import Site
from steersman.apiserver import ApiServer
from steersman.apiserver.registry.crd import default_crd, validate_crd, validate_crd_update
from steersman.schemas import crd_for

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ONE = f"{CRDS}/things.example.com"
OBJECT = {"type": "object"}


@pytest.fixture
async def raw():
    async with ApiServer(kinds=["v1", "apiextensions.k8s.io/v1"]) as server:
        yield Raw(server.handler)


def version(name="v1", schema=None, **more):
    held = {"openAPIV3Schema": OBJECT if schema is None else schema}
    return {"name": name, "served": True, "storage": True, "schema": held} | more


def crd(*versions, **spec):
    whole = {"group": "example.com", "names": {"plural": "things", "kind": "Thing"}, "scope": "Namespaced"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": whole | {"versions": list(versions) or [version()]} | spec,
    }


def with_fields(**fields):
    return OBJECT | {"properties": {"spec": OBJECT | {"properties": fields}}}


def stored(definition):
    """A definition as it would be in the store, whatever is wrong with it."""
    made = copy.deepcopy(definition)
    default_crd(made)
    return made


async def test_a_new_definition_is_filled_in_and_has_a_bare_status(raw):
    answer = await raw.post(
        CRDS, crd(version("v1", storage=False), version("v2")) | {"status": {"storedVersions": ["v9"]}}
    )
    assert answer.code == 201
    assert answer.body["metadata"]["generation"] == 1
    spec = answer.body["spec"]
    assert spec["names"] == {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    assert spec["conversion"] == {"strategy": "None"}
    assert answer.body["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v2"],
    }


async def test_what_was_stored_once_is_remembered(raw):
    await raw.post(CRDS, crd(version("v1"), version("v2", storage=False)))
    changed = {"spec": {"versions": [version("v1", storage=False), version("v2")]}}
    answer = await raw.patch(ONE, changed)
    assert (answer.body["metadata"]["generation"], answer.body["status"]["storedVersions"]) == (2, ["v1", "v2"])
    refused = await raw.patch(ONE, {"spec": {"versions": [version("v2")]}})
    assert refused.code == 422
    assert refused.body["details"]["causes"][0]["field"] == "status.storedVersions[0]"


async def test_an_update_that_changes_nothing_is_none(raw):
    created = await raw.post(f"{CRDS}?dryRun=All", crd())
    assert created.code == 201
    await raw.post(CRDS, crd())
    before = (await raw.get(ONE)).body["metadata"]["generation"]
    answer = await raw.patch(ONE, {"spec": {"names": {"singular": "thing"}, "preserveUnknownFields": False}})
    assert answer.body["metadata"]["generation"] == before


async def test_an_unknown_format_is_a_warning_once_and_only_when_it_is_new(raw):
    color = {"type": "string", "format": "color"}
    answer = await raw.post(CRDS, crd(version(schema=with_fields(a=color, b=color))))
    assert answer.headers["Warning"] == r'299 - "unrecognized format \"color\""'
    answer = await raw.patch(ONE, {"spec": {"versions": [version(schema=with_fields(a=color))]}})
    assert (answer.code, "Warning" in answer.headers) == (200, False)


async def test_what_is_no_schema_below_items_is_no_definition(raw):
    answer = await raw.post(CRDS, crd(version(schema=with_fields(a={"type": "array", "items": {"type": 1}}))))
    assert answer.code == 400
    assert (
        "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.properties.items.type"
        in answer.body["message"]
    )


def test_an_embedded_object_in_a_default_is_judged_as_one():
    embedded = OBJECT | {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    definition = stored(crd(version(schema=with_fields(a=embedded | {"default": {"kind": "Thing"}}))))
    assert [found.path.rpartition(".")[2] for found in validate_crd(definition)] == ["apiVersion"]


#: Schemas that no server takes today, and did once.
BEFORE = {
    "a-type-that-is-none": with_fields(a={"type": "text"}),
    "a-set-of-objects": with_fields(a={"type": "array", "items": OBJECT, "x-kubernetes-list-type": "set"}),
    "a-key-that-may-be-missing": with_fields(
        a={
            "type": "array",
            "items": OBJECT | {"properties": {"name": {"type": "string"}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        }
    ),
    "a-default-with-more-than-there-is": with_fields(a=OBJECT | {"default": {"b": 1}}),
}


@pytest.mark.parametrize("name", BEFORE)
def test_what_was_wrong_before_a_rule_came_may_stay_wrong(name):
    old = stored(crd(version(schema=BEFORE[name])))
    assert validate_crd(old)
    changed = stored(crd(version(schema=BEFORE[name]), scope="Namespaced"))
    changed["spec"]["names"]["shortNames"] = ["th"]
    assert validate_crd_update(changed, old) == []
    good = stored(crd())
    assert validate_crd_update(changed, good) == [
        found for found in validate_crd(changed) if not found.path.startswith("metadata")
    ]


def test_a_schema_that_is_not_structural_may_stay_so_while_nothing_is_pruned():
    loose = {"properties": {"a": {}}}
    old = stored(crd(version(schema=loose), preserveUnknownFields=True))
    assert validate_crd_update(copy.deepcopy(old), old) == []
    pruned = stored(crd(version(schema=loose)))
    assert {found.reason for found in validate_crd_update(pruned, old)} == {"FieldValueRequired"}


def test_an_update_cannot_preserve_unknown_fields_again():
    old = stored(crd())
    changed = stored(crd(preserveUnknownFields=True))
    assert [found.path for found in validate_crd_update(changed, old)] == ["spec.preserveUnknownFields"]


def test_names_and_scope_of_what_is_served_stay():
    old = stored(crd())
    old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    changed = stored(crd(scope="Cluster", names={"plural": "things", "kind": "Other"}))
    assert [found.path for found in validate_crd_update(changed, old)] == ["spec.scope", "spec.names.kind"]
    old["status"]["conditions"] = None
    assert validate_crd_update(changed, old) == []


def test_a_bad_bundle_is_only_borne_with_if_it_was_there():
    def hooked(bundle):
        client = {"url": "https://example.com/convert"} | ({"caBundle": bundle} if bundle else {})
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        made = stored(crd(conversion={"strategy": "Webhook", "webhook": webhook}))
        made["status"]["conditions"] = [{"type": "Established", "status": "True"}]
        return made

    bad, worse = hooked("bm8gcGVt"), hooked("bm9uZQ==")
    assert [found.path for found in validate_crd_update(bad, hooked(""))] == [
        "spec.conversion.webhookClientConfig.caBundle"
    ]
    assert validate_crd_update(worse, bad) == []


@pytest.mark.parametrize("kind", [Site, FirstGadget, SecondGadget, ThirdGadget])
def test_what_our_classes_define_is_taken(kind):
    assert validate_crd(stored(crd_for(kind))) == []


def test_a_default_that_breaks_a_rule_of_its_own_field_is_refused():
    rule = {"rule": "self.startsWith('a')", "message": "begins with a"}
    field = {"type": "string", "maxLength": 5, "x-kubernetes-validations": [rule]}
    assert validate_crd(stored(crd(version(schema=with_fields(a=field | {"default": "ab"}))))) == []
    found = validate_crd(stored(crd(version(schema=with_fields(a=field | {"default": "ba"})))))
    assert [each.message for each in found] == ['Invalid value: "ba": begins with a']


def test_a_large_definition_is_judged_like_a_small_one():
    """Parts of one schema are looked at once each: ten thousand of them are one part many times."""
    many = with_fields(**{f"field{at}": {"type": "string", "pattern": "("} for at in range(10_000)})
    found = validate_crd(stored(crd(version(schema=many))))
    assert len(found) == 10_000
    assert len({found_.path for found_ in found}) == 10_000
    assert json.dumps(found[0].message).count("missing closing )") == 1
