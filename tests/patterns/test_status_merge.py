"""What one writer says in a status that several write."""

from __future__ import annotations

from typing import Annotated

from hypothesis import given, strategies as st

from samples.postgres import Postgres
from steersman import Resource, Spec, Status, Struct
from steersman.kinds.core_v1 import ConfigMap, Namespace, Node
from steersman.markers import ListMap
from steersman.objects import Condition, Object
from steersman.patches import apply_merge_patch, merge_patch_between
from steersman.patterns.status.draft import status_form
from steersman.patterns.status.merge import merge_changes


class Member(Struct):
    name: str
    address: str | None = None
    role: str | None = None


class TeamStatus(Status):
    members: Annotated[list[Member], ListMap("name")] | None = None
    plain: list[str] | None = None


class Team(Resource[Spec, TeamStatus], group="teams.test.steersman.dev", version="v1"):
    """Several writers say who belongs to it."""


SCHEMA = status_form(Team).schema


def test_only_what_changed_is_claimed():
    before = {"a": 1, "theirs": {"x": 1, "y": 2}, "plain": ["p"]}
    after = {"a": 2, "theirs": {"x": 1, "y": 3}, "plain": ["p"], "new": {"z": 1}}
    assert merge_changes({}, before, after, None) == {"a": 2, "theirs": {"y": 3}, "new": {"z": 1}}


def test_what_was_said_before_stays_until_it_is_taken_away():
    own = {"kept": 1, "gone": 2, "deep": {"kept": 1, "gone": 2}}
    before = {"kept": 1, "gone": 2, "deep": {"kept": 1, "gone": 2, "theirs": 3}, "theirs": 4}
    after = {"kept": 1, "deep": {"kept": 1, "theirs": 3}}
    # what belongs to others is not taken away, since it was never ours
    assert merge_changes(own, before, after, None) == {"kept": 1, "deep": {"kept": 1}}


def test_items_of_a_list_with_keys_are_claimed_one_by_one():
    theirs = {"name": "anna", "address": "10.0.0.1"}
    before = {"members": [theirs, {"name": "bert", "address": "10.0.0.2"}]}
    after = {
        "members": [
            {**theirs, "role": "primary"},
            {"name": "bert", "address": "10.0.0.9"},
            {"name": "carl", "address": "10.0.0.3"},
        ]
    }
    own = {"members": [{"name": "bert", "address": "10.0.0.2"}]}
    assert merge_changes(own, before, after, SCHEMA) == {
        "members": [
            {"name": "bert", "address": "10.0.0.9"},
            {"name": "anna", "role": "primary"},
            {"name": "carl", "address": "10.0.0.3"},
        ]
    }
    assert merge_changes(own, before, {"members": [theirs]}, SCHEMA) == {"members": []}


VALUES = st.recursive(
    st.integers(0, 3), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=6
)
TREES = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@given(before=TREES, after=TREES)
def test_a_sole_writer_says_all_of_it(before, after):
    assert merge_changes(before, before, after, None) == after


@given(before=TREES, after=TREES)
def test_what_is_claimed_leads_to_what_was_meant(before, after):
    """Merging what we claim into what is there gives what the state wanted, but for what it took away from others."""
    claimed = merge_changes({}, before, after, None)
    merged = apply_merge_patch(before, claimed)
    removed = apply_merge_patch(merged, merge_patch_between(merged, after))
    assert removed == after
    assert all(name in after for name in claimed)


class AtomicStatus(Struct):
    conditions: list[Condition] | None = None


class Atomic(Resource[Spec, AtomicStatus], group="teams.test.steersman.dev", version="v1"):
    """Its conditions are a plain list."""


class Silent(Resource[Spec, None], group="teams.test.steersman.dev", version="v1"):
    """It has no status."""


class Theirs(Object, group="theirs.example.com", version="v1"):
    """A model of a kind that another program defines."""

    status: Status | None = None


class Unreported(Object, group="theirs.example.com", version="v1"):
    """The same, of one that is not known to have conditions."""

    status: Member | None = None


def test_how_the_status_of_a_kind_is_written():
    def form(kind):
        found = status_form(kind)
        return found.how, found.subresource, found.observed_generation, found.by_generation

    assert form(Postgres) == ("apply", "status", True, True)
    assert form(Atomic) == ("patch", "status", False, True)
    assert form(Namespace) == ("apply", "status", False, False)
    assert form(Node)[0] == "apply"
    assert form(ConfigMap)[0] == "not"
    assert form(Silent)[0] == "not"
    assert form(Theirs) == ("patch", "status", True, False)
    assert form(Unreported)[0] == "not"
