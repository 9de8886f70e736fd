"""Strategic merge patches: every directive, what is refused, and what hostile patches cost."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest

from steersman.kinds import definitions
from steersman.objects import GroupVersionKind
from steersman.patches import PatchError, StrategicMergeError, TooDeep, apply_strategic_merge

POD = definitions.schema_of(GroupVersionKind("", "v1", "Pod"))
DEPLOYMENT = definitions.schema_of(GroupVersionKind("apps", "v1", "Deployment"))
LIVE: dict[str, Any] = {
    "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x/a", "x/b", "x/c"]},
    "spec": {
        "containers": [
            {"name": "one", "image": "i", "args": ["x"], "env": [{"name": "A", "value": "1"}, {"name": "B"}]},
            {"name": "two", "image": "j"},
            {"name": "three", "image": "k"},
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "tolerations": [{"key": "k"}],
    },
}


def patched(patch: dict[str, Any]) -> dict[str, Any]:
    before, given = copy.deepcopy(LIVE), copy.deepcopy(patch)
    try:
        return apply_strategic_merge(LIVE, patch, POD)
    finally:
        assert before == LIVE
        assert given == patch


def names(patch: dict[str, Any], field: str = "containers") -> list[str]:
    return [item["name"] for item in patched({"spec": patch})["spec"][field]]


def test_objects_merge_and_nulls_remove():
    metadata = patched({"metadata": {"labels": {"a": None, "c": "3", "d": None}}})["metadata"]
    assert metadata["labels"] == {"b": "2", "c": "3"}
    assert metadata["finalizers"] == ["x/a", "x/b", "x/c"]


def test_items_of_lists_merge_by_their_key():
    containers = patched({"spec": {"containers": [{"name": "two", "image": "new"}]}})["spec"]["containers"]
    assert [(each["name"], each["image"]) for each in containers] == [("one", "i"), ("two", "new"), ("three", "k")]


def test_lists_merge_within_items():
    patch = {"containers": [{"name": "one", "env": [{"name": "B", "value": "2"}, {"name": "C"}]}]}
    env = patched({"spec": patch})["spec"]["containers"][0]["env"]
    assert env == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C"}]


def test_lists_without_a_merge_strategy_are_replaced():
    spec = patched({"spec": {"tolerations": [{"key": "z"}], "containers": [{"name": "one", "args": ["y"]}]}})["spec"]
    assert spec["tolerations"] == [{"key": "z"}]
    assert spec["containers"][0]["args"] == ["y"]


def test_new_items_come_in_front_of_what_they_precede():
    assert names({"containers": [{"name": "new"}, {"name": "three"}]}) == ["new", "one", "two", "three"]


def test_lists_of_scalars_are_sets():
    assert patched({"metadata": {"finalizers": ["x/b", "x/d"]}})["metadata"]["finalizers"] == [
        "x/a",
        "x/b",
        "x/d",
        "x/c",
    ]


def test_patch_replace_of_an_object():
    assert patched({"metadata": {"labels": {"$patch": "replace", "z": "1"}}})["metadata"]["labels"] == {"z": "1"}


def test_patch_delete_of_an_object_leaves_an_empty_one():
    assert patched({"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"] == {}


def test_patch_delete_of_an_item():
    assert names({"containers": [{"name": "two", "$patch": "delete"}]}) == ["one", "three"]


def test_patch_replace_of_a_list():
    assert names({"containers": [{"name": "new"}, {"$patch": "replace"}]}) == ["new"]


def test_delete_from_primitive_list():
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/b", "x/z"]}}
    assert patched(patch)["metadata"]["finalizers"] == ["x/a", "x/c"]


def test_set_element_order():
    order = [{"name": "three"}, {"name": "one"}]
    assert names({"$setElementOrder/containers": order}) == ["two", "three", "one"]
    patch = {"containers": [{"name": "new"}], "$setElementOrder/containers": [{"name": "new"}, *order]}
    assert names(patch) == ["new", "two", "three", "one"]
    patch = {"metadata": {"$setElementOrder/finalizers": ["x/c", "x/b", "x/a"]}}
    assert patched(patch)["metadata"]["finalizers"] == ["x/c", "x/b", "x/a"]


def test_retain_keys_clears_the_rest():
    volume = {"name": "v", "hostPath": {"path": "/h"}, "$retainKeys": ["name", "hostPath"]}
    assert patched({"spec": {"volumes": [volume]}})["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/h"}}]
    live = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert apply_strategic_merge(live, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_what_is_new_is_taken_without_nulls_and_directives():
    patch = {"spec": {"affinity": {"nodeAffinity": None, "podAffinity": {"$patch": "delete"}, "podAntiAffinity": {}}}}
    assert patched(patch)["spec"]["affinity"] == {"podAntiAffinity": {}}


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        ({"metadata": {"$patch": "zap", "a": 1}}, 500, "unknown patch type: zap in map: map[$patch:zap a:1]"),
        ({"$patch": 3}, 500, "unknown patch type: %!s(int64=3) in map: map[$patch:3]"),
        ({"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": ["a"], "b": 1}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$deleteFromPrimitiveList": []}}, 400, "invalid patch format of primitive list"),
        ({"spec": {"$setElementOrder": []}}, 400, "invalid patch format of setElementOrder list"),
        ({"spec": {"$setElementOrder/containers": "x"}}, 500, "expected a []interface {}, but received a string"),
        (
            {"spec": {"$setElementOrder/foo": []}},
            500,
            'unable to find api field in struct PodSpec for the json field "foo"',
        ),
        (
            {"spec": {"containers": [{"image": "x", "tty": True}]}},
            500,
            "map: map[image:x tty:true] does not contain declared merge key: name",
        ),
        (
            {"spec": {"containers": [{"name": "one", "$patch": "merge"}]}},
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        ({"metadata": {"finalizers": [["x"]]}}, 500, "list element types are not identical: [[x/a x/b x/c] [[x]]]"),
        (
            {"spec": {"containers": [{"name": "new"}], "$setElementOrder/containers": [{"name": "one"}]}},
            500,
            "The order in patch list:\n[map[name:new]]\n doesn't match $setElementOrder list:\n[map[name:one]]\n",
        ),
    ],
)
def test_what_is_refused(patch, code, words):
    with pytest.raises(StrategicMergeError) as refused:
        patched(patch)
    assert (refused.value.code, str(refused.value)) == (code, words)


def test_an_error_shows_no_megabytes():
    with pytest.raises(StrategicMergeError, match=r"list element types are not identical: \.\.\.\Z"):
        patched({"metadata": {"finalizers": [["x"]] * 20_000}})


@pytest.mark.parametrize("item", [None, {"name": {}}, {"name": []}, {"name": None}, [], 1])
def test_hostile_items_are_refused_or_merged_but_never_crash(item):
    for patch in ({"containers": [item]}, {"$setElementOrder/containers": [item]}, {"containers": [item, item]}):
        with suppress(PatchError):
            assert "spec" in patched({"spec": patch})


def test_depth_is_bounded():
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(TooDeep):
        apply_strategic_merge(LIVE, {"spec": deep}, POD)
