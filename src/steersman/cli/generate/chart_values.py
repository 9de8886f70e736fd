"""The values of a chart: ``values.yaml`` with their defaults, and ``values.schema.json``, which refuses wrong ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
import yaml

from steersman.golang import YamlDumper
from steersman.objects import Tree

_TEXT: Tree = {"type": "string"}
_MAP: Tree = {"type": "object"}
_TEXTS: Tree = {"type": "object", "additionalProperties": _TEXT}
_OBJECTS: Tree = {"type": "array", "items": _MAP}
_YES_NO: Tree = {"type": "boolean"}
_PORT: Tree = {"type": "integer", "minimum": 1, "maximum": 65535}


class ChartValue(msgspec.Struct, frozen=True):
    """One value of a chart."""

    comment: str
    schema: Tree
    default: Any
    #: Whether null is refused: helm would fill in 0, or leave out what limits.
    required: bool = False


#: Values by name; a mapping is a value with values inside.
Values: TypeAlias = Mapping[str, "ChartValue | Values"]


def chart_values(
    *, image: str, replicas: int, resources: Tree, security: Tree, metrics_from: list[Tree], ports: list[int]
) -> Values:
    """All values; their defaults are those of the manifests."""
    repository, tag, digest = _image_parts(image)
    return {
        "image": {
            "repository": ChartValue(
                "The image without tag or digest.", {**_TEXT, "minLength": 1}, repository, required=True
            ),
            "tag": ChartValue("The version of the operator if empty; ignored if there is a digest.", _TEXT, tag),
            "digest": ChartValue(
                "Pins the image: sha256:...", {**_TEXT, "pattern": "^(sha256:[0-9a-f]{64})?$"}, digest
            ),
            "pullPolicy": ChartValue("", {"enum": ["", "Always", "IfNotPresent", "Never"]}, ""),
        },
        "imagePullSecrets": ChartValue("Such as [{name: registry}].", _OBJECTS, []),
        "replicas": ChartValue(
            "With leader election, one leads and the others are on standby; without it, all of them act.",
            {"type": "integer", "minimum": 0, "maximum": 100},
            replicas,
            required=True,
        ),
        "resources": ChartValue("", _MAP, resources),
        "args": ChartValue(
            "Further arguments of `steersman run`, such as [--log-level=debug].", {"type": "array", "items": _TEXT}, []
        ),
        "env": ChartValue("Environment variables: [{name: NAME, value: TEXT}].", _OBJECTS, []),
        "volumes": ChartValue("", _OBJECTS, []),
        "volumeMounts": ChartValue("", _OBJECTS, []),
        "podAnnotations": ChartValue("", _TEXTS, {}),
        "podLabels": ChartValue("Such as azure.workload.identity/use.", _TEXTS, {}),
        "podSecurityContext": ChartValue("On OpenShift, set fsGroup to null: it chooses the group.", _MAP, security),
        "nodeSelector": ChartValue("", _TEXTS, {}),
        "tolerations": ChartValue("", _OBJECTS, []),
        "affinity": ChartValue("", _MAP, {}),
        "topologySpreadConstraints": ChartValue("", _OBJECTS, []),
        "priorityClassName": ChartValue("", _TEXT, ""),
        "podDisruptionBudget": {
            "enabled": ChartValue("Only with more than one replica.", _YES_NO, True),
            "maxUnavailable": ChartValue(
                "A number, or a percentage such as 50%.",
                {"type": ["integer", "string"], "minimum": 1, "pattern": "^[1-9][0-9]?%$"},
                1,
                required=True,
            ),
        },
        "serviceAccount": {"annotations": ChartValue("Such as the role of a cloud.", _TEXTS, {})},
        "networkPolicy": {
            "enabled": ChartValue("", _YES_NO, True),
            "metricsFrom": ChartValue(
                "Who may read metrics: peers of a NetworkPolicy; no client if empty.", _OBJECTS, metrics_from
            ),
            "apiServerPorts": ChartValue(
                "Where the API server itself listens; keep the port of your cluster.",
                {"type": "array", "items": _PORT, "minItems": 1},
                ports,
                required=True,
            ),
            "egress": ChartValue("Further rules, for an operator that calls other services.", _OBJECTS, []),
        },
        "crds": {
            "check": ChartValue("Refuse a release that needs newer definitions than the server has.", _YES_NO, True),
            "guard": ChartValue(
                "Let the server refuse a release that cannot read the stored versions of objects.", _YES_NO, True
            ),
        },
    }


def _image_parts(image: str) -> tuple[str, str, str]:
    name, _, digest = image.partition("@")
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        repository, tag = name, "" if digest else "latest"
    return repository, tag, digest


def values_yaml(values: Values, indent: str = "") -> str:
    """The defaults, each below its comment."""
    lines: list[str] = []
    for name, value in values.items():
        if not isinstance(value, ChartValue):
            lines += [f"{indent}{name}:", values_yaml(value, f"{indent}  ").rstrip("\n")]
            continue
        lines += [f"{indent}# {value.comment}"] if value.comment else []
        lines.append(f"{indent}{name}: {_flow(value.default)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    dumped: str = yaml.dump(value, Dumper=YamlDumper, default_flow_style=True, sort_keys=False, width=1_000_000)
    return dumped.removesuffix("...\n").rstrip("\n")


def values_schema(values: Values) -> str:
    """The JSON schema, which refuses unknown names too."""
    # helm adds `global` if the chart is part of another one.
    schema = _schema({**values, "global": ChartValue("", _MAP, {})})
    return json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **schema}, indent=2) + "\n"


def _schema(values: Values) -> Tree:
    properties = {
        name: {**value.schema, **({"description": value.comment} if value.comment else {})}
        if isinstance(value, ChartValue)
        else _schema(value)
        for name, value in values.items()
    }
    required = [name for name, value in values.items() if not isinstance(value, ChartValue) or value.required]
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}
