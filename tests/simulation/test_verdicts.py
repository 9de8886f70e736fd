"""What oracles compare in values that differ from run to run."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from steersman.simulation.verdicts.agreements import agreements, disagreements
from steersman.simulation.verdicts.renewals import changes, renewals
from steersman.simulation.verdicts.states import normalized, unstable_paths

ONE, OTHER, THIRD = "5f1c2d9e7a", "b80e44a1c3", "0d9e8f7a6b"


def state_of(**contents: str) -> dict[str, Any]:
    return {f"core/configmaps/default/{name}": {"data": {"text": text}} for name, text in contents.items()}


def secret(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("inner", "outer"),
    [("{}", "{}"), ("{}", "db://guest:{}@home"), ("b64:{}", "b64:db://{}"), ("{}", "b64:db://{}")],
    ids=["equal", "contained", "both in base64", "one in base64"],
)
def test_a_random_value_that_two_objects_share(inner: str, outer: str) -> None:
    """A password that differs in two places locks users out, and no comparison with another run can see it."""

    def text(template: str, value: str) -> str:
        filled = template.removeprefix("b64:").format(value)
        return secret(filled) if template.startswith("b64:") else filled

    def state(value: str, again: str) -> dict[str, Any]:
        return state_of(a=text(inner, value), b=text(outer, again))

    one, other = state(ONE, ONE), state(OTHER, OTHER)
    pairs = agreements(one, other, unstable_paths(one, other))
    for value in (THIRD, "edited"):  # also a short one, which a person wrote
        assert disagreements(state(value, value), pairs) == []
    words = "configmaps default/b: data.text does not contain the value of configmaps default/a: data.text"
    assert disagreements(state(ONE, THIRD), pairs) == [words]
    assert not any(value in words for value in (ONE, THIRD))


def test_random_values_that_agree_in_one_run_alone_may_differ() -> None:
    """What two runs do not share is chance."""
    one, other = state_of(a=ONE, b=ONE), state_of(a=OTHER, b=THIRD)
    assert agreements(one, other, unstable_paths(one, other)) == frozenset()


def test_short_values_agree_by_chance() -> None:
    """A digit is in many texts."""
    one, other = state_of(a="7", b=f"7{ONE}"), state_of(a="8", b=f"8{OTHER}")
    assert agreements(one, other, unstable_paths(one, other)) == frozenset()


def stored(**data: str) -> dict[str, bytes]:
    tree = {"metadata": {"name": "home", "managedFields": [{"time": data.get("due", "")}]}, "data": data}
    return {"core/configmaps/default/home": msgspec.json.encode(tree)}


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def renewed(*states: dict[str, bytes]) -> list[str]:
    """The values that time renews, if two runs are the same."""
    paths = renewals([*map(normalized, states)], changes(states), changes(states), frozenset())
    return sorted(".".join(path[1:]) for path in paths[0])


def test_a_time_that_changes_alone_is_a_renewal() -> None:
    assert renewed(stored(due=EARLY), stored(due=LATE)) == ["data.due"]


def test_a_time_that_changes_with_something_else_is_none() -> None:
    """The comparison of states sees the rest, and a fault may change the time before it."""
    assert renewed(stored(due=EARLY, text="a"), stored(due=LATE, text="b")) == []


def test_an_object_that_stays_is_not_renewed() -> None:
    assert renewed(stored(due=EARLY), stored(due=EARLY)) == []


def test_the_hash_of_an_intent_is_no_difference() -> None:
    """A child has it once an earlier one showed that the server normalizes the kind: a lost request changes which ones."""
    metadata = {"name": "web", "annotations": {"steersman.dev/intent": "8cf2901a36cb46ad"}}
    key = "apps/statefulsets/default/web"
    marked, plain = (msgspec.json.encode({"metadata": each}) for each in (metadata, {"name": "web"}))
    assert normalized({key: marked}) == normalized({key: plain})
