"""Conditions: repeating an observation changes nothing."""

from datetime import UTC, datetime

from samples.site import SiteStatus
from steersman.objects import Condition, find_condition, is_true, set_condition

FIRST = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 13, 0, 0, tzinfo=UTC)


def ready(status: str, reason: str = "Because", message: str = "") -> Condition:
    return Condition(type="Ready", status=status, reason=reason, message=message)  # type: ignore[arg-type]


def test_a_new_condition_has_a_time_of_whole_seconds():
    """Kubernetes stores seconds: a fraction would differ from what is read back, and be written again and again."""
    status = SiteStatus()
    assert set_condition(status, ready("False"), now=FIRST)
    condition = find_condition(status.conditions, "Ready")
    assert condition is not None
    assert condition.last_transition_time == FIRST.replace(microsecond=0)
    assert not is_true(status.conditions, "Ready")


def test_the_same_observation_changes_nothing():
    status = SiteStatus()
    set_condition(status, ready("True"), now=FIRST)
    assert not set_condition(status, ready("True"), now=LATER)
    assert is_true(status.conditions, "Ready")


def test_the_time_moves_with_the_status_alone():
    status = SiteStatus()
    set_condition(status, ready("False"), now=FIRST)
    assert set_condition(status, ready("False", reason="Other"), now=LATER)
    assert find_condition(status.conditions, "Ready").last_transition_time == FIRST.replace(microsecond=0)
    assert set_condition(status, ready("True"), now=LATER)
    assert find_condition(status.conditions, "Ready").last_transition_time == LATER
    assert len(status.conditions) == 1


def test_what_is_not_there_is_not_true():
    assert find_condition(None, "Ready") is None
    assert not is_true([], "Ready")
