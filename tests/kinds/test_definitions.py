"""The schemas of built-in kinds, as data for patches and for a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman.kinds import all_kinds, class_of, definition, index, resolve, resources_of, schema_of
from steersman.objects import GroupVersion, GroupVersionKind
from steersman.objects.hints import wire_names

ROOT = Path(__file__).resolve().parents[2]
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


def walk(schema: dict[str, Any], *path: str) -> dict[str, Any]:
    """Follow property names and ``[]`` through references."""
    for name in path:
        inner = resolve(schema)
        schema = inner["items"] if name == "[]" else inner["properties"][name]
    return resolve(schema)


def test_what_patches_need_is_there() -> None:
    """Map keys, their defaults, list types and patch strategies."""
    containers = walk(schema_of(DEPLOYMENT), "spec", "template", "spec", "containers")
    assert containers["x-kubernetes-list-type"] == "map"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-patch-merge-key"] == "name"

    ports = walk(containers, "[]", "ports")
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert walk(ports, "[]", "protocol")["default"] == "TCP"
    assert walk(ports, "[]")["required"] == ["containerPort"]

    assert walk(schema_of(DEPLOYMENT), "spec", "strategy")["x-kubernetes-patch-strategy"] == "retainKeys"
    assert walk(schema_of(DEPLOYMENT), "spec", "selector")["x-kubernetes-map-type"] == "atomic"


def test_what_stands_beside_a_reference_wins() -> None:
    claim = walk(schema_of(GroupVersionKind("", "v1", "PersistentVolume")), "spec", "claimRef")
    assert claim["x-kubernetes-map-type"] == "granular"
    assert definition("io.k8s.api.core.v1.ObjectReference")["x-kubernetes-map-type"] == "atomic"


def test_descriptions_are_left_out_and_properties_of_that_name_are_not() -> None:
    assert "description" not in definition("io.k8s.api.core.v1.Pod")
    props = definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert props["properties"]["description"] == {"type": "string"}


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"].rpartition("/")[2]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references(value) for value in node.values()))
    return set().union(*(references(item) for item in node)) if isinstance(node, list) else set()


def test_every_kind_has_a_schema_and_every_reference_leads_somewhere() -> None:
    waiting = [schema_of(kind) for kind in all_kinds()]
    seen: set[str] = set()
    while waiting:
        for name in references(waiting.pop()) - seen:
            seen.add(name)
            waiting.append(definition(name))
    assert len(seen) > 400


@pytest.mark.parametrize("kind", all_kinds(), ids=str)
def test_types_and_schemas_agree(kind: GroupVersionKind) -> None:
    assert set(wire_names(class_of(kind)).values()) == schema_of(kind)["properties"].keys()


def test_resources() -> None:
    resources = {entry["name"]: entry for entry in resources_of(GroupVersion("apps", "v1"))}
    assert resources["deployments"]["shortNames"] == ["deploy"]
    assert resources["deployments/scale"]["kind"] == "Scale"
    assert "patch" in resources["deployments/status"]["verbs"]


def test_what_is_not_there() -> None:
    with pytest.raises(LookupError, match=r"no definition com.example.Thing"):
        definition("com.example.Thing")
    with pytest.raises(LookupError, match=r"apps/v1 of Kubernetes .* has no kind Thing"):
        schema_of(GroupVersionKind("apps", "v1", "Thing"))
    with pytest.raises(LookupError, match=r"example.com/v1 is not"):
        resources_of(GroupVersion("example.com", "v1"))


def test_a_node_without_a_reference_is_itself() -> None:
    node = {"type": "string"}
    assert resolve(node) is node


def test_the_kinds_are_of_the_release_that_the_engine_is_built_from() -> None:
    """Otherwise the comparisons with the engine compare two versions."""
    minor = index.KUBERNETES.removeprefix("v").rpartition(".")[0]
    required = (ROOT / "tools" / "engine" / "kubernetes" / minor / "go.mod").read_text()
    assert f"\tk8s.io/kubernetes {index.KUBERNETES}\n" in required
