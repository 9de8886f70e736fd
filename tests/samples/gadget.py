"""A custom kind whose definition on the server knows far more than our types, of which there are three generations."""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import Annotated, Any

from samples.changes import Anew, Change, Items, Set
from samples.random_values import Tree, maybe, quantity, some, strings, text, word
from steersman import Quantity, Resource, Spec, Status, Struct
from steersman.markers import ListMap, PreserveUnknownFields
from steersman.objects import IntOrString

GROUP = "gadgets.test.steersman.dev"
NAME = f"gadgets.{GROUP}"

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer", "format": "int64"}
_AMOUNT = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _object(**properties: Any) -> Tree:
    return {"type": "object", "properties": properties}


def _list(items: Tree, **options: Any) -> Tree:
    return {"type": "array", "items": items} | {
        f"x-kubernetes-list-{name.replace('_', '-')}": value for name, value in options.items()
    }


_KNOB = _object(name=_TEXT, value=_AMOUNT, unit=_TEXT, range=_object(low=_NUMBER, high=_NUMBER), notes=_list(_TEXT))
_PANEL = _object(
    id=_TEXT,
    side={"type": "string", "default": "front"},
    color=_TEXT,
    knobs=_list(_KNOB | {"required": ["name"]}, type="map", map_keys=["name"]),
    weight={"type": "number"},
)
_POINT = _object(x={"type": "number"}, y={"type": "number"}, label={"type": "string", "nullable": True})
_SPEC = _object(
    title=_TEXT,
    size={"type": "integer", "default": 3},
    limits={"type": "object", "additionalProperties": _AMOUNT},
    amounts=_list(_AMOUNT),
    port=_AMOUNT,
    panels=_list(_PANEL | {"required": ["id", "side"]}, type="map", map_keys=["id", "side"]),
    steps=_list(_object(run=_TEXT, args=_list(_TEXT), retry=_object(times=_NUMBER, pause=_TEXT)), type="atomic"),
    grid=_list(_list(_POINT)),
    corners={"type": "object", "additionalProperties": _POINT},
    paths={"type": "object", "additionalProperties": _list(_POINT)},
    tags=_list(_TEXT, type="set"),
    settings=_OPEN,
    template=_OPEN | {"x-kubernetes-embedded-resource": True},
    mixed=_object(known=_TEXT) | {"x-kubernetes-preserve-unknown-fields": True},
    since={"type": "string", "format": "date-time"},
    nothing={"type": "string", "nullable": True},
    big=_NUMBER,
    ratio={"type": "number"},
    on={"type": "boolean"},
)

DEFINITION: Tree = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NAME},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _object(spec=_SPEC, status=_OPEN)},
                "subresources": {"status": {}},
            }
        ],
    },
}


# --- three generations of programs -----------------------------------------------------------------------------------


class Knob(Struct):
    name: str
    value: Quantity | None = None


class Panel(Struct):
    id: str
    side: str = "front"
    knobs: Annotated[list[Knob], ListMap("name")] | None = None


class Point(Struct):
    x: float | None = None


class Step(Struct):
    run: str | None = None


class Mixed(Struct):
    known: str | None = None


class FirstSpec(Spec):
    """Lists and maps of structs, each of which knows a part."""

    size: int = 3
    limits: dict[str, Quantity] | None = None
    amounts: list[Quantity] | None = None
    port: IntOrString | None = None
    panels: Annotated[list[Panel], ListMap("id", "side")] | None = None
    steps: list[Step] | None = None
    grid: list[list[Point]] | None = None
    corners: dict[str, Point] | None = None
    paths: dict[str, list[Point]] | None = None
    tags: list[str] | None = None
    settings: Annotated[dict[str, Any], PreserveUnknownFields()] | None = None
    mixed: Mixed | None = None


class GadgetStatus(Status):
    ready: bool | None = None


class FirstGadget(Resource[FirstSpec, GadgetStatus], group=GROUP, version="v1", kind="Gadget", plural="gadgets"):
    """A Gadget as most of a program's types know it."""


class SecondSpec(Spec):
    """Fields with defaults of our own that the server does not have; two scalars."""

    title: str = "untitled"
    ratio: float = 1.5
    on: bool = False
    big: int | None = None


class SecondGadget(Resource[SecondSpec, None], group=GROUP, version="v1", kind="Gadget", plural="gadgets"):
    """A Gadget as a program with other ideas knows it."""


class BareKnob(Struct):
    name: str


class BarePanel(Struct):
    id: str
    knobs: list[BareKnob] | None = None


class ThirdSpec(Spec):
    """Lists whose keys the program does not know of."""

    panels: list[BarePanel] | None = None
    template: Any = None


class ThirdGadget(Resource[ThirdSpec, None], group=GROUP, version="v1", kind="Gadget", plural="gadgets"):
    """A Gadget as an old program knows it."""


GENERATIONS: list[type[Any]] = [FirstGadget, SecondGadget, ThirdGadget]


def _amount(rng: Random) -> int | str:
    return rng.choice([rng.randrange(1, 100), quantity(rng)])


def _point(rng: Random) -> Tree:
    return {"x": rng.choice([1, 2.5, -0.125, 1e21]), "y": rng.random()} | maybe(
        rng, label=rng.choice([None, text(rng)])
    )


def _knob(rng: Random) -> Tree:
    return {"name": word(rng), "value": _amount(rng)} | maybe(
        rng, unit="mm", range={"low": -(2**63), "high": 2**63 - 1}, notes=lambda rng: some(rng, text)
    )


def _panel(rng: Random) -> Tree:
    return {"id": word(rng), "knobs": some(rng, _knob), "color": text(rng)} | maybe(
        rng, side="back", weight=rng.random()
    )


def _step(rng: Random) -> Tree:
    return {"run": word(rng), "args": some(rng, text)} | maybe(rng, retry={"times": 3, "pause": "5s"})


def gadget(rng: Random) -> Tree:
    """A random Gadget."""
    free = {"a": [1, 2.5, None, {"b": text(rng)}], "empty": {}, "none": [], "big": 2**53 + 1, "yes": True, "no": None}
    embedded = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": strings(rng)},
        "spec": {"x": text(rng)},
    }
    spec = maybe(
        rng,
        title=text,
        size=rng.randrange(10),
        limits={"cpu": rng.randrange(1, 9), "memory": quantity(rng), "disk": _amount(rng)},
        amounts=lambda rng: some(rng, _amount, 1, 4),
        port=rng.choice([80, "http"]),
        steps=lambda rng: some(rng, _step, 1, 4),
        grid=lambda rng: [some(rng, _point) for _ in range(rng.randint(1, 3))],
        corners=lambda rng: {word(rng): _point(rng) for _ in range(3)},
        paths=lambda rng: {word(rng): some(rng, _point, 1) for _ in range(2)},
        tags=lambda rng: sorted({word(rng) for _ in range(3)}),
        settings=free,
        template=embedded,
        mixed={"known": "a", "unknown": free, "more": [text(rng)]},
        since=f"2026-01-0{rng.randint(1, 9)}T00:00:00.{rng.randrange(1000):03}+01:00",
        nothing=None,
        big=rng.choice([2**63 - 1, -(2**63), 2**53 + 1]),
        ratio=rng.choice([1, 1.5, 1e-9, 1e21]),
        on=rng.random() < 0.5,
    )
    return {"spec": spec | {"panels": some(rng, _panel, 0, 4)}}


def _number(rng: Random) -> str:
    return str(rng.randint(1, 999))


CHANGES: list[Change] = [
    # Never what an absent field reads as: setting that changes nothing, so that an update does not add it.
    Set("spec.size", lambda rng: rng.randint(4, 9)),
    Set("spec.title", text),
    Set("spec.ratio", lambda rng: rng.random()),
    Set("spec.on", lambda rng: True),
    Set("spec.big", lambda rng: rng.randrange(2**62)),
    Set("spec.limits.memory", _number, Quantity),
    Set("spec.amounts.*", _number, Quantity),
    Set("spec.panels.*.knobs.*.value", _number, Quantity),
    Set("spec.panels.*.id", word, is_key=True),
    Set("spec.port", lambda rng: rng.choice([1, "1", "web"])),
    Set("spec.steps.*.run", word),
    Set("spec.grid.*.*.x", lambda rng: rng.random()),
    Set("spec.mixed.known", word),
    Set("spec.settings.new", lambda rng: {"a": [text(rng)]}),
    Items("spec.panels", "id"),
    Items("spec.panels.*.knobs", "name"),
    Items("spec.steps"),
    Items("spec.grid", ways=("reverse", "remove", "insert")),
    Items("spec.grid.*"),
    Items("spec.amounts", ways=("reverse", "shuffle", "remove")),
    Items("spec.tags", ways=("reverse", "remove")),
    Anew("spec.panels.*"),
    Anew("spec.panels"),
    Anew("spec.steps"),
    Anew("spec.grid"),
    Anew("spec.corners"),
    Anew("spec.paths"),
    Anew("spec.mixed"),
    Anew("spec"),
]
