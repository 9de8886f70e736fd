"""Conditions in generated models: our own Condition stands for theirs only where nothing changes by it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml

from steersman.codegen import Target, read_crds, write_models
from steersman.markers import ListMap
from steersman.objects import Condition
from steersman.objects.hints import declared_hints
from steersman.schemas import schema_for

GADGET = yaml.safe_load((Path(__file__).parents[1] / "samples" / "gadget.yaml").read_text(encoding="utf-8"))
STATUS = GADGET["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
#: A condition as Kubernetes writes it, without the limits that ours has.
CONDITION: dict[str, Any] = STATUS["conditions"]["items"]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The generated models of a CRD whose status has conditions of this schema."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def models(item: dict[str, Any], *, own: bool = False) -> Any:
        keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
        listed = {"type": "array", "items": item} | keyed
        status = {"type": "object", "properties": {"conditions": listed}}
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"kind": "Thing", "plural": "things"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": status}}},
                    }
                ],
            },
        }
        ((name, text),) = write_models(read_crds([crd], as_owner=own), Target(as_owner=own)).items()
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return models


def keyed_list(item: Any) -> Any:
    return Annotated[list[item], ListMap("type")] | None


def test_conditions_as_kubernetes_writes_them(models: Any) -> None:
    assert declared_hints(models(CONDITION).ThingStatus)["conditions"] == keyed_list(Condition)


@pytest.mark.parametrize(
    "other",
    [
        {"required": ["type", "status", "reason", "lastTransitionTime"]},
        {"required": ["type", "status", "message", "lastTransitionTime"]},
        {"properties": CONDITION["properties"] | {"status": {"type": "string", "enum": ["Yes", "No"]}}},
        {"properties": CONDITION["properties"] | {"severity": {"type": "string"}}},
    ],
    ids=["message is optional", "reason is optional", "other states", "a field more"],
)
def test_conditions_of_another_form_have_a_class_of_their_own(models: Any, other: dict[str, Any]) -> None:
    """Condition would send a reason and a message that such a CRD does not ask for, or could not say what it asks for."""
    module = models(CONDITION | other)
    assert declared_hints(module.ThingStatus)["conditions"] == keyed_list(module.ThingStatusCondition)


def test_owners_get_their_conditions_back_to_the_letter(models: Any) -> None:
    """The CRD is written from these classes again, and users' objects must be judged as before."""
    module = models(CONDITION, own=True)
    assert declared_hints(module.ThingStatus)["conditions"] == keyed_list(module.ThingStatusCondition)
    again = schema_for(module.ThingStatus)["properties"]["conditions"]["items"]
    assert set(again["required"]) == set(CONDITION["required"])
    assert again["properties"] == CONDITION["properties"]


def test_owners_who_have_our_condition_keep_it(models: Any) -> None:
    module = models(schema_for(Condition), own=True)
    assert declared_hints(module.ThingStatus)["conditions"] == keyed_list(Condition)
