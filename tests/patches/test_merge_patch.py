"""Merge patches (RFC 7386)."""

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from steersman.patches import MAX_DEPTH, TooDeep, apply_merge_patch, merge_patch_between

SCALARS = st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text("ab", max_size=2)
NAMES = st.text("abc", min_size=1, max_size=2)


def trees(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
    )


def objects(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(NAMES, trees(scalars), max_size=4)


def without_nulls(value: Any) -> Any:
    """Drop null fields of objects; lists stay as they are."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return value


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": {"b": "c", "d": {"e": 1, "f": 2}}}, {"a": {"d": {"e": None}}}, {"a": {"b": "c", "d": {"f": 2}}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, ["c"], ["c"]),
    ],
)
def test_examples_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert apply_merge_patch(target, patch) == result


def test_computed_patches_are_small() -> None:
    before = {"spec": {"replicas": 1, "image": "a"}, "metadata": {"labels": {"a": "1", "b": "2"}}}
    after = {"spec": {"replicas": 2, "image": "a"}, "metadata": {"labels": {"a": "1"}}}
    assert merge_patch_between(before, after) == {"spec": {"replicas": 2}, "metadata": {"labels": {"b": None}}}
    assert merge_patch_between(before, copy.deepcopy(before)) == {}


def test_true_is_not_one() -> None:
    assert merge_patch_between({"a": 1, "b": [1]}, {"a": True, "b": [True]}) == {"a": True, "b": [True]}


def test_an_explicit_null_removes() -> None:
    """A null in the wanted object asks for the removal of the field, known to be there or not."""
    assert merge_patch_between({"a": 1}, {"a": None}) == {"a": None}
    assert merge_patch_between({}, {"a": None}) == {"a": None}


def test_empty_objects_are_kept() -> None:
    assert merge_patch_between({}, {"emptyDir": {}}) == {"emptyDir": {}}
    assert merge_patch_between({"a": 1}, {"a": {}}) == {"a": {}}


@given(objects(SCALARS), objects(SCALARS))
def test_the_computed_patch_leads_there(before: dict[str, Any], after: dict[str, Any]) -> None:
    originals = copy.deepcopy((before, after))
    patch = merge_patch_between(before, after)
    assert apply_merge_patch(before, patch) == after
    assert (before, after) == originals


@given(objects(SCALARS | st.none()), objects(SCALARS | st.none()))
def test_nulls_mean_absent(before: dict[str, Any], after: dict[str, Any]) -> None:
    result = apply_merge_patch(before, merge_patch_between(before, after))
    assert without_nulls(result) == without_nulls(after)


@given(trees(SCALARS | st.none()), trees(SCALARS | st.none()))
def test_applying_twice_is_applying_once(target: Any, patch: Any) -> None:
    once = apply_merge_patch(target, patch)
    assert apply_merge_patch(once, patch) == once


def test_deep_values_are_refused() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 5):
        deep = {"a": deep}
    listed: Any = 1
    for _ in range(5000):
        listed = [listed]
    for ask in (
        lambda: apply_merge_patch({}, deep),
        lambda: merge_patch_between({}, deep),
        lambda: merge_patch_between(copy_of(deep), deep),
        lambda: apply_merge_patch({}, {"a": listed}),
    ):
        with pytest.raises(TooDeep):
            ask()


def copy_of(deep: Any) -> Any:
    return {"a": deep["a"]} if isinstance(deep, dict) else deep
