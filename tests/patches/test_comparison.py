"""Subset and equality in meaning."""

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from steersman.objects.quantity import Quantity
from steersman.patches import MergeSchema, TooDeep, difference, is_subset, semantically_equal

STRING = {"type": "string"}
QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
}
PORT = {
    "type": "object",
    "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": STRING},
}
SPEC = {
    "text": STRING,
    "flag": {"type": "boolean"},
    "amount": QUANTITY,
    "when": {"type": "string", "format": "date-time"},
    "stamp": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"},
    "size": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
    "bytes": {"type": "string", "format": "byte"},
    "port": {"x-kubernetes-int-or-string": True},
    "atomic": {"type": "array", "items": {"type": "object", "properties": {"amount": QUANTITY, "x": STRING}}},
    "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
    "amounts": {"type": "array", "items": QUANTITY, "x-kubernetes-list-type": "set"},
    "ports": {
        "type": "array",
        "items": PORT,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
    },
    "labels": {"type": "object", "additionalProperties": STRING},
    "struct": {"type": "object", "properties": {"x": STRING}},
    "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": STRING, "y": STRING}},
}
COMPONENTS = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
}
SCHEMA = MergeSchema(
    {"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}},
    resolve=lambda reference: COMPONENTS[reference.rpartition("/")[2]],
)


def of(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (of(amount="1000m"), of(amount="1")),
        (of(amount=1), of(amount="1000m")),
        (of(size="1Gi"), of(size="1024Mi")),
        (of(size=0.5), of(size="500m")),
        (of(when="2026-01-01T01:00:00+01:00"), of(when="2026-01-01T00:00:00Z")),
        (of(stamp="2026-01-01T00:00:00.75Z"), of(stamp="2026-01-01T00:00:00Z")),
        (of(bytes="YWJj\n"), of(bytes="YWJj")),
        (of(port=80), of(port="80")),
        (of(set=["a", "b"]), of(set=["b", "a"])),
        (of(amounts=["1", "2"]), of(amounts=["2000m", "1000m"])),
        (
            of(ports=[{"port": 80, "name": "a"}, {"port": 81}]),
            of(ports=[{"port": 81}, {"port": 80, "name": "a"}]),
        ),
        (of(atomic=[{"amount": "1"}]), of(atomic=[{"amount": "1000m"}])),
        (of(text=None), of()),
        (of(set=[]), of()),
        (of(labels={}), of()),
        (of(labels={"a": None}), of(labels={})),
        (of(amount="garbage"), of(amount="garbage")),
    ],
)
def test_the_same_in_other_words(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert semantically_equal(left, right, SCHEMA)
    assert semantically_equal(right, left, SCHEMA)
    assert is_subset(left, right, SCHEMA)


@pytest.mark.parametrize(
    ("left", "right", "where"),
    [
        (of(amount="1"), of(amount="1001m"), ".spec.amount"),
        (of(amount="garbage"), of(amount="1"), ".spec.amount"),
        (of(when="2026-01-01T00:00:00.75Z"), of(when="2026-01-01T00:00:00Z"), ".spec.when"),
        (of(text="1000m"), of(text="1"), ".spec.text"),
        (of(flag=True), of(flag=1), ".spec.flag"),
        (of(text="1"), of(text=1), ".spec.text"),
        (of(set=["a"]), of(set=["b"]), '.spec.set[="a"]'),
        (of(set=["a"]), of(), ".spec.set"),
        (of(struct={}), of(), ".spec.struct"),
        (of(struct={"x": "1"}), of(struct="x"), ".spec.struct"),
        (of(atomic=[{"x": "1"}, {"x": "2"}]), of(atomic=[{"x": "2"}, {"x": "1"}]), ".spec.atomic[0].x"),
        (of(atomic=[{"x": "1"}]), of(atomic=[{"x": "1", "amount": "1"}]), ".spec.atomic[0].amount"),
        (of(atomic=[]), of(atomic=[{}]), ".spec.atomic"),
        (of(whole={"x": "1"}), of(whole={"x": "1", "y": "2"}), ".spec.whole.y"),
        (
            of(ports=[{"port": 80, "name": "a"}]),
            of(ports=[{"port": 80, "name": "b"}]),
            '.spec.ports[port=80,protocol="TCP"].name',
        ),
        (of(ports=[{"port": 80}]), of(ports=[{"port": 80, "protocol": "UDP"}]), '.spec.ports[port=80,protocol="TCP"]'),
        (of(text=None), of(text="x"), ".spec.text"),
        (of(unknown={"a": [1]}), of(unknown={"a": [2]}), ".spec.unknown.a[0]"),
    ],
)
def test_differences_are_found_and_named(left: dict[str, Any], right: dict[str, Any], where: str) -> None:
    assert difference(left, right, SCHEMA) == where
    assert not is_subset(left, right, SCHEMA)
    assert not semantically_equal(left, right, SCHEMA)


def test_what_others_own_does_not_disturb_a_subset() -> None:
    intent = of(labels={"a": "1"}, ports=[{"port": 80}], set=["a"], struct={})
    live = of(
        labels={"a": "1", "b": "2"},
        ports=[{"port": 81}, {"port": 80, "protocol": "TCP", "name": "x"}],
        set=["b", "a"],
        struct={"x": "1"},
        text="t",
    )
    assert is_subset(intent, live, SCHEMA)
    assert not is_subset(live, intent, SCHEMA)
    assert difference(intent, live, SCHEMA, exact=True) == ".spec.labels.b"


def test_items_that_occur_twice_make_a_list_compare_item_by_item() -> None:
    twice = of(ports=[{"port": 80}, {"port": 80}])
    assert semantically_equal(twice, copy.deepcopy(twice), SCHEMA)
    assert not is_subset(twice, of(ports=[{"port": 80}]), SCHEMA)


def test_secrets_compare_what_string_data_becomes() -> None:
    kind = {"apiVersion": "v1", "kind": "Secret"}
    live = {**kind, "data": {"user": "YWRtaW4=", "other": "eA=="}}
    assert is_subset({**kind, "stringData": {"user": "admin"}}, live)
    assert not is_subset({**kind, "stringData": {"user": "root"}}, live)
    assert is_subset({**kind, "data": {"user": "eA=="}, "stringData": {"user": "admin"}}, live), "stringData wins"
    assert not is_subset(
        {"apiVersion": "e.com/v2", "kind": "Other", "stringData": {"user": "admin"}},
        {**live, "apiVersion": "e.com/v2", "kind": "Other"},
    )


def test_an_explicit_predicate_tells_quantities() -> None:
    schema = MergeSchema(
        {"type": "object", "properties": {"cpu": {"type": "string", "x-mine": True}}},
        is_quantity=lambda place: "x-mine" in place,
    )
    assert semantically_equal({"cpu": "1"}, {"cpu": "1000m"}, schema)


def test_without_a_schema_values_are_plain_json() -> None:
    assert is_subset({"a": {"b": 1}}, {"a": {"b": 1.0, "c": 2}})
    assert not is_subset({"a": "1000m"}, {"a": "1"})
    assert not is_subset({"emptyDir": {}}, {})


def test_deep_objects_are_refused() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    twin: Any = 1
    for _ in range(5000):
        twin = {"a": twin}
    with pytest.raises(TooDeep):
        is_subset(deep, twin)


AMOUNTS = st.builds("{}{}".format, st.integers(0, 9999), st.sampled_from(["", "m", "k", "Ki", "Mi", "n"]))
PORTS = st.lists(
    st.fixed_dictionaries(
        {"port": st.integers(1, 5)},
        optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": st.sampled_from("ab")},
    ),
    max_size=4,
    unique_by=lambda port: (port["port"], port.get("protocol", "TCP")),
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "text": st.none() | st.sampled_from("ab"),
        "amount": AMOUNTS,
        "set": st.lists(st.sampled_from("abc"), unique=True),
        "ports": PORTS,
        "labels": st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
        "atomic": st.lists(
            st.fixed_dictionaries({}, optional={"amount": AMOUNTS, "x": st.sampled_from("ab")}), max_size=2
        ),
        "whole": st.dictionaries(st.sampled_from("xy"), st.sampled_from("ab")),
    },
)


def rewritten(spec: dict[str, Any], random: Any) -> dict[str, Any]:
    """Write the same in other words: other orders, other notations of amounts, absent for null."""
    other = copy.deepcopy({name: value for name, value in spec.items() if value is not None})
    for name in ("set", "ports"):
        if name in other:
            random.shuffle(other[name])
    for holder in (other, *other.get("atomic", [])):
        if "amount" in holder:
            holder["amount"] = Quantity(holder["amount"]).canonical()
    return dict(random.sample(list(other.items()), len(other)))


@given(SPECS, st.randoms(use_true_random=False))
def test_rewriting_changes_nothing(spec: dict[str, Any], random: Any) -> None:
    other = rewritten(spec, random)
    assert difference(of(**spec), of(**other), SCHEMA, exact=True) is None
    assert difference(of(**other), of(**spec), SCHEMA, exact=True) is None


@given(SPECS, SPECS)
def test_equality_is_symmetric_and_implies_both_subsets(left: dict[str, Any], right: dict[str, Any]) -> None:
    equal = semantically_equal(of(**left), of(**right), SCHEMA)
    assert equal == semantically_equal(of(**right), of(**left), SCHEMA)
    if equal:
        assert is_subset(of(**left), of(**right), SCHEMA)
        assert is_subset(of(**right), of(**left), SCHEMA)


@given(SPECS, SPECS)
def test_a_subset_stays_one_when_others_add_fields(intent: dict[str, Any], more: dict[str, Any]) -> None:
    live = {**{name: value for name, value in more.items() if name not in intent}, **intent}
    assert difference(of(**intent), of(**live), SCHEMA) is None
