"""Protobuf bodies: they mean what the same objects mean as JSON, and nothing that is sent can do harm."""

from __future__ import annotations

import json
from contextlib import suppress
from math import inf, nan
from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from time import process_time  # noqa: TID251 - what is measured is how long it takes
from typing import Any

import pytest
from conformance.protobuf_decoding import tree_of
from conformance.protobuf_encoding import (
    MAGIC,
    PROTOBUF,
    bytes_field,
    encode,
    envelope,
    number_field,
    shape_for,
    varint,
)
from hypothesis import given, strategies as st

from samples.random_values import metadata
from samples.round_trips import RECIPES
from steersman.apiserver.decoding import BODY_MAX, decode_body
from steersman.apiserver.decoding.stored_size import protobuf_size
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.go_types.shapes import Shape, shape_of
from steersman.apiserver.protobuf.reader import Field, Message, fields_of, read_message
from steersman.apiserver.registry import Definition
from steersman.apiserver.registry.builtin.types.canonical_form import canonical, knows
from steersman.kinds import definitions
from steersman.kinds.registry import all_kinds
from steersman.objects import GroupVersionKind

SEED = 20260301
MAPS = "/api/v1/namespaces/default/configmaps"
META = bytes_field(1, bytes_field(1, b"a"))
#: Bytes of a long body: what is read in a second takes minutes if the work grows with the square of them.
LONG = BODY_MAX // 4


def served(gvk: GroupVersionKind) -> Definition:
    return Definition(gvk=gvk, resource="things", schema=lambda: definitions.schema_of(gvk))


CONFIG_MAPS = served(GroupVersionKind("", "v1", "ConfigMap"))
REVISIONS = served(GroupVersionKind("apps", "v1", "ControllerRevision"))
CRDS = served(GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))


def decoded(body: bytes, definition: Definition = CONFIG_MAPS, content: str = PROTOBUF):
    tree, warnings = decode_body(body, content, definition, field_validation="Strict")
    assert warnings == []
    return tree


def refusal(body: bytes, definition: Definition = CONFIG_MAPS) -> str:
    with pytest.raises(RequestRejected) as refused:
        decoded(body, definition)
    assert refused.value.status.code == 400
    return refused.value.status.message


def whole(tree, definition: Definition):
    """A tree in the form in which its kind is printed, where that is known."""
    shape = shape_of(definition.gvk)
    assert shape is not None
    name = shape.definition.removeprefix("io.k8s.api.")
    return canonical(tree, name) if knows(name) else tree


def without_empties(value):
    """A value without the lists and maps that protobuf cannot tell from none."""
    if isinstance(value, dict):
        return {name: without_empties(inner) for name, inner in value.items() if inner not in ([], {})}
    return [without_empties(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("sparse", [False, True], ids=["as-go", "sparse"])
def test_an_object_is_what_it_is_as_json(sparse):
    for seed in range(SEED, SEED + 10 * len(RECIPES)):
        rng = Random(seed)
        recipe = RECIPES[seed % len(RECIPES)]
        gvk = recipe.cls.gvk()
        tree = recipe.make(rng) | {
            "apiVersion": gvk.api_version,
            "kind": gvk.kind,
            "metadata": metadata(rng, "a"),
        }
        body = envelope(gvk.api_version, gvk.kind, encode(tree, shape_for(gvk.api_version, gvk.kind), sparse=sparse))
        definition = served(gvk)
        from_json = whole(decoded(json.dumps(tree).encode(), definition, "application/json"), definition)
        from_protobuf = whole(decoded(body, definition), definition)
        assert without_empties(from_protobuf) == without_empties(from_json), f"seed {seed}, {gvk.kind}"


def structs_of(shape: Shape, seen: dict[str, Shape]) -> None:
    if shape.kind in {"list", "map"}:
        structs_of(shape.inner, seen)
    elif shape.kind == "struct" and shape.definition not in seen:
        seen[shape.definition] = shape
        for place in shape.fields.values():
            structs_of(place.shape, seen)


def all_fields(message: Message) -> list[Field]:
    found: list[Field] = []
    for field in message.fields.values():
        found += all_fields(field.inline) if field.inline is not None else [field]
    return found


def test_every_field_of_every_built_in_kind_has_a_number():
    structs: dict[str, Shape] = {}
    for kind in all_kinds():
        shape = shape_of(kind)
        assert shape is not None
        structs_of(shape, structs)
    kinds = {f"{kind.group}/{kind.kind}" for kind in all_kinds()}
    assert len(structs) > len(kinds)
    for name, shape in structs.items():
        told = {field.name for field in all_fields(fields_of(shape))}
        lacking = shape.fields.keys() - told - {"kind", "apiVersion"}
        assert not lacking, f"{name} has no numbers for {sorted(lacking)}"


def test_what_go_does_not_print_is_not_there():
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": ""}}
    body = envelope("v1", "ConfigMap", encode(tree, shape_for("v1", "ConfigMap")))
    assert b"\x12\x00" in body  # an empty generateName, as Go sends it
    assert decoded(body) == tree


def test_messages_that_come_twice_are_one():
    label = bytes_field(11, bytes_field(1, b"k") + bytes_field(2, b"v"))
    body = envelope("v1", "ConfigMap", META + bytes_field(1, label) + number_field(4, 1) + number_field(4, 0))
    assert decoded(body) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"k": "v"}},
        "immutable": False,
    }


def schema_body(schema: dict[str, Any]) -> bytes:
    """A CRD with this schema, as protobuf."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    tree = {"apiVersion": CRDS.gvk.api_version, "kind": CRDS.gvk.kind, "spec": {"versions": [version]}}
    return envelope(tree["apiVersion"], tree["kind"], encode(tree, shape_for(tree["apiVersion"], tree["kind"])))


@pytest.mark.parametrize(
    "place",
    [
        lambda schema: schema,
        lambda schema: {"properties": {"a": {"properties": {"b": schema}}}},
        lambda schema: {"items": schema},
        lambda schema: {"items": [schema]},
        lambda schema: {"additionalProperties": schema},
        lambda schema: {"allOf": [schema]},
        lambda schema: {"dependencies": {"a": schema}},
    ],
)
def test_a_number_that_json_cannot_hold_is_refused_wherever_it_is(place):
    """Stored as null, it would take the limit out of a schema."""
    for field in ("maximum", "minimum", "multipleOf"):
        for value, shown in ((nan, "NaN"), (inf, "+Inf"), (-inf, "-Inf")):
            with pytest.raises(RequestRejected) as refused:
                decoded(schema_body(place({field: value})), CRDS)
            status = refused.value.status
            assert (status.code, status.message) == (500, f"json: unsupported value: {shown}")


def test_schemas_and_what_may_stand_in_their_place():
    schema = {
        "type": "object",
        "$ref": "#/a",
        "maximum": 1.5,
        "default": {"a": [None]},
        "enum": ["a", 1, None],
        "items": [{"type": "string"}],
        "additionalProperties": False,
        "properties": {"a": {"items": {"type": "string"}, "additionalProperties": {"nullable": True}}},
        "dependencies": {"a": ["b"], "c": {"type": "string"}},
        "x-kubernetes-preserve-unknown-fields": True,
    }
    tree = {
        "apiVersion": CRDS.gvk.api_version,
        "kind": CRDS.gvk.kind,
        "spec": {"versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]},
    }
    body = envelope(tree["apiVersion"], tree["kind"], encode(tree, shape_for(tree["apiVersion"], tree["kind"])))
    assert decoded(body, CRDS) == tree


NOT_READ = "the object provided is unrecognized (must be of type ConfigMap)"
HANDLED = 'ConfigMap in version "v1" cannot be handled as a ConfigMap'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", f"{NOT_READ}: empty data (<empty>)"),
        (
            b"{}",
            f"{NOT_READ}: provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({{}})",
        ),
        (MAGIC, f"{NOT_READ}: empty body (6b387300)"),
        (MAGIC + b"\x0a\x05", f"{NOT_READ}: unexpected EOF (6b3873000a05)"),
        (envelope("v1", "ConfigMap", b"\x0a\x05"), f"{HANDLED}: unexpected EOF"),
        (envelope("v1", "ConfigMap", b"\x08\x01"), f"{HANDLED}: proto: wrong wireType = 0 for field ObjectMeta"),
        (
            envelope("v1", "Secret", META),
            'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
        ),
    ],
)
def test_errors_have_the_words_of_go(body, words):
    assert refusal(body) == words


def test_nothing_nests_too_deeply():
    schema = b""
    while len(schema) < 2**18:
        schema = bytes_field(33, bytes_field(2, schema))  # additionalItems, a schema
    version = bytes_field(4, bytes_field(1, schema))
    words = refusal(envelope(CRDS.gvk.api_version, CRDS.gvk.kind, bytes_field(2, bytes_field(7, version))), CRDS)
    assert "nest deeper than" in words
    deep = b"[" * 100_000 + b"]" * 100_000
    assert refusal(envelope("apps/v1", "ControllerRevision", bytes_field(2, bytes_field(1, deep))), REVISIONS)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(META + bytes_field(2, b"") * (LONG // 2), id="empty-entries"),
        pytest.param(bytes_field(1, bytes_field(14, b"") * (LONG // 2)), id="empty-finalizers"),
        pytest.param(META * (LONG // len(META)), id="metadata-again-and-again"),
        pytest.param(META + b"\xa3\x06" * (LONG // 2), id="groups-without-end"),
        pytest.param(META + bytes_field(2, bytes_field(1, b"k") + b"\x12\xff\x7f") * (LONG // 9), id="entries-that-lie"),
        pytest.param(META + varint(90 << 3) + b"\xff" * LONG, id="a-number-without-end"),
    ],
)  # fmt: skip
def test_long_bodies_cost_no_more_than_their_size(message):
    body = envelope("v1", "ConfigMap", message)
    began = process_time()
    with suppress(RequestRejected):
        decoded(body)
    assert process_time() - began < 20


@given(st.data())
def test_no_bytes_raise_anything_but_a_refusal(data):
    """Random bytes, and good bodies with some of their bytes changed."""
    recipe = data.draw(st.sampled_from(RECIPES))
    gvk = recipe.cls.gvk()
    rng = Random(data.draw(st.integers(0, 2**32)))
    tree = recipe.make(rng) | {"metadata": metadata(rng, "a")}
    body = bytearray(envelope(gvk.api_version, gvk.kind, encode(tree, shape_for(gvk.api_version, gvk.kind))))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=6))
    for raw in (bytes(body), envelope(gvk.api_version, gvk.kind, data.draw(st.binary(max_size=60)))):
        with suppress(RequestRejected):
            json.dumps(decoded(raw, served(gvk))).encode()


async def test_a_client_that_speaks_protobuf(raw):
    """As Go's typed clients: bodies and answers are protobuf, and JSON would be taken as an answer."""
    accept = f"{PROTOBUF},application/json"
    tree = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    body = envelope("v1", "ConfigMap", encode(tree, shape_for("v1", "ConfigMap")))
    made = await raw.send("POST", MAPS, body, content_type=PROTOBUF, accept=accept)
    assert (made.code, tree_of(made.text)["data"]) == (201, {"k": "v"})
    assert tree_of((await raw.get(f"{MAPS}/a", accept=accept)).text)["kind"] == "ConfigMap"
    options = {"preconditions": {"uid": "other"}}
    refused = envelope("meta.k8s.io/v1", "DeleteOptions", encode(options, shape_for("", "DeleteOptions")))
    assert (await raw.send("DELETE", f"{MAPS}/a", refused, content_type=PROTOBUF)).code == 409
    gone = await raw.send("DELETE", f"{MAPS}/a", envelope("v1", "DeleteOptions", b""), content_type=PROTOBUF)
    assert gone.code == 200


def test_read_message_takes_a_message_without_its_envelope():
    shape = shape_of(GroupVersionKind("", "v1", "ConfigMap"))
    assert shape is not None
    assert read_message(META, shape) == {"metadata": {"name": "a"}}


def test_the_size_of_a_stored_object_is_that_of_its_encoding():
    """An object counts against the limit of a stored object as it does in etcd."""
    for seed in range(SEED, SEED + 3 * len(RECIPES)):
        rng = Random(seed)
        recipe = RECIPES[seed % len(RECIPES)]
        gvk = recipe.cls.gvk()
        if gvk.kind == "CustomResourceDefinition":
            # It is stored as JSON.
            continue
        given = recipe.make(rng) | {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata(rng, "a")}
        definition = served(gvk)
        tree = whole(decoded(json.dumps(given).encode(), definition, "application/json"), definition)
        shape = shape_for(gvk.api_version, gvk.kind)
        size = len(encode(tree, shape))
        assert abs(protobuf_size(shape, tree) - size) <= 0.1 * size + 20, f"seed {seed}, {gvk.kind}, {size} bytes"
