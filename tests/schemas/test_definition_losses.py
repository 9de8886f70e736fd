"""What a definition loses: between its versions, and to the one that replaces it."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.schemas import removed_parts, version_differences

STRING, NUMBER = {"type": "string"}, {"type": "integer"}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def version(name: str, *, served: bool = True, **spec: Any) -> dict[str, Any]:
    schema = fields(metadata={"type": "object"}, spec=fields(**spec))
    return {"name": name, "served": served, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}


def definition(*versions: dict[str, Any], stored: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"spec": {"versions": list(versions)}, "status": {"storedVersions": list(stored)}}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ({"a": STRING}, {"a": {**STRING, "minLength": 3, "description": "another"}}, []),
        ({"a": STRING}, {"a": STRING, "b": STRING}, ["v2 spec.b, not in v1"]),
        ({"a": STRING}, {"a": NUMBER}, ["v1 spec.a, not in v2", "v2 spec.a, not in v1"]),
        ({"a": fields(b=STRING)}, {"a": OPEN}, ["v2 spec.a: undeclared fields, not in v1"]),
        (
            {"a": {"type": "array", "items": fields(b=STRING)}},
            {"a": {"type": "array", "items": fields(b=STRING, c=STRING)}},
            ["v2 spec.a[].c, not in v1"],
        ),
        (
            {"a": {"type": "object", "additionalProperties": fields(b=STRING)}},
            {"a": {"type": "object", "additionalProperties": fields()}},
            ["v1 spec.a{}.b, not in v2"],
        ),
        (
            {f"f{n}": STRING for n in range(6)},
            {},
            ["v1 spec.f0, spec.f1, spec.f2, spec.f3 and 2 more fields, not in v2"],
        ),
    ],
)
def test_versions_that_differ(one: dict[str, Any], other: dict[str, Any], found: list[str]):
    """A field that one version lacks is pruned from objects that are read in it."""
    assert version_differences(definition(version("v1", **one), version("v2", **other))) == found


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([version("v1", a=STRING), version("v2", a=STRING, b=STRING)], []),
        ([version("v1", a=STRING, c=STRING), version("v2", a=STRING, b=STRING), version("v3")], []),
        ([version("v2", a=STRING, b=STRING)], ["version v1, in which objects are stored"]),
        ([version("v1", a=STRING)], ["version v2"]),
        ([version("v1", a=STRING), version("v2", b=STRING)], ["spec.a of version v2"]),
        ([version("v1", served=False, a=STRING), version("v2", a=STRING, b=STRING)], ["the serving of version v1"]),
        ([version("v1", a=NUMBER), version("v2", a=STRING, b=STRING)], []),
    ],
)
def test_what_a_new_definition_removes(wanted: list[dict[str, Any]], found: list[str]):
    """A removed version or field takes the data of objects with it."""
    installed = definition(version("v1", a=STRING), version("v2", a=STRING, b=STRING), stored=("v1",))
    assert removed_parts(installed, definition(*wanted)) == found


def test_a_stored_version_that_is_no_longer_declared():
    """Objects are still stored in it, although a broken definition lacks it."""
    installed = definition(version("v1"), stored=("v1alpha1", "v1"))
    assert removed_parts(installed, definition(version("v1"))) == ["version v1alpha1, in which objects are stored"]
