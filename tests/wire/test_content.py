"""Content negotiation, as kube-apiserver does it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from steersman.wire import (
    AGGREGATED_DISCOVERY,
    JSON,
    PARTIAL_OBJECT_METADATA,
    TABLE,
    YAML,
    MediaType,
    negotiate,
    parse_accept,
    parse_media_type,
)

tokens = st.from_regex(r"[a-z][a-z0-9.+-]{0,8}", fullmatch=True).filter(lambda text: text != "q")
media_types = st.builds(
    MediaType,
    st.tuples(tokens, tokens).map("/".join),
    st.lists(st.tuples(tokens, st.text(st.characters(min_codepoint=32, max_codepoint=126)))).map(tuple),
    st.sampled_from([1.0, 0.5, 0.123]),
)


@given(media_types)
def test_a_media_type_is_read_back_as_it_was_printed(media_type):
    assert parse_media_type(str(media_type)) == media_type


@given(st.lists(media_types, min_size=1))
def test_an_accept_header_is_read_best_first(clauses):
    read = parse_accept(",".join(map(str, clauses)))
    assert list(read) == sorted(clauses, key=lambda clause: -clause.quality)


def test_reading_an_accept_header_takes_linear_time():
    """A header of nothing but quotes and commas must not keep a server busy."""
    for text in ('",' * 4000, '"' * 8000, ',"\\' * 2500, "a/b;" * 2000):
        parse_accept(text)


@given(st.text())
def test_reading_an_accept_header_never_fails(text):
    parse_accept(text)


@pytest.mark.parametrize(
    "text", ["", "json", "/", "a/", "a/b/c", "a/b;=c", "a/b;c=d e", "a/b;q=2", "a/b;q=x", "a b/c", "a/b;c"]
)
def test_what_is_no_media_type_is_refused(text):
    with pytest.raises(ValueError, match=r"media type|parameter|quality"):
        parse_media_type(text)


def test_case_and_spaces_do_not_matter():
    assert parse_media_type(" Application/JSON ; Charset=utf-8 ;") == MediaType(JSON, (("charset", "utf-8"),))
    assert parse_media_type('application/json;a="b;c,\\"d"').parameter("a") == 'b;c,"d'


KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.mark.parametrize(
    ("accept", "offers", "expected"),
    [
        (None, (JSON, YAML), JSON),
        ("", (JSON, YAML), JSON),
        ("*/*", (JSON, TABLE), JSON),
        ("application/*", (YAML, JSON), YAML),
        ("application/yaml", (JSON, YAML), YAML),
        ("application/yaml;q=0.5, application/json", (YAML, JSON), JSON),
        ("application/json;q=0, */*", (YAML, JSON), YAML),
        ("application/vnd.kubernetes.protobuf, application/json", (JSON,), JSON),
        ("application/vnd.kubernetes.protobuf", (JSON,), None),
        ("text/html, garbage, application/json;pretty=1", (JSON,), JSON),
        (KUBECTL, (JSON, TABLE), TABLE),
        (KUBECTL, (JSON,), JSON),
        (TABLE, (JSON,), None),
        (PARTIAL_OBJECT_METADATA, (JSON, TABLE, PARTIAL_OBJECT_METADATA), PARTIAL_OBJECT_METADATA),
        (AGGREGATED_DISCOVERY + "," + JSON, (JSON, AGGREGATED_DISCOVERY), AGGREGATED_DISCOVERY),
        (
            "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
            (AGGREGATED_DISCOVERY,),
            AGGREGATED_DISCOVERY,
        ),
        ("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", (AGGREGATED_DISCOVERY,), None),
    ],
)
def test_the_server_picks(accept, offers, expected):
    picked = negotiate(accept, offers)
    assert (None if picked is None else str(picked)) == expected
