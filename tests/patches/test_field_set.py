"""Field sets (fieldsV1): text form, order and algebra as in Kubernetes."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from steersman.patches import MAX_DEPTH, FieldSet, FieldSetError, PatchError, Path, PathElement, TooDeep, format_path

FIELDS = (
    b'{"f:metadata":{"f:labels":{".":{},"f:app":{}}},'
    b'"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\\"name\\":\\"web\\"}":{".":{},"f:image":{},'
    b'"f:ports":{"k:{\\"containerPort\\":80,\\"protocol\\":\\"TCP\\"}":{".":{},"f:containerPort":{}}}}}}}}}'
)

VALUES = st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text('ab<&"\\\n', max_size=3)
ELEMENTS = st.one_of(
    st.builds(PathElement.field, st.text('abc.<"\\', max_size=3)),
    st.builds(PathElement.key, st.dictionaries(st.sampled_from("abc"), VALUES, max_size=2)),
    st.builds(PathElement.value, VALUES),
    st.builds(PathElement.index, st.integers(0, 12)),
)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SETS = st.lists(PATHS, max_size=8).map(FieldSet)


def test_text_round_trips_byte_for_byte() -> None:
    assert FieldSet.parse(FIELDS).encode() == FIELDS
    assert FieldSet.parse(json.loads(FIELDS)) == FieldSet.parse(FIELDS)


def test_paths_print_as_in_conflict_messages() -> None:
    printed = str(FieldSet.parse(FIELDS)).splitlines()
    assert printed == [
        ".metadata.labels",
        ".metadata.labels.app",
        ".spec.replicas",
        '.spec.template.spec.containers[name="web"]',
        '.spec.template.spec.containers[name="web"].image',
        '.spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]',
        '.spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].containerPort',
    ]
    assert format_path((PathElement.field("set"), PathElement.value("a"), PathElement.index(3))) == '.set[="a"][3]'
    assert format_path((PathElement.key({"b": True, "a": None}),)) == "[a=null,b=true]"


def test_elements_are_printed_in_kubernetes_order() -> None:
    """Fields, then keys, then values, then indexes; numbers before texts before booleans, and 2 before 10."""
    shuffled = {
        "i:10": {},
        "i:2": {},
        "v:true": {},
        'v:"b"': {},
        "v:10": {},
        "v:2": {},
        'k:{"b":1,"a":"x"}': {},
        'k:{"a":"w"}': {},
        "f:b": {},
        "f:B": {},
        "v:null": {},
    }
    assert list(FieldSet.parse(shuffled).to_json()) == [
        "f:B",
        "f:b",
        'k:{"a":"w"}',
        'k:{"a":"x","b":1}',
        "v:2",
        "v:10",
        'v:"b"',
        "v:true",
        "v:null",
        "i:2",
        "i:10",
    ]


def test_values_of_different_types_differ() -> None:
    fields = FieldSet.parse('{"v:1":{},"v:true":{},"v:\\"1\\"":{}}')
    assert len(fields) == 3
    assert (PathElement.value(1),) in fields
    assert (PathElement.value(True),) in fields
    assert PathElement.value(1.0) == PathElement.value(1)


def test_elements_tell_what_they_select_by() -> None:
    assert [(e.kind, e.content) for e in map(PathElement, ["f:a", 'k:{"b":1, "a":2}', "v:[1]", "i:07"])] == [
        ("field", "a"),
        ("key", {"a": 2, "b": 1}),
        ("value", [1]),
        ("index", 7),
    ]


def test_unknown_kinds_of_elements_are_ignored() -> None:
    assert FieldSet.parse('{"z:new":{"f:x":{}},"f:a":{}}') == FieldSet.parse('{"f:a":{}}')


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"[]",
        b'{"a":{}}',
        b'{"f":{}}',
        b'{"f:a":1}',
        b'{"f:a":[]}',
        b'{"k:x":{}}',
        b'{"k:[]":{}}',
        b'{"v:{":{}}',
        b'{"i:x":{}}',
        b"\xff",
    ],
)
def test_garbage_is_refused(garbage: bytes) -> None:
    with pytest.raises(FieldSetError):
        FieldSet.parse(garbage)


def test_deep_nesting_is_refused() -> None:
    tree: dict[str, Any] = {}
    for _ in range(MAX_DEPTH + 5):
        tree = {"f:a": tree}
    hostile = [
        '{"f:a":' * 5000,
        "{" + json.dumps("v:" + "[" * 5000 + "]" * 5000) + ":{}}",
        "{" + json.dumps("v:" + "[" * 300 + "]" * 300) + ":{}}",
    ]
    for document in (tree, *hostile):
        with pytest.raises(PatchError):
            FieldSet.parse(document)
    with pytest.raises(TooDeep):
        FieldSet([(PathElement.field("a"),) * (MAX_DEPTH + 1)])


def test_sets_at_the_deepest_level_work() -> None:
    deepest = FieldSet([(PathElement.field("a"),) * MAX_DEPTH])
    again = FieldSet.parse(deepest.encode())
    assert again == deepest
    assert hash(again) == hash(deepest)
    assert (again | deepest) & deepest == deepest
    assert not again - deepest
    assert not again.without(deepest)
    assert again.leaves() <= deepest
    assert len(list(again)) == len(again) == 1


def test_difference_keeps_what_lies_below_and_without_does_not() -> None:
    fields = FieldSet.parse('{"f:a":{".":{},"f:b":{}},"f:c":{}}')
    parent = FieldSet.parse('{"f:a":{}}')
    assert fields - parent == FieldSet.parse('{"f:a":{"f:b":{}},"f:c":{}}')
    assert fields.without(parent) == FieldSet.parse('{"f:c":{}}')


def test_leaves() -> None:
    assert FieldSet.parse('{"f:a":{".":{},"f:b":{}},"f:c":{}}').leaves() == FieldSet.parse(
        '{"f:a":{"f:b":{}},"f:c":{}}'
    )


def test_what_lies_below_a_path() -> None:
    fields = FieldSet.parse(FIELDS)
    assert fields.below((PathElement.field("metadata"), PathElement.field("labels"))) == FieldSet.parse('{"f:app":{}}')
    assert not fields.below((PathElement.field("nothing"),))


@given(SETS)
def test_every_set_reads_back(fields: FieldSet) -> None:
    assert FieldSet.parse(fields.encode()) == fields
    assert FieldSet.parse(fields.to_json()) == fields
    assert FieldSet(list(fields)) == fields
    assert list(json.loads(fields.encode())) == list(fields.to_json())
    assert pickle.loads(pickle.dumps(fields)) == fields
    assert len(list(fields)) == len(fields)


@given(SETS, SETS)
def test_algebra_is_that_of_sets_of_paths(left: FieldSet, right: FieldSet) -> None:
    ours: set[Path] = set(left)
    theirs: set[Path] = set(right)
    assert set(left | right) == ours | theirs
    assert set(left & right) == ours & theirs
    assert set(left - right) == ours - theirs
    assert set(left.without(right)) == {
        path for path in ours if not any(path[:n] in theirs for n in range(1, len(path) + 1))
    }
    assert set(left.at_or_below(right)) == ours - set(left.without(right))
    for changed in (left | right, left - right, left.without(right)):
        assert (changed is left) == (changed == left) or not left
    assert (left <= right) == (ours <= theirs)
    assert (left == right) == (ours == theirs)
    if left == right:
        assert hash(left) == hash(right)
    assert all(path in left for path in ours)


@given(SETS)
def test_leaves_have_nothing_below(fields: FieldSet) -> None:
    paths = set(fields)
    assert set(fields.leaves()) == {
        path for path in paths if not any(other != path and other[: len(path)] == path for other in paths)
    }


@given(st.text(max_size=6), st.text('fkvi:{}[]"1a,.', max_size=10))
def test_any_element_is_read_or_refused(name: str, text: str) -> None:
    assert PathElement.field(name).content == name
    try:
        element = PathElement(text)
    except PatchError:
        return
    assert PathElement(element.text) == element
