"""What is said of objects of every kind, typed and as trees: ready or not, failed or not, and in which words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from patterns.readiness_forms import FAILED, READY, WAITS, condition, with_status
from patterns.readiness_rows import TABLE, widget

from steersman import Resource, Spec
from steersman.kinds import all_kinds, class_of
from steersman.objects import GroupVersionKind, Object, PartialObjectMetadata, Status, Unstructured, decode
from steersman.patterns.readiness import Readiness, readiness_of


def judged(tree: dict[str, Any]) -> Readiness:
    """The verdict on an object, which is the same for its tree and for its class."""
    said = readiness_of(Unstructured(tree))
    group, _, version = tree["apiVersion"].rpartition("/")
    kind = GroupVersionKind(group, version, tree["kind"])
    if kind in all_kinds():
        assert readiness_of(decode(class_of(kind), msgspec.json.encode(tree))) == said
    return said


def verdict(said: Readiness) -> str:
    """One word for it."""
    return READY if said.ready else FAILED if said.failed else WAITS


@pytest.mark.parametrize("name", TABLE)
def test_what_is_said(name: str) -> None:
    tree, expected, words = TABLE[name]
    said = judged(tree)
    assert (verdict(said), said.message) == (expected, words)
    assert said.reason.isalnum()


def test_every_other_kind_of_kubernetes_is_ready_when_it_exists() -> None:
    """A kind with a controller of its own is in the table above, with a way to be not ready."""
    with_a_rule = {tree["kind"] for tree, expected, _ in TABLE.values() if expected != READY} - {"ConfigMap", "Widget"}
    for kind in all_kinds():
        tree = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}}
        if kind.kind not in with_a_rule:
            assert readiness_of(Unstructured(tree)) == Readiness(ready=True, reason="Exists", message="it exists"), kind


class GardenSpec(Spec):
    beds: int = 1


class GardenStatus(Status):
    planted: int = 0


class Garden(Resource[GardenSpec, GardenStatus], group="example.com", version="v1"):
    """A kind whose controller reports conditions."""


class Seed(Resource[GardenSpec, None], group="example.com", version="v1"):
    """A kind without a readiness rule."""


def garden(cls: type[Object], **parts: Any) -> Object:
    tree = with_status("example.com/v1", cls.__name__, spec={}, **parts)
    return decode(cls, msgspec.json.encode(tree))


def test_a_kind_of_ours_is_not_ready_before_its_controller_has_looked() -> None:
    assert readiness_of(garden(Garden)).message == "its controller has reported no condition yet"
    assert readiness_of(garden(Garden, status={"conditions": [condition("Planted", "False")]})).ready
    assert readiness_of(garden(Seed)).ready
    late = garden(Garden, status={"conditions": [condition("Ready")], "observedGeneration": 1})
    assert readiness_of(late).reason == "NotObserved"


def test_metadata_alone_says_nothing() -> None:
    tree = with_status("apps/v1", "Deployment")
    with pytest.raises(
        TypeError, match="the readiness of Deployment web cannot be decided from its metadata alone; read the"
    ):
        readiness_of(decode(PartialObjectMetadata, msgspec.json.encode(tree), partial=True))


def test_what_objects_say_is_quoted_up_to_a_length_and_their_reasons_only_if_they_fit() -> None:
    said = readiness_of(Unstructured(widget(condition("Ready", "False", "not a word", "x" * 5000))))
    assert said.reason == "NotReady"
    assert said.message == f"it is not ready: not a word: {'x' * 1000}..."
