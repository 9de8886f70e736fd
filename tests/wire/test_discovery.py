"""Discovery: every document of a server in one form."""

from __future__ import annotations

import json

import pytest

from steersman.errors import ProtocolError
from steersman.wire import (
    ApiSubresource,
    parse_aggregated_discovery,
    parse_group_list,
    parse_resource_list,
    parse_version,
)


def test_the_preferred_version_comes_first():
    apis = {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "g",
                "versions": [
                    {"groupVersion": "g/v1beta1", "version": "v1beta1"},
                    {"groupVersion": "g/v2", "version": "v2"},
                    {"groupVersion": "g/v1", "version": "v1"},
                ],
                "preferredVersion": {"groupVersion": "g/v2", "version": "v2"},
            },
            {"name": "empty", "versions": None},
        ],
    }
    groups = parse_group_list(b'{"kind":"APIVersions","versions":["v1"]}', json.dumps(apis).encode())
    assert [str(version) for version in groups.versions] == ["v1", "g/v2", "g/v1beta1", "g/v1"]
    assert groups.preferred_versions == {"": "v1", "g": "v2"}


def test_nulls_of_go_are_empty_lists():
    body = b'{"kind":"APIResourceList","groupVersion":"g/v1","resources":[{"name":"a","singularName":"","namespaced":true,"kind":"A","verbs":null}]}'
    assert parse_resource_list(body)[0].verbs == ()
    assert parse_resource_list(b'{"kind":"APIResourceList","groupVersion":"g/v1","resources":null}') == []


def test_a_subresource_without_its_parent_is_kept():
    body = b'{"kind":"APIResourceList","groupVersion":"g/v1","resources":[{"name":"a/b","singularName":"","namespaced":true,"kind":"B","verbs":["create"]}]}'
    (resource,) = parse_resource_list(body)
    assert (resource.resource, resource.kind, resource.namespaced) == ("a", "", True)
    assert resource.subresource("b") == ApiSubresource(name="b", kind="B", group="g", version="v1", verbs=("create",))
    assert resource.subresource("c") is None


def test_a_plain_answer_to_an_aggregated_question_is_noticed():
    """A server that does not know the aggregated form answers in the old one: the client must fall back, not be blind."""
    with pytest.raises(ProtocolError):
        parse_aggregated_discovery(b'{"kind":"APIVersions","versions":["v1"]}')
    with pytest.raises(ProtocolError, match="APIGroupDiscoveryList"):
        parse_aggregated_discovery(b'{"kind":"APIGroupList","apiVersion":"v1","groups":[]}')


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"<html>", b"{}", b'{"kind":"Status","apiVersion":"v1"}', b"\xff", b"[" * 100_000]
)
@pytest.mark.parametrize(
    "parse",
    [
        parse_aggregated_discovery,
        parse_resource_list,
        parse_version,
        lambda body: parse_group_list(body, body),
    ],
)
def test_garbage_is_a_protocol_error(parse, body):
    with pytest.raises(ProtocolError):
        parse(body)


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        (b'{"major":"1","minor":"36","gitVersion":"v1.36.3"}', (1, 36)),
        (b'{"major":"1","minor":"27+","gitVersion":"v1.27.3-gke.100"}', (1, 27)),
        (b'{"major":"","minor":"","gitVersion":"v1.30.0"}', (1, 30)),
        (b'{"gitVersion":"unknown"}', (0, 0)),
    ],
)
def test_versions_compare(body, numbers):
    version = parse_version(body)
    assert (version.major, version.minor) == numbers
    assert version.at_least(*numbers)
    assert not version.at_least(numbers[0], numbers[1] + 1)
