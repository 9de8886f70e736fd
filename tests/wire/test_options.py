"""Options: what a client prints is what a server reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from steersman.wire import (
    DeleteOptions,
    InvalidOption,
    ListOptions,
    PatchOptions,
    Preconditions,
    WatchOptions,
    WriteOptions,
    is_watch,
    parse_query,
    print_query,
)

numbers = st.none() | st.integers(0, 2**63 - 1)
selection = {
    "label_selector": st.text(),
    "field_selector": st.text(),
    "resource_version": st.text(),
    "resource_version_match": st.sampled_from(["", "Exact", "NotOlderThan"]),
    "timeout_seconds": numbers,
}
options = st.one_of(
    st.builds(ListOptions, limit=numbers, continue_=st.text(), **selection),
    st.builds(WatchOptions, allow_bookmarks=st.booleans(), send_initial_events=st.none() | st.booleans(), **selection),
)


@given(options)
def test_options_survive_a_query(given_options):
    query = parse_query(print_query(given_options.to_query()))
    assert type(given_options).from_query(query) == given_options


@pytest.mark.parametrize("default", [ListOptions(), WriteOptions(), PatchOptions()])
def test_what_is_not_set_is_not_printed(default):
    assert default.to_query() == ()


def test_a_delete_without_options_needs_no_body():
    assert DeleteOptions().to_body() is None
    assert json.loads(DeleteOptions(dry_run=True, preconditions=Preconditions(uid="u")).to_body()) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u"},
        "dryRun": ["All"],
    }


def test_the_options_of_writes_are_printed():
    """A write without its field manager, or a dry run that is none, changes the wrong thing."""
    written = PatchOptions(dry_run=True, field_manager="me", field_validation="Warn", force=False)
    expected = (("fieldManager", "me"), ("fieldValidation", "Warn"), ("dryRun", "All"), ("force", "false"))
    assert written.to_query() == expected


def test_a_limit_of_zero_is_printed():
    """Zero is a value of its own: no limit, whatever the server's default."""
    assert ListOptions(limit=0).to_query() == (("limit", "0"),)
    assert json.loads(DeleteOptions(grace_period_seconds=0).to_body())["gracePeriodSeconds"] == 0


def test_the_next_page_repeats_all_but_the_version():
    """The engine refuses a resourceVersion beside a token."""
    options = ListOptions(label_selector="a", limit=5, resource_version="7", resource_version_match="Exact")
    assert options.next_page("tok") == ListOptions(label_selector="a", limit=5, continue_="tok")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ((), False),
        ((("watch", ""),), True),
        ((("watch", "1"),), True),
        ((("watch", "0"),), False),
        ((("watch", "False"),), False),
    ],
)
def test_flags_are_read_as_kubernetes_reads_them(query, expected):
    assert is_watch(query) is expected


@pytest.mark.parametrize(
    ("cls", "query"),
    [
        (ListOptions, (("limit", "abc"),)),
        (ListOptions, (("limit", "1.5"),)),
        (ListOptions, (("limit", "+-1"),)),
        (ListOptions, (("limit", "9" * 30),)),
        (ListOptions, (("limit", str(2**63)),)),
        (WatchOptions, (("timeoutSeconds", "x"),)),
    ],
)
def test_a_wrong_value_is_never_ignored(cls, query):
    with pytest.raises(InvalidOption):
        cls.from_query(query)
