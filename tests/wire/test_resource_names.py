"""Names of resources mean what they mean to kubectl; tests/client/test_resource_names.py asks it."""

from __future__ import annotations

import json

import pytest

from steersman.objects import GroupVersion, GroupVersionKind, Kind
from steersman.wire import find_resources, near_kinds, near_names, parse_aggregated_discovery, preferred_resources


def resource(plural: str, kind: str, **more) -> dict:
    names = {
        "resource": plural,
        "responseKind": {"kind": kind},
        "singularResource": kind.lower(),
        "scope": "Namespaced",
    }
    return names | {"verbs": ["get", "list"]} | more


def document(**groups: dict[str, list[dict]]) -> bytes:
    """The versions of groups; the name of a stale version begins with an exclamation mark."""
    items = [
        {
            "metadata": {"name": group.replace("_", ".").strip(".")},
            "versions": [
                {
                    "version": version.removeprefix("!"),
                    "freshness": "Stale" if version.startswith("!") else "Current",
                    "resources": resources,
                }
                for version, resources in versions.items()
            ],
        }
        for group, versions in groups.items()
    ]
    return json.dumps({"kind": "APIGroupDiscoveryList", "items": items}).encode()


API = document(_={"v1": [resource("pods", "Pod", shortNames=["po"], categories=["all"]), resource("events", "Event")]})
SERVED = parse_aggregated_discovery(
    API,
    document(
        broken_io={"!v1": [resource("widgets", "Widget"), resource("gone", "Gone")]},
        events_io={"v2": [resource("events", "Event")], "v1": [resource("events", "Event"), resource("olds", "Old")]},
        a_io={
            "v1": [
                resource("widgets", "Widget", shortNames=["w", "pods"], categories=["all"]),
                resource("nodes", "Node", scope="Cluster", singularResource="machine"),
                {"resource": "parents", "subresources": [{"subresource": "status"}]},
            ]
        },
        b_io={"v1": [resource("widgets", "Widget", shortNames=["w", "events"], categories=["tools"])]},
    ),
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("po", "v1/pods"),
        ("pods", "v1/pods"),
        ("POD", "v1/pods"),
        ("events", "v1/events"),
        ("events.events.io", "events.io/v2/events"),
        ("events.events", "events.io/v2/events"),
        ("Event.v1.events.io", "events.io/v1/events"),
        ("events.v1.", "v1/events"),
        ("events.b.io", "b.io/v1/widgets"),
        ("pods.a", "a.io/v1/widgets"),
        ("widgets", "a.io/v1/widgets"),
        ("w", "a.io/v1/widgets"),
        ("w.b", "b.io/v1/widgets"),
        ("olds", "events.io/v1/olds"),
        ("machine", "a.io/v1/nodes"),
        ("node", "a.io/v1/nodes"),
        ("Node.v1.a.io", "a.io/v1/nodes"),
        ("gone", "broken.io/v1/gone"),
        ("widgets.broken.io", "broken.io/v1/widgets"),
        ("all", "v1/pods a.io/v1/widgets"),
        ("W", ""),
        ("parents", ""),
        ("pods.v1", ""),
        ("nothing.at.all", ""),
        ("", ""),
    ],
)
def test_names(name: str, found: str) -> None:
    assert " ".join(str(each.gvr) for each in find_resources(SERVED, name)) == found


def test_a_stale_group_hides_no_other() -> None:
    assert list(SERVED.failures) == [GroupVersion("broken.io", "v1")]
    assert [str(each) for each in SERVED.versions] == [
        "v1",
        "broken.io/v1",
        "events.io/v2",
        "events.io/v1",
        "a.io/v1",
        "b.io/v1",
    ]
    assert SERVED.preferred_versions["events.io"] == "v2"


def test_preferred_resources_have_one_version_each() -> None:
    """A resource that the preferred version lacks comes from the next one."""
    names = [str(each.gvr) for each in preferred_resources(SERVED) if each.group == "events.io"]
    assert names == ["events.io/v2/events", "events.io/v1/olds"]
    assert [each.kind for each in preferred_resources(SERVED, namespaced=False)] == ["Node"]
    assert not {each.kind for each in preferred_resources(SERVED, namespaced=True)} & {"Node", ""}


def test_similar_names() -> None:
    assert near_names(SERVED, "widgts.b.io") == ["widgets", "Widget"]
    assert near_names(SERVED, "zzzzzz") == []
    assert near_kinds(SERVED, "Widgett") == ["Widget (broken.io/v1)"]
    assert near_kinds(SERVED, "Podd") == ["Pod (v1)"]


def test_a_resource_is_an_argument_of_a_client() -> None:
    (found,) = find_resources(SERVED, "w.b")
    assert found.as_kind() == Kind("b.io/v1", "Widget")
    assert found.gvk == GroupVersionKind("b.io", "v1", "Widget")
