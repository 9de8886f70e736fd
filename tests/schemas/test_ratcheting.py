"""What an update leaves as it was is borne with, where the old value can be found."""

import pytest

from steersman.schemas.validation import schema_problems

SHORT = {"type": "string", "maxLength": 3}
PORT = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": SHORT, "port": {"type": "integer", "maximum": 9}},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": SHORT,
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": PORT,
        },
        "tags": {"type": "array", "items": SHORT},
        "limits": {"type": "object", "additionalProperties": {"type": "integer", "maximum": 9}},
        "free": {"type": "object", "required": ["x"], "x-kubernetes-preserve-unknown-fields": True},
        "either": {"type": "string", "anyOf": [{"maxLength": 2}, {"pattern": "^a"}]},
    },
}


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({"name": "long"}, {"name": "long"}, []),
        ({"name": "long"}, {"name": "longer"}, ["name"]),
        ({}, {"name": "long"}, ["name"]),
        ({"limits": {"a": 10}}, {"limits": {"a": 10, "b": 10}}, ["limits.b"]),
        (
            {"ports": [{"name": "a", "port": 10}]},
            {"ports": [{"name": "b", "port": 10}, {"name": "a", "port": 10}]},
            ["ports[0].port"],
        ),
        # an item without its key is no old item
        ({"ports": [{"port": 10}]}, {"ports": [{"port": 10}]}, ["ports[0].name", "ports[0].port"]),
        ({"tags": ["long"]}, {"tags": ["long"]}, []),
        ({"tags": ["long"]}, {"tags": ["long", "b"]}, ["tags[0]"]),
        # whether values without a schema are the same is unknown
        ({"free": {"y": 1}}, {"free": {"y": 1}}, ["free.x"]),
        ({"free": {}}, {"free": {}}, []),
        ({"name": 1}, {"name": 1.0}, ["name"]),
        ({"name": None}, {"name": None}, []),
        ({"either": "bcd"}, {"either": "bcd", "name": "x"}, []),
    ],
)
def test_only_what_changed_is_judged(old, new, paths):
    assert sorted({found.path for found in schema_problems(SCHEMA, new, old=old)}) == paths


def test_without_an_old_value_everything_is_judged():
    assert [found.path for found in schema_problems(SCHEMA, {"name": "long", "tags": ["long"]})] == ["name", "tags[0]"]
