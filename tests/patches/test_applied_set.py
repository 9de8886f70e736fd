"""The field set of an applied object, by schema."""

from typing import Any

import pytest

from steersman.patches import (
    STATUS_FIELDS,
    FieldSet,
    MergeSchema,
    PatchError,
    SchemaMismatch,
    TooDeep,
    applied_set,
)

STRING = {"type": "string"}


def schema(**spec: Any) -> MergeSchema:
    return MergeSchema(
        {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "status": {"type": "object"}}}
    )


def fields(where: MergeSchema, **spec: Any) -> list[str]:
    return str(applied_set({"spec": spec}, where)).splitlines()


def test_what_every_object_has_is_never_owned() -> None:
    applied = {
        "apiVersion": "v1",
        "kind": "Sample",
        "metadata": {
            "name": "a",
            "namespace": "b",
            "labels": {"x": "y"},
            "finalizers": ["f"],
            "resourceVersion": "1",
            "uid": "u",
        },
    }
    assert str(applied_set(applied, schema())).splitlines() == [
        '.metadata.finalizers[="f"]',
        ".metadata.labels.x",
    ]


def test_atomic_values_are_owned_as_a_whole() -> None:
    where = schema(
        plain={"type": "array", "items": STRING},
        struct={"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": STRING}},
    )
    assert fields(where, plain=["a"], struct={"x": "1"}) == [".spec.plain", ".spec.struct"]
    assert fields(where, plain=[], struct={}) == [".spec.plain", ".spec.struct"]


def test_list_items_are_named_by_key_with_defaults() -> None:
    item = {
        "type": "object",
        "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": STRING},
    }
    where = schema(
        ports={
            "type": "array",
            "items": item,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        }
    )
    assert fields(where, ports=[{"port": 80, "name": "web"}]) == [
        '.spec.ports[port=80,protocol="TCP"]',
        '.spec.ports[port=80,protocol="TCP"].name',
        '.spec.ports[port=80,protocol="TCP"].port',
    ]
    assert fields(where, ports=[]) == []
    with pytest.raises(SchemaMismatch, match=r'\.spec\.ports\[port=80,protocol="TCP"\]: the item occurs twice'):
        fields(where, ports=[{"port": 80}, {"port": 80, "protocol": "TCP"}])
    with pytest.raises(
        SchemaMismatch, match=r"\.spec\.ports\[1\]: an item of this list is an object with port and protocol"
    ):
        fields(where, ports=[{"port": 80}, 5])


def test_patch_strategies_stand_in_for_list_types() -> None:
    where = schema(
        keyed={
            "type": "array",
            "items": {"type": "object"},
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "name",
        },
        plain={"type": "array", "items": STRING, "x-kubernetes-patch-strategy": "merge"},
    )
    assert fields(where, keyed=[{"name": "a"}], plain=["x"]) == [
        '.spec.keyed[name="a"]',
        '.spec.keyed[name="a"].name',
        '.spec.plain[="x"]',
    ]


def test_keys_of_free_form_maps_are_owned_beside_what_they_hold() -> None:
    inner = {"type": "object", "properties": {"x": STRING}}
    where = schema(
        map={"type": "object", "additionalProperties": inner},
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    )
    assert fields(where, map={"k": {"x": "1"}}, free={"a": {"b": [1]}}) == [
        ".spec.free.a",
        ".spec.free.a.b",
        ".spec.map.k",
        ".spec.map.k.x",
    ]


def test_nulls_and_empty_objects_are_owned() -> None:
    where = schema(
        text=STRING,
        object={"type": "object", "properties": {"x": STRING}},
        set={"type": "array", "x-kubernetes-list-type": "set"},
    )
    assert fields(where, text=None, object={}, set=None) == [".spec.object", ".spec.set", ".spec.text"]


def test_status_is_ignored_where_the_endpoint_resets_it() -> None:
    where = MergeSchema(
        {"type": "object", "properties": {"status": {"type": "object", "additionalProperties": STRING}}}
    )
    assert str(applied_set({"status": {"a": "b"}}, where)) == ".status.a"
    assert applied_set({"status": {"a": "b"}}, where, ignored=STATUS_FIELDS) == FieldSet()


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"unknown": 1}, r"\.spec\.unknown: the schema knows no such field"),
        ({"text": {"a": 1}}, r"\.spec\.text: expected a text, found an object"),
        ({"text": [1]}, r"\.spec\.text: expected a text, found a list"),
        ({"object": [1]}, r"\.spec\.object: expected an object, found a list"),
        ({"object": {"list": 5}}, r"\.spec\.object\.list: expected a list, found 5"),
        ({"text": 5}, r"\.spec\.text: expected a text, found 5"),
        ({"object": {"list": ["a", True]}}, r"\.spec\.object\.list\[1\]: expected a text, found True"),
    ],
)
def test_what_a_server_would_refuse_is_refused_by_place(spec: dict[str, Any], complaint: str) -> None:
    where = schema(text=STRING, object={"type": "object", "properties": {"list": {"type": "array", "items": STRING}}})
    with pytest.raises(SchemaMismatch, match=complaint):
        fields(where, **spec)


def test_references_are_followed_lazily_and_may_recur() -> None:
    components = {
        "Node": {
            "type": "object",
            "properties": {"next": {"allOf": [{"$ref": "#/components/schemas/Node"}]}, "name": STRING},
        }
    }
    where = MergeSchema(
        {"$ref": "#/components/schemas/Node"}, resolve=lambda reference: components[reference.rpartition("/")[2]]
    )
    assert str(applied_set({"next": {"next": {"name": "c"}}}, where)) == ".next.next.name"


def test_a_reference_may_make_its_target_atomic() -> None:
    components = {"Part": {"type": "object", "properties": {"x": STRING}}}
    reference = {"$ref": "#/components/schemas/Part"}
    where = MergeSchema(
        {
            "type": "object",
            "properties": {"whole": {**reference, "x-kubernetes-map-type": "atomic"}, "open": reference},
        },
        resolve=lambda name: components[name.rpartition("/")[2]],
    )
    assert str(applied_set({"whole": {"x": "1"}, "open": {"x": "1"}}, where)).splitlines() == [".whole", ".open.x"]


def test_references_that_lead_nowhere_are_named() -> None:
    broken = {"type": "object", "properties": {"spec": {"$ref": "#/components/schemas/Missing"}}}
    with pytest.raises(PatchError, match="refers to #/components/schemas/Missing, which does not exist"):
        applied_set({"spec": {}}, MergeSchema(broken, resolve=lambda name: {}[name]))
    with pytest.raises(PatchError, match="nothing was given to resolve"):
        applied_set({"spec": {}}, MergeSchema(broken))
    with pytest.raises(PatchError, match="refers to itself"):
        MergeSchema({"$ref": "#/a"}, resolve=lambda name: {"$ref": name})


def test_a_kind_that_an_openapi_document_lacks_is_named() -> None:
    with pytest.raises(PatchError, match=r"no schema of Site in web\.example\.com/v1"):
        MergeSchema.from_openapi({"components": {"schemas": {}}}, group="web.example.com", version="v1", kind="Site")


def test_deep_objects_are_refused() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(TooDeep):
        applied_set({"spec": deep}, MergeSchema.untyped())
