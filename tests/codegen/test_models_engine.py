"""CRD -> models -> CRD, judged by the engine; and the same models from a file and from a live server."""

from __future__ import annotations

import asyncio
import copy
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.codegen import Target, read_crds, read_openapi, write_models
from steersman.objects import GroupVersion
from steersman.schemas import crd_for

GADGET = yaml.safe_load((Path(__file__).parents[1] / "samples" / "gadget.yaml").read_text(encoding="utf-8"))


def in_group(group: str) -> dict[str, Any]:
    """The gadget as a CRD of another group."""
    crd = copy.deepcopy(GADGET)
    crd["metadata"]["name"] = f"gadgets.{group}"
    crd["spec"]["group"] = group
    return crd


@pytest.fixture
def own_crd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the owner's models of a CRD say the CRD is."""

    def own_crd(crd: dict[str, Any]) -> dict[str, Any]:
        monkeypatch.syspath_prepend(str(tmp_path))
        classes = []
        for name, text in write_models(read_crds([crd], as_owner=True), Target(as_owner=True)).items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
            monkeypatch.delitem(sys.modules, name, raising=False)
            classes.append(__import__(name).Gadget)
        return crd_for(*classes)

    return own_crd


def filled(schema: dict[str, Any], value: Any) -> Any:
    """A default as the server completes it: with the defaults inside it."""
    if not isinstance(value, dict):
        return value
    inside = {name: node["default"] for name, node in schema.get("properties", {}).items() if "default" in node}
    return inside | value


def meaning(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without what means nothing to a server: descriptions, default formats, the order of names."""
    plain = {name: value for name, value in schema.items() if name not in {"description", "properties", "items"}}
    if (plain.get("type"), plain.get("format")) in {("integer", "int64"), ("number", "double")}:
        del plain["format"]
    if "default" in plain:
        plain["default"] = filled(schema, plain["default"])
    properties = {name: meaning(node) for name, node in schema.get("properties", {}).items()}
    # With a default, a field is never absent when its presence is checked.
    required = {name for name in schema.get("required", ()) if "default" not in properties.get(name, {})}
    if properties:
        plain["properties"] = properties
    plain.pop("required", None)
    if required:
        plain["required"] = sorted(required)
    if "items" in schema:
        plain["items"] = meaning(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        plain["additionalProperties"] = meaning(schema["additionalProperties"])
    return plain


def comparable(version: dict[str, Any]) -> dict[str, Any]:
    schema = meaning(version["schema"]["openAPIV3Schema"])
    for name in ("apiVersion", "kind", "metadata"):
        schema["properties"].pop(name, None)
    return version | {"schema": schema}


def test_an_owners_models_give_the_crd_back(own_crd: Any) -> None:
    """Every rule, default, column and list type survives the way into Python and out again."""
    again = own_crd(GADGET)
    assert again["spec"]["names"] == GADGET["spec"]["names"]
    for before, after in zip(GADGET["spec"]["versions"], again["spec"]["versions"], strict=True):
        assert comparable(after) == comparable(before)


async def test_the_engine_accepts_both_and_they_judge_alike(own_crd: Any, server: Any, crd_group: str) -> None:
    """The same objects are taken and refused, for the same fields, by the CRD and by the one from its models."""
    first, second = in_group(f"a.{crd_group}"), own_crd(in_group(f"b.{crd_group}"))
    await server.install(first)
    await server.install(second)
    good = {"image": "a", "list": ["x"], "ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]}
    specs = [
        good,
        good | {"image": "UPPER"},
        good | {"replicas": 51},
        good | {"replicas": 11},
        good | {"mode": "other"},
        good | {"list": []},
        good | {"list": ["x", "x"]},
        good | {"ratio": 0},
        good | {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]},
        good | {"cpu": "abc"},
        good | {"str": None},
        {"image": "a"},
    ]
    for spec in specs:
        verdicts = []
        for crd in (first, second):
            tree = {
                "apiVersion": f"{crd['spec']['group']}/v1",
                "kind": "Gadget",
                "metadata": {"name": "g"},
                "spec": spec,
            }
            verdicts.append({cause["field"] for cause in await server.verdict(crd, tree)})
        assert verdicts[0] == verdicts[1], spec
        assert bool(verdicts[0]) == (spec not in (good, good | {"str": None})), (spec, verdicts)


async def test_a_server_and_a_file_give_the_same_models(server: Any, crd_group: str) -> None:
    """Where a schema was read does not show in the text."""
    crd = in_group(crd_group)
    await server.install(crd)
    group_version = GroupVersion(crd_group, "v1")
    async with asyncio.timeout(30):
        while True:  # OpenAPI is published some time after the kind is served
            code, document = await server.request("GET", f"/openapi/v3/apis/{group_version}")
            if code == 200 and any(name.endswith("v1.Gadget") for name in document["components"]["schemas"]):
                break
            await asyncio.sleep(0.05)
    _, resources = await server.request("GET", f"/apis/{group_version}")
    (live,) = write_models(read_openapi([document], discovery=[resources], only=[group_version]), Target()).values()
    crd["spec"]["versions"] = crd["spec"]["versions"][:1]
    (filed,) = write_models(read_crds([crd]), Target()).values()
    assert live.splitlines() == filed.splitlines()
