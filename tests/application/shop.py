"""Applications for tests, written as models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from steersman.application import Application, application_objects
from steersman.application.model import Place, ServiceDefinition
from steersman.objects import tree_of

FOLDER = Path("/srv/shop")


def service(name: str, line: int = 1, **fields: Any) -> ServiceDefinition:
    """A service: a process unless it has an image or a build."""
    if "image" not in fields and "build" not in fields:
        fields.setdefault("command", (f"./{name}",))
    return ServiceDefinition(name=name, place=Place(FOLDER / "steersman.yaml", line, 3), **fields)


def application(*services: ServiceDefinition, **fields: Any) -> Application:
    """An application of services."""
    return Application(name="shop", folder=FOLDER, services={each.name: each for each in services}, **fields)


def trees(app: Application) -> dict[str, dict[str, Any]]:
    """The objects of an application, by ``Kind/name``."""
    found = [tree_of(each) for each in application_objects(app, project="shop")]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


def program(app: Application, name: str) -> dict[str, Any]:
    """The spec of the program of a process."""
    return trees(app)[f"ExecutableReplicaSet/{name}"]["spec"]["template"]["spec"]


def environment(spec: dict[str, Any]) -> dict[str, str]:
    """The variables of a spec."""
    return {each["name"]: each["value"] for each in spec.get("env", ())}


def produced(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """What the annotation of a workload says that it serves."""
    annotations = (tree["spec"].get("template") or tree["metadata"]).get("annotations", {})
    return msgspec.json.decode(annotations.get("service-producer", "[]"))
