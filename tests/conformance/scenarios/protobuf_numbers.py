"""Numbers that JSON has no words for, in the schema of a CRD that is sent as protobuf."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from conformance.bodies import Tree, named
from conformance.protobuf_encoding import PROTOBUF, Protobuf
from conformance.scenario import Call, delete, get, post, scenario

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "{free}.example.com"
NAME = f"odds.{GROUP}"


def definition(schema: Tree, **fields: Any) -> Tree:
    """A CRD with this schema of one field."""
    version = {"name": "v1", "served": True, "storage": True}
    whole = {"openAPIV3Schema": {"type": "object", "properties": {"a": schema}}}
    names = {"kind": "Odd", "plural": "odds", "singular": "odd", "listKind": "OddList"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version | {"schema": whole}]}
    return named("apiextensions.k8s.io/v1", "CustomResourceDefinition", NAME, spec=spec | fields)


def sent(method: Any, path: str, tree: Tree, **options: Any) -> Call:
    """A request with an object as protobuf."""
    return method(path, Protobuf(tree), content=PROTOBUF, **options)


def refusal(tree: Tree) -> Any:
    """The schema that was stored, or what a refusal says."""
    return tree if tree["kind"] == "Status" else tree["spec"]["versions"][0]["schema"]


NUMBER = {"type": "number"}
SCHEMAS = [
    *(NUMBER | {field: value} for field in ("maximum", "minimum", "multipleOf") for value in (nan, inf, -inf)),
    {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": NUMBER | {"maximum": -inf}}}}},
    NUMBER | {"not": {"maximum": nan}},
    NUMBER | {"allOf": [{"maximum": nan}]},
]

YAML = b"""apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: odds.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Odd, plural: odds}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: number, maximum: %s}}}}}
"""

SCENARIOS = [
    scenario(
        "no-numbers-of-json",
        "Negotiation, Status errors",
        [sent(post, CRDS, definition(schema), focus=refusal) for schema in SCHEMAS],
        [sent(post, CRDS, definition(NUMBER | {"maximum": value}), dryRun="All", focus=refusal) for value in (nan, inf, 1e300, -0.0)],
        [post(CRDS, YAML % value, content="application/yaml", focus=refusal) for value in (b".nan", b".inf", b"-.inf", b"NaN", b"1e400")],
        sent(post, CRDS, definition(NUMBER | {"maximum": 1e300, "minimum": -0.0, "multipleOf": 5e-324}), focus=refusal),
        get(f"{CRDS}/{NAME}", focus=refusal),
        delete(f"{CRDS}/{NAME}", focus=lambda tree: tree["status"] if tree["kind"] == "Status" else "deleted"),
    ),
]  # fmt: skip
