"""Discovery: every document of a server in one form."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from steersman.errors import ProtocolError
from steersman.objects import GroupVersion
from steersman.wire import (
    ApiResource,
    ApiSubresource,
    DiscoveryResult,
    GroupList,
    parse_aggregated_discovery,
    parse_group_list,
    parse_resource_list,
    parse_table,
    parse_version,
    print_aggregated_discovery,
    print_api_versions,
    print_group_list,
    print_resource_list,
    print_table,
    print_version,
)

words = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
texts = st.lists(words, max_size=3, unique=True).map(tuple)


@st.composite
def resources(draw, group: str, version: str, name: str):
    subresources = tuple(
        ApiSubresource(
            name=sub,
            kind=draw(words),
            group=owner[0],
            version=owner[1],
            verbs=draw(texts),
        )
        for sub in draw(texts)
        for owner in [draw(st.sampled_from([(group, version), ("autoscaling", "v1"), ("", "v9")]))]
    )
    return ApiResource(
        group=group,
        version=version,
        kind=draw(words),
        resource=name,
        singular=draw(words),
        namespaced=draw(st.booleans()),
        verbs=draw(texts),
        short_names=draw(texts),
        categories=draw(texts),
        subresources=subresources,
    )


@st.composite
def results(draw):
    result = DiscoveryResult()
    for group in ("", *draw(texts)):
        versions = draw(st.lists(words, min_size=1, max_size=2, unique=True))
        result.preferred_versions[group] = versions[0]
        for version in versions:
            names = draw(texts)
            result.resources += [draw(resources(group, version, name)) for name in names]
            if draw(st.booleans()) or (not names and version != versions[0]):
                result.failures[GroupVersion(group, version)] = "stale"
    return result


@given(results())
def test_the_aggregated_documents_are_read_back(result):
    read = parse_aggregated_discovery(
        print_aggregated_discovery(result, core=True), print_aggregated_discovery(result, core=False)
    )
    assert read.resources == result.resources
    assert read.preferred_versions == result.preferred_versions
    assert set(read.failures) == set(result.failures)


@given(results())
def test_the_plain_documents_are_read_back(result):
    versions = list(dict.fromkeys(GroupVersion(r.group, r.version) for r in result.resources))
    preferred = {}
    for version in versions:
        preferred.setdefault(version.group, version.version)
    groups = GroupList(versions=versions, preferred_versions=preferred)
    core = [version.version for version in versions if not version.group]
    assert parse_group_list(print_api_versions(core), print_group_list(groups)) == groups
    for version in versions:
        served = [r for r in result.resources if (r.group, r.version) == (version.group, version.version)]
        assert parse_resource_list(print_resource_list(version, served)) == served


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
        parse_table,
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
    assert parse_version(print_version(version)) == version


def test_a_table_is_read_back():
    body = (
        b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},'
        b'"columnDefinitions":[{"name":"Name","type":"string","format":"name","description":"d","priority":0}],'
        b'"rows":[{"cells":["a",1,null],"object":{"kind":"PartialObjectMetadata"}},{"cells":[]}]}'
    )
    table = parse_table(body)
    assert table.rows[0].cells == ("a", 1, None)
    assert table.rows[0].object == b'{"kind":"PartialObjectMetadata"}'
    assert table.rows[1].object is None
    assert parse_table(print_table(table)) == table
    assert msgspec.json.decode(print_table(table))["rows"][0] == msgspec.json.decode(body)["rows"][0]
