"""Conditions: repeating an observation changes nothing."""

from datetime import UTC, datetime

from samples.site import SiteStatus
from steersman.kinds.apps_v1 import DeploymentCondition, DeploymentStatus
from steersman.kinds.core_v1 import PodCondition, PodStatus
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


def test_conditions_of_built_in_kinds_are_set_as_our_own_are():
    status = PodStatus()
    assert set_condition(status, PodCondition(type="Ready", status="True"), now=LATER)
    assert not set_condition(status, PodCondition(type="Ready", status="True"), now=FIRST)
    assert is_true(status.conditions, "Ready")
    assert find_condition(status.conditions, "Ready").last_transition_time == LATER


def test_fields_that_only_one_kind_of_condition_has_stay():
    """A Deployment's condition knows no generation, but when it was last looked at."""
    present = DeploymentCondition(type="Available", status="True", last_update_time=LATER, last_transition_time=LATER)
    status = DeploymentStatus(conditions=[present])
    assert set_condition(status, DeploymentCondition(type="Available", status="True", message="fine"), now=FIRST)
    assert (present.message, present.last_update_time, present.last_transition_time) == ("fine", LATER, LATER)
