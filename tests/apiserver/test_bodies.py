"""Bodies: what becomes of them, and in what words they are refused."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, strategies as st

from steersman.apiserver.decoding import BODY_MAX, conform, decode_body
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.registry import Definition
from steersman.kinds import definitions
from steersman.objects import GroupVersionKind


def built_in(group: str, kind: str, resource: str) -> Definition:
    gvk = GroupVersionKind(group, "v1", kind)
    return Definition(gvk=gvk, resource=resource, schema=lambda: definitions.schema_of(gvk))


CONFIG_MAPS = built_in("", "ConfigMap", "configmaps")
PODS = built_in("", "Pod", "pods")
GADGETS = Definition(
    gvk=GroupVersionKind("example.com", "v1", "Gadget"),
    resource="gadgets",
    custom=True,
    schema=lambda: {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    },
)


NAMES = [
    "name",
    "labels",
    "containers",
    "volumes",
    "emptyDir",
    "resources",
    "limits",
    "ports",
    "creationTimestamp",
    "x",
]


def decoded(
    raw: Any, definition: Definition = CONFIG_MAPS, *, directive: str = "Strict", kind: str | None = None
) -> Any:
    body = raw if isinstance(raw, bytes) else raw.encode() if isinstance(raw, str) else json.dumps(raw).encode()
    return decode_body(body, kind, definition, field_validation=directive)


def refusal(raw: Any, definition: Definition = CONFIG_MAPS, **options: Any) -> tuple[int, str]:
    with pytest.raises(RequestRejected) as refused:
        decoded(raw, definition, **options)
    return refused.value.status.code, refused.value.status.message


def test_a_plain_body_is_taken_as_it_is():
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b: c"}}
    assert decoded(body) == (body, [])


def test_a_body_without_a_kind_is_of_the_kind_that_is_served():
    assert decoded({"metadata": {"name": "a"}}).tree["kind"] == "ConfigMap"
    assert decoded("null").tree == {"kind": "ConfigMap", "apiVersion": "v1"}


def test_unknown_fields_of_built_in_kinds_go():
    body = {"metadata": {"name": "a", "foo": 1}, "bar": {"x": [1]}, "Data": {}}
    tree, warnings = decoded(body, directive="Warn")
    assert tree == {"metadata": {"name": "a"}, "kind": "ConfigMap", "apiVersion": "v1"}
    assert warnings == ['unknown field "metadata.foo"', 'unknown field "bar"', 'unknown field "Data"']
    assert decoded(body, directive="Ignore") == (tree, [])
    assert refusal(body) == (
        400,
        (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
            'unknown field "metadata.foo", unknown field "bar", unknown field "Data"'
        ),
    )


@pytest.mark.parametrize("body", ['{"data":{"a":"1"},"data":{"b":"2"}}', '{"data":{"a":":"},"data" :\n{"b":"\\":"}}'])
def test_fields_that_come_twice_merge_and_are_reported(body):
    tree, warnings = decoded(body, directive="Warn")
    assert set(tree["data"]) == {"a", "b"}
    assert warnings == ['duplicate field "data"']


def test_no_more_than_a_hundred_findings_are_reported():
    body = {f"f{number}": 1 for number in range(120)}
    assert len(decoded(body, directive="Warn").warnings) == 100


def test_nulls_mean_absent_and_are_zero_within_maps_and_lists():
    tree = decoded('{"data":{"a":null},"immutable":null,"metadata":{"finalizers":[null]}}').tree
    assert tree["data"] == {"a": ""}
    assert "immutable" not in tree
    assert tree["metadata"]["finalizers"] == [""]


def test_zeroes_that_are_not_printed_mean_absent():
    spec = {"containers": [{"name": "", "tty": False, "args": []}], "priority": 0, "hostNetwork": False}
    tree = decoded({"metadata": {"labels": {}}, "spec": spec}, PODS).tree
    assert tree["metadata"] == {}
    assert tree["spec"] == {"containers": [{"name": ""}], "priority": 0}


def test_values_are_brought_into_their_printed_form():
    limits = {"limits": {"cpu": "1000m", "memory": "1024Mi", "x/y": 2}}
    body = {
        "metadata": {"creationTimestamp": "2020-01-01T01:00:00.5+01:00"},
        "spec": {"containers": [{"resources": limits}]},
    }
    tree = decoded(body, PODS).tree
    assert tree["metadata"]["creationTimestamp"] == "2020-01-01T00:00:00Z"
    assert tree["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi", "x/y": "2"}
    assert decoded('{"binaryData":{"a":"Y\\nQ=="}}').tree["binaryData"] == {"a": "YQ=="}


def test_what_is_no_utf_8_is_replaced():
    assert decoded(b'{"data":{"a":"\xff\xe2\x82","b":"\\ud800"}}').tree["data"] == {"a": "\ufffd" * 3, "b": "\ufffd"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"spec": {"priority": "1"}}, "string into Go struct field PodSpec.spec.priority of type int32"),
        ('{"spec":{"priority":1.0}}', "number 1.0 into Go struct field PodSpec.spec.priority of type int32"),
        ({"spec": {"containers": {}}}, "object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        (
            {"spec": {"volumes": [{"emptyDir": {"medium": 1}}]}},
            (
                "number into Go struct field EmptyDirVolumeSource.spec.volumes.VolumeSource.emptyDir.medium of type "
                "v1.StorageMedium"
            ),
        ),
        ({"metadata": []}, "array into Go struct field Pod.metadata of type v1.ObjectMeta"),
    ],
)
def test_wrong_types_have_the_words_of_go(body, words):
    assert refusal(body, PODS) == (
        400,
        f'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal {words}',
    )


def test_forms_that_are_not_read():
    offers = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    words = f"the body of the request was in an unknown format - accepted media types include: {offers}"
    for kind in ("text/plain", "application/json;;", "application/x-protobuf"):
        assert refusal({}, kind=kind) == (415, words)
    assert decoded({}, kind="Application/JSON; charset=utf-8").warnings == []


def test_yaml():
    assert decoded("data: {a: '1', b: !!str 2, c: 1:20}", kind="application/yaml").tree["data"] == {
        "a": "1",
        "b": "2",
        "c": "1:20",
    }
    body = "foo: 1\ndata:\n  a: b\n  a: c\n"
    tree, warnings = decoded(body, kind="application/yaml", directive="Warn")
    assert tree["data"] == {"a": "c"}
    assert warnings == ['line 4: key "a" already set in map', 'unknown field "foo"']


def test_yaml_cannot_multiply():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    assert refusal("\n".join(lines), kind="application/yaml")[0] == 400
    assert refusal("[" * 3000, kind="application/yaml")[0] == 400


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
        max_leaves=12,
    ),
    st.sampled_from(["Strict", "Warn", "Ignore"]),
)
def test_whatever_is_sent_is_read_or_refused(value, directive):
    for definition in (PODS, CONFIG_MAPS, GADGETS):
        body = {"kind": definition.gvk.kind, "apiVersion": definition.gvk.api_version, "spec": value, "metadata": value}
        for kind in ("application/json", "application/yaml"):
            with suppress(RequestRejected):
                tree = decoded(body, definition, directive=directive, kind=kind).tree
                # What was read is read as it is.
                again = "Ignore" if definition.custom else "Strict"
                assert decoded(tree, definition, directive=again) == (tree, [])


@given(st.binary(max_size=40), st.sampled_from(["application/json", "application/yaml"]))
def test_whatever_bytes_are_sent_are_read_or_refused(raw, kind):
    with suppress(RequestRejected):
        assert decoded(raw, kind=kind, directive="Ignore").tree["kind"] == "ConfigMap"


def test_size_and_depth_are_bounded():
    assert refusal(b" " * (BODY_MAX + 1)) == (413, "Request entity too large: limit is 3145728")
    for depth in (1_000, 100_000):
        code, message = refusal('{"a":' + "[" * depth + "]" * depth + "}")
        assert (code, "exceeded max depth" in message) == (400, True)


def test_custom_resources_keep_unknown_fields_for_pruning():
    body = '{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"x":1},"spec":{"z":1,"b":{},"size":1,"size":2}}'
    tree, warnings = decoded(body, GADGETS, directive="Warn")
    assert tree["spec"] == {"z": 1, "b": {}, "size": 2}
    assert tree["metadata"] == {}
    assert warnings == [
        'duplicate field "spec.size"',
        'unknown field "metadata.x"',
        'unknown field "spec.b"',
        'unknown field "spec.z"',
    ]


def test_conforming_a_patched_object():
    tree: Any = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "foo": 1, "data": {"a": None}}
    assert conform(CONFIG_MAPS, tree, [], "Warn") == ['unknown field "foo"']
    assert tree == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"a": ""}}
