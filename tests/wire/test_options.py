"""Options: what a client prints is what a server reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from steersman.wire import (
    CreateOptions,
    DeleteOptions,
    GetOptions,
    InvalidOption,
    ListOptions,
    PatchOptions,
    Preconditions,
    UpdateOptions,
    WatchOptions,
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
writing = {
    "dry_run": st.booleans(),
    "field_manager": st.text(),
    "field_validation": st.none() | st.sampled_from(["Ignore", "Warn", "Strict"]),
}
policies = st.none() | st.sampled_from(["Orphan", "Background", "Foreground"])
options = st.one_of(
    st.builds(GetOptions, resource_version=st.text()),
    st.builds(ListOptions, limit=numbers, continue_=st.text(), **selection),
    st.builds(WatchOptions, allow_bookmarks=st.booleans(), send_initial_events=st.none() | st.booleans(), **selection),
    st.builds(CreateOptions, **writing),
    st.builds(UpdateOptions, **writing),
    st.builds(PatchOptions, force=st.none() | st.booleans(), **writing),
    st.builds(DeleteOptions, propagation_policy=policies, grace_period_seconds=numbers, dry_run=st.booleans()),
)


@given(options)
def test_options_survive_a_query(given_options):
    query = parse_query(print_query(given_options.to_query()))
    assert type(given_options).from_query(query) == given_options


@given(
    st.builds(
        DeleteOptions,
        propagation_policy=policies,
        grace_period_seconds=numbers,
        dry_run=st.booleans(),
        preconditions=st.none()
        | st.builds(Preconditions, uid=st.none() | st.text(), resource_version=st.none() | st.text()),
    )
)
def test_delete_options_survive_a_body(given_options):
    body = given_options.to_body()
    assert (DeleteOptions() if body is None else DeleteOptions.from_body(body)) == given_options


@pytest.mark.parametrize(
    "default", [GetOptions(), ListOptions(), CreateOptions(), UpdateOptions(), PatchOptions(), DeleteOptions()]
)
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


def test_a_limit_of_zero_is_printed():
    """Zero is a value of its own: no limit, whatever the server's default."""
    assert ListOptions(limit=0).to_query() == (("limit", "0"),)
    assert json.loads(DeleteOptions(grace_period_seconds=0).to_body())["gracePeriodSeconds"] == 0


def test_preconditions_cannot_get_lost_in_a_query():
    with pytest.raises(ValueError, match="body"):
        DeleteOptions(preconditions=Preconditions(uid="u")).to_query()


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
        (CreateOptions, (("dryRun", "Foo"),)),
        (CreateOptions, (("dryRun", ""),)),
        (PatchOptions, (("dryRun", "All"), ("dryRun", "Foo"))),
        (UpdateOptions, (("fieldValidation", "strict"),)),
        (DeleteOptions, (("propagationPolicy", "Maybe"),)),
    ],
)
def test_a_wrong_value_is_never_ignored(cls, query):
    with pytest.raises(InvalidOption):
        cls.from_query(query)


def test_a_wrong_value_of_a_closed_set_tells_the_right_ones():
    with pytest.raises(InvalidOption, match=r"fieldValidation.*supported: Ignore, Warn, Strict") as caught:
        CreateOptions.from_query((("fieldValidation", "x"),))
    assert caught.value.supported == ("Ignore", "Warn", "Strict")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"kind":"Pod"}',
        b'{"propagationPolicy":"Maybe"}',
        b'{"dryRun":["Foo"]}',
        b'{"gracePeriodSeconds":"x"}',
    ],
)
def test_a_wrong_body_is_never_ignored(body):
    with pytest.raises(InvalidOption):
        DeleteOptions.from_body(body)


def test_a_body_of_another_client_is_read():
    body = b'{"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions","orphanDependents":null,"dryRun":null,"preconditions":{}}'
    assert DeleteOptions.from_body(body) == DeleteOptions(preconditions=Preconditions())
