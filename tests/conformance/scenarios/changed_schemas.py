"""Stored objects that a later schema of their definition forbids: read, applied, scaled and printed."""

from __future__ import annotations

from typing import Any

from conformance.boats import (
    ANYTHING,
    BOAT,
    BOATS,
    CRD,
    NUMBER,
    STRING,
    TABLE,
    Tree,
    boat,
    installed,
    obj,
    version,
)
from conformance.scenario import Close, Step, Until, get, patch, post, scenario

ROWS = "Kinds, Apply, Status errors"
BOOLEAN: Tree = {"type": "boolean"}
ITEM: Tree = obj(name=STRING, v=NUMBER) | {"required": ["name"]}
MAP_LIST: Tree = {
    "type": "array",
    "items": ITEM,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
SET: Tree = {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}

SCALE = f"{BOAT}/scale"
SCALED: Tree = {
    "scale": {
        "specReplicasPath": ".spec.x.n",
        "statusReplicasPath": ".status.x.n",
        "labelSelectorPath": ".status.x.selector",
    }
}

#: Schemas of ``spec.x``, and what is applied there.
SCHEMAS: dict[str, tuple[Tree, Any]] = {
    "map": (obj(q=STRING), {"q": "w"}),
    "atomic-map": (obj(q=STRING) | {"x-kubernetes-map-type": "atomic"}, {"q": "w"}),
    "integer": (NUMBER, 7),
    "string": (STRING, "s"),
    "boolean": (BOOLEAN, True),
    "map-list": (MAP_LIST, [{"name": "n", "v": 9}]),
    "set": (SET, ["a"]),
}
#: Values of ``spec.x`` from before.
VALUES: dict[str, Any] = {
    "text": "hi",
    "number": 5,
    "texts": ["a", "a"],
    "maps": [{"name": "n", "v": 1}, {"name": "n", "v": 2}],
    "map": {"q": 5, "r": {"s": 1}},
    "mixed": [1, "a", None, {"name": 5}],
    "keyless": [{"v": 1}],
}


def changed(schema: Tree, **more: Any) -> list[Step]:
    """Another schema for the spec, once it counts: it comes with a column."""
    column = {"name": "Date", "type": "date", "jsonPath": ".spec.x"}
    body = version("v1", obj(spec=schema, status=ANYTHING), additionalPrinterColumns=[column], **more)
    return [
        patch(CRD, {"spec": {"versions": [body]}}, focus=lambda tree: tree["kind"]),
        Until(get(BOATS, accept=TABLE), 200, holds=lambda tree: tree["columnDefinitions"][1]["name"] == "Date"),
    ]


def stored(spec: Any, **more: Any) -> list[Step]:
    """An object of a definition that allows everything."""
    anything = version("v1", obj(spec=ANYTHING, status=ANYTHING))
    return [*installed(anything), Close("crd"), post(BOATS, boat("a", "v1", spec=spec, **more))]


SCENARIOS = [
    *[
        scenario(
            f"{name}-on-{value_name}",
            ROWS,
            *stored({"x": value, "keep": 1}),
            *changed(obj(x=schema)),
            get(BOAT),
            patch(BOAT, boat(spec={"x": given}), "apply", fieldManager="m"),
            patch(BOAT, boat(spec={"x": 1.5}), "apply", fieldManager="m"),
            patch(BOAT, {"metadata": {"labels": {"a": "b"}}}),
            patch(BOAT, boat(spec={"x": given}), "apply", fieldManager="m"),
            patch(BOAT, boat(spec={"x": given}), "apply", fieldManager="m", force="true"),
            patch(BOAT, {"spec": {"x": given}}),
            patch(BOAT, boat(spec={"x": given}), "apply", fieldManager="m", force="true"),
            get(BOAT),
        )
        for name, (schema, given) in SCHEMAS.items()
        for value_name, value in VALUES.items()
    ],
    *[
        scenario(
            f"scale-of-{name}",
            ROWS,
            *stored({"x": value}, status={"x": value}),
            *changed(obj(x=schema), subresources=SCALED),
            get(SCALE),
            patch(SCALE, {"spec": {"replicas": 4}}),
            get(BOAT),
            get(SCALE),
            get(BOATS, accept=TABLE, focus=lambda tree: [row["cells"] for row in tree["rows"]]),
        )
        for name, value, schema in [
            ("text", "t", STRING),
            ("list", [1], {"type": "array", "items": NUMBER}),
            ("text-inside", {"n": "3"}, obj(n=STRING)),
            ("fraction-inside", {"n": 3.5}, obj(n={"type": "number"})),
            ("large-number-inside", {"n": 2**40}, obj(n=NUMBER)),
            ("nothing", None, obj(n=NUMBER)),
            ("selector-of-a-map", {"n": 1, "selector": {"a": "b"}}, obj(n=NUMBER)),
            ("undeclared", {"n": 1}, obj(m=NUMBER)),
            ("undeclared-map", {"n": 1}, STRING),
        ]
    ],
]
