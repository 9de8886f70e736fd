"""JSON patches, as kube-apiserver applies them."""

import copy

import pytest
from hypothesis import given, strategies as st

from steersman.patches import (
    MAX_OPERATIONS,
    JsonPatch,
    JsonPatchError,
    JsonPatchTestFailed,
    Operation,
    PatchError,
    TooDeep,
    json_patch,
    pointer,
)

DOCUMENT = {"a": 1, "list": [1, 2, 3], "object": {"x": 1}, "a/b": {"~": "tilde"}}


def applied(*operations: Operation) -> object:
    before = copy.deepcopy(DOCUMENT)
    result = JsonPatch.of(*operations).apply(before)
    assert before == DOCUMENT, "the document was changed"
    return result


def test_add() -> None:
    assert applied(json_patch.add("/new", [1])) == DOCUMENT | {"new": [1]}
    assert applied(json_patch.add("/a", 2)) == DOCUMENT | {"a": 2}
    assert applied(json_patch.add("/list/1", 9)) == DOCUMENT | {"list": [1, 9, 2, 3]}
    assert applied(json_patch.add("/list/3", 9)) == DOCUMENT | {"list": [1, 2, 3, 9]}
    assert applied(json_patch.add("/list/-", 9)) == DOCUMENT | {"list": [1, 2, 3, 9]}
    assert applied(json_patch.add("/list/-1", 9)) == DOCUMENT | {"list": [1, 2, 3, 9]}


def test_remove() -> None:
    assert applied(json_patch.remove("/list/0")) == DOCUMENT | {"list": [2, 3]}
    assert applied(json_patch.remove("/list/-1")) == DOCUMENT | {"list": [1, 2]}
    assert applied(json_patch.remove("/object/x")) == DOCUMENT | {"object": {}}


def test_replace_also_sets_a_field_that_is_not_there() -> None:
    assert applied(json_patch.replace("/list/1", 0)) == DOCUMENT | {"list": [1, 0, 3]}
    assert applied(json_patch.replace("/object/y", 2)) == DOCUMENT | {"object": {"x": 1, "y": 2}}
    assert applied(json_patch.replace("", {"whole": True})) == {"whole": True}


def test_move_and_copy() -> None:
    assert applied(json_patch.move("/object/x", "/list/0")) == DOCUMENT | {"object": {}, "list": [1, 1, 2, 3]}
    assert applied(json_patch.copy("/object", "/twin")) == DOCUMENT | {"twin": {"x": 1}}
    assert applied(json_patch.copy("/object/missing", "/twin")) == DOCUMENT | {"twin": None}


def test_a_copy_leads_its_own_life() -> None:
    result = applied(json_patch.add("/object/y", 2), json_patch.copy("/object", "/twin"), json_patch.add("/twin/z", 3))
    assert result == DOCUMENT | {"object": {"x": 1, "y": 2}, "twin": {"x": 1, "y": 2, "z": 3}}


def test_test() -> None:
    applied(
        json_patch.test("/list", [1, 2, 3]), json_patch.test("/object/missing", None), json_patch.test("", DOCUMENT)
    )
    for wrong in (json_patch.test("/a", 2), json_patch.test("/a", True), json_patch.test("/missing", 1)):
        with pytest.raises(JsonPatchTestFailed):
            applied(wrong)


def test_values_of_a_patch_are_not_changed_by_it() -> None:
    value: dict[str, object] = {}
    patch = JsonPatch.of(json_patch.add("/new", value), json_patch.add("/new/x", 1))
    assert patch.apply({}) == {"new": {"x": 1}}
    assert value == {}


def test_pointers_escape_slash_and_tilde() -> None:
    assert pointer("a/b", "~", 0) == "/a~1b/~0/0"
    assert applied(json_patch.remove(["a/b", "~"])) == DOCUMENT | {"a/b": {}}
    assert applied(json_patch.replace("/a~1b/~0", 1)) == DOCUMENT | {"a/b": {"~": 1}}


@pytest.mark.parametrize(
    ("operation", "complaint"),
    [
        (json_patch.remove("/missing"), r"operation 1 \(remove '/missing'\): the object has no field 'missing'"),
        (json_patch.remove("/list/3"), "no index 3"),
        (json_patch.remove("/list/-4"), "no index -4"),
        (json_patch.add("/list/4", 1), "no index 4"),
        (json_patch.add("/list/x", 1), "'x' is not a list index"),
        (json_patch.replace("/list/3", 1), "no index 3"),
        (json_patch.add("/a/b", 1), "no object or list at '/a'"),
        (json_patch.add("/missing/b", 1), "no object or list at '/missing'"),
        (json_patch.test("/missing/b", None), "no object or list at '/missing'"),
        (json_patch.move("/object", "/object/x"), "no object or list at '/object'"),
        (json_patch.add("", 1), "only be replaced or tested"),
        (json_patch.remove(""), "only be replaced or tested"),
        (json_patch.replace("", 1), "an object or a list"),
    ],
)
def test_failures_name_the_operation_and_the_place(operation: Operation, complaint: str) -> None:
    with pytest.raises(JsonPatchError, match=complaint):
        applied(operation)


def test_a_patch_applies_whole_or_not_at_all() -> None:
    document = {"a": {"b": 1}}
    with pytest.raises(JsonPatchError, match="operation 2"):
        JsonPatch.of(json_patch.add("/a/c", 2), json_patch.remove("/nope")).apply(document)
    assert document == {"a": {"b": 1}}


def test_reading_and_printing() -> None:
    text = b'[{"op":"test","path":"/a","value":null},{"op":"move","path":"/b","from":"/c"},{"op":"remove","path":"/d"}]'
    patch = JsonPatch.parse(text)
    assert patch.encode() == text
    assert JsonPatch.parse(patch.to_json()) == patch


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"{}",
        b"[1]",
        b'[{"op":"add"}]',
        b'[{"op":"add","path":"/a"}]',
        b'[{"op":"copy","path":"/a"}]',
        b'[{"op":"bogus","path":"/a"}]',
        b'[{"op":"remove","path":"a"}]',
        b"\xff",
        b"[" * 5000,
    ],
)
def test_garbage_is_refused(garbage: bytes) -> None:
    with pytest.raises(PatchError):
        JsonPatch.parse(garbage)


def test_limits_of_the_server_hold() -> None:
    operation = json_patch.remove("/a")
    with pytest.raises(JsonPatchError, match="at most 10000"):
        JsonPatch((operation,) * (MAX_OPERATIONS + 1))


def test_copies_cannot_blow_up_a_document() -> None:
    """Each operation doubles the document; thirty of them would need gigabytes."""
    doubling = [json_patch.copy("/a", f"/a/{number}") for number in range(30)]
    with pytest.raises(JsonPatchError, match="copies more than"):
        JsonPatch.of(*doubling).apply({"a": {"text": "x" * 100}})


def test_depth_is_bounded() -> None:
    deep = JsonPatch.of(*(json_patch.add("/a" * number, {}) for number in range(1, 400)))
    with pytest.raises(TooDeep):
        deep.apply({})
    value: object = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(TooDeep):
        JsonPatch.of(json_patch.add("/a", value)).apply({})
    with pytest.raises(TooDeep):
        JsonPatch.of(json_patch.copy("/a", "/b")).apply({"a": value})


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab~/", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/-0", max_size=2), inner, max_size=3),
    max_leaves=12,
)
POINTERS = st.lists(st.text("ab~/-01", max_size=2), max_size=3)
OPERATIONS = st.one_of(
    st.builds(json_patch.add, POINTERS, TREES),
    st.builds(json_patch.remove, POINTERS),
    st.builds(json_patch.replace, POINTERS, TREES),
    st.builds(json_patch.move, POINTERS, POINTERS),
    st.builds(json_patch.copy, POINTERS, POINTERS),
    st.builds(json_patch.test, POINTERS, TREES),
)


@given(TREES, st.lists(OPERATIONS, max_size=6))
def test_any_patch_applies_or_fails_cleanly(document: object, operations: list[Operation]) -> None:
    before = copy.deepcopy(document)
    patch = JsonPatch(tuple(operations))
    assert JsonPatch.parse(patch.encode()) == patch
    try:
        result = patch.apply(document)
    except JsonPatchError:
        result = None
    assert document == before
    if result is not None:
        assert JsonPatch.of(json_patch.test("", result)).apply(result) == result


@given(TREES, POINTERS, TREES)
def test_adding_and_removing_again_changes_nothing(document: object, where: list[str], value: object) -> None:
    try:
        added = JsonPatch.of(json_patch.add(where, value)).apply(document)
    except JsonPatchError:
        return
    at = [*where[:-1], "-1" if where[-1] == "-" and not _is_object(document, where[:-1]) else where[-1]]
    try:
        existed = JsonPatch.of(json_patch.remove(where)).apply(document) is not None and _is_object(
            document, where[:-1]
        )
    except JsonPatchError:
        existed = False
    if not existed:
        assert JsonPatch.of(json_patch.remove(at)).apply(added) == document


def _is_object(document: object, where: list[str]) -> bool:
    try:
        JsonPatch.of(json_patch.add([*where, "probe"], 1)).apply(document)
    except JsonPatchError:
        return False
    return True
