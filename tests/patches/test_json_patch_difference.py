"""The JSON patch between two objects: exact, and no larger than the change."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from steersman.patches import MAX_DEPTH, TooDeep, json_equal, json_patch_between

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text("a/~", max_size=2)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text("ab/~", max_size=2), TREES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_applying_the_patch_gives_the_other_object(before: dict[str, Any], after: dict[str, Any]):
    """A webhook's mutation arrives as the handler made it."""
    assert json_equal(json_patch_between(before, after).apply(before), after)
    assert json_patch_between(before, before).operations == ()


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c/d": None}}, [{"op": "add", "path": "/a/c~1d", "value": None}]),
        ({"a": [1, 2, 3]}, {"a": [0, 1, 2, 3]}, [{"op": "add", "path": "/a/0", "value": 0}]),
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, [{"op": "remove", "path": "/a/1"}]),
        ({"a": [{"n": "x", "v": 1}]}, {"a": [{"n": "x"}]}, [{"op": "remove", "path": "/a/0/v"}]),
        (
            {"a": [1, 2, 3, 4]},
            {"a": [1, 4]},
            [{"op": "remove", "path": "/a/2"}, {"op": "remove", "path": "/a/1"}],
        ),
    ],
)
def test_the_patch_contains_only_the_change(before: Any, after: Any, patch: list[Any]):
    assert json_patch_between(before, after).to_json() == patch


def test_depth_is_bounded():
    one: Any = 1
    two: Any = 2
    for _ in range(MAX_DEPTH + 2):
        one, two = {"a": one}, {"a": two}
    with pytest.raises(TooDeep):
        json_patch_between(one, two)
