"""What counts as a difference, field by field."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from steersman import Quantity
from steersman.testing.expectations import ABSENT, differences, expected_tree

FOUND = {
    "spec": {"replicas": 2, "paused": False, "args": ["a", "b"], "cpu": "100m"},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "Waiting"},
            {"type": "Stored", "status": "True"},
        ],
        "at": "2026-01-02T03:04:05Z",
    },
}


def differ(expected):
    return [tuple(each) for each in differences(expected_tree(expected), FOUND)]


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"spec": {"replicas": 2}},
        {"spec": {"args": ["a", "b"], "other": None}, "metadata": None},
        {"spec": {"args": ...}, "status": ...},
        {"status": {"conditions": [{"type": "Stored", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Stored"}, {"reason": "Waiting"}], "others": []}},
        {"spec": {"cpu": Quantity("100m")}, "status": {"at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}},
    ],
)
def test_only_what_is_said_is_compared(expected):
    assert differ(expected) == []


@pytest.mark.parametrize(
    ("expected", "different"),
    [
        ({"spec": {"replicas": 3}}, ("spec.replicas", 3, 2)),
        ({"spec": {"paused": 0}}, ("spec.paused", 0, False)),
        ({"spec": {"args": ["a"]}}, ("spec.args", ["a"], ["a", "b"])),
        ({"spec": {"replicas": None}}, ("spec.replicas", ABSENT, 2)),
        ({"spec": {"image": ...}}, ("spec.image", "anything", ABSENT)),
        ({"spec": {"replicas": {"min": 1}}}, ("spec.replicas", {"min": 1}, 2)),
        ({"metadata": {"labels": {}}}, ("metadata.labels", {}, ABSENT)),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            ("status.conditions[0].status", "True", "False"),
        ),
        ({"status": {"conditions": [{"type": "Lost"}]}}, ("status.conditions", {"type": "Lost"}, ABSENT)),
        ({"status": {"pods": [{"name": "x"}]}}, ("status.pods", [{"name": "x"}], ABSENT)),
    ],
)
def test_each_difference_names_its_field(expected, different):
    assert differ(expected) == [different]


def test_a_misspelled_field_is_suggested():
    """The name in an expectation is no attribute, so no type checker sees it."""
    assert [each.field for each in differences({"status": {"readyPage": 1}}, {"status": {"readyPages": 1}})] == [
        "status.readyPage (did you mean readyPages?)"
    ]
    [other] = differences({"data": {"page-10": "a"}}, {"data": {"page-11": "a"}})
    assert other.field == "data.page-10"
