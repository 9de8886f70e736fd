"""Objects as a tree of who owns whom."""

from __future__ import annotations

from steersman import ObjectMeta
from steersman.cli.demo.tree import tree_lines
from steersman.kinds.core_v1 import ConfigMap, Pod, PodSpec, PodStatus, Service, ServiceSpec
from steersman.objects import OwnerReference


def owned(kind, name: str, uid: str, *owners: str, **fields):
    references = [OwnerReference(api_version="v1", kind="X", name=owner, uid=owner) for owner in owners]
    metadata = ObjectMeta(name=name, namespace="default", uid=uid, owner_references=references or None)
    return kind(metadata=metadata, **fields)


def texts(*objects) -> list[str]:
    return [line.text(80) for line in tree_lines(objects)]


def test_owners_stand_above_what_they_own_and_numbers_are_in_order():
    tree = texts(
        owned(Pod, "web-10", "c", "a", spec=PodSpec(containers=[])),
        owned(Pod, "web-2", "b", "a", spec=PodSpec(containers=[]), status=PodStatus(phase="Running")),
        owned(ConfigMap, "page", "d", "b", data={"index.html": ""}),
        owned(Service, "web", "a", spec=ServiceSpec(cluster_ip="10.0.0.7")),
    )
    assert tree == [
        "Service web                        10.0.0.7",
        "├─ Pod web-2                       Running",
        "│  └─ ConfigMap page               index.html",
        "└─ Pod web-10                      Pending",
    ]


def test_owners_that_are_not_here_are_no_owners():
    assert texts(owned(ConfigMap, "page", "d", "elsewhere")) == ["ConfigMap page"]


def test_objects_that_own_each_other_stand_once():
    assert texts(owned(ConfigMap, "one", "a", "b"), owned(ConfigMap, "two", "b", "a")) == [
        "ConfigMap one",
        "└─ ConfigMap two",
    ]


def test_a_narrow_terminal_cuts_lines():
    (line,) = tree_lines([owned(ConfigMap, "page" * 20, "d")])
    assert len(line.text(30)) == 30
