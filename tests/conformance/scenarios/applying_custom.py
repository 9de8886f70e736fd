"""Server-side apply of custom resources: their kinds of lists and maps, several versions, and definitions that change."""

from __future__ import annotations

from typing import Any

from conformance.boats import BOAT, GROUP, NEWER, NUMBER, STRING, boat, changed, installed, obj, version
from conformance.scenario import Call, Until, frames, get, patch, post, scenario
from conformance.scenarios.applying import apply, forced

NEW = f"{NEWER}/a"
RULES = "Apply, Kinds"


def a_list(items: Any, kind: str = "", *keys: str) -> dict[str, Any]:
    """The schema of a list of some type."""
    told = {"x-kubernetes-list-type": kind} if kind else {}
    told |= {"x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": items, **told}


def needed(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    """A schema with required fields."""
    return {**schema, "required": list(names)}


def spec(at: str = BOAT, manager: str = "ada", *, by: str = "v1", force: bool = False, **fields: Any) -> Call:
    """An apply of a spec."""
    return (forced if force else apply)(at, boat("a", by, spec=fields), manager)


SAIL = needed(obj(name=STRING, area=NUMBER, side={"type": "string", "default": "port"}), "name")
ANY = {"x-kubernetes-preserve-unknown-fields": True}
OF_ALL_TYPES = obj(
    spec=obj(
        atomic=a_list(STRING),
        strings=a_list(STRING, "set"),
        numbers=a_list(NUMBER, "set"),
        sails=a_list(SAIL, "map", "name", "side"),
        ropes=a_list(needed(obj(number=NUMBER, sorts=a_list(STRING, "set"), color=STRING), "number"), "map", "number"),
        whole={**obj(a=STRING, b=STRING), "x-kubernetes-map-type": "atomic"},
        parts=obj(a=STRING, b=obj(c=NUMBER)),
        words={"type": "object", "additionalProperties": STRING},
        free={"type": "object", **ANY},
        value={"x-kubernetes-int-or-string": True},
        maybe={"type": "string", "nullable": True},
        given={"type": "string", "default": "x"},
        size={"type": "number"},
        object={"type": "object", "x-kubernetes-embedded-resource": True, **ANY},
    ),
    status=obj(ready=NUMBER, conditions=a_list(needed(obj(type=STRING, status=STRING), "type"), "map", "type")),
)
ALL = installed(version(schema=OF_ALL_TYPES, subresources={"status": {}}))


def of(schema: dict[str, Any], name: str = "v1", **options: Any) -> dict[str, Any]:
    """A version whose spec has this schema."""
    return version(name, obj(spec=schema), **options)


def three(*fields: dict[str, Any], force: bool = False) -> list[Call]:
    """The same place, applied by ada, ben and ada again, then left by both."""
    first, second, third = fields
    return [
        spec(**first), spec(manager="ben", **second), spec(manager="ben", force=True, **second), get(BOAT),
        spec(**third), spec(force=True, **third), get(BOAT), spec(manager="ben", force=force), spec(), get(BOAT),
    ]  # fmt: skip


SAME = installed(of(obj(a=STRING, b=STRING)), of(obj(a=STRING, b=STRING), "v2", storage=False))
TWO = installed(of(obj(a=STRING, b=STRING)), of(obj(a=STRING, c=STRING), "v2", storage=False))

SCENARIOS = [
    *(
        scenario(f"merged-{name}", RULES, ALL, three(*fields))
        for name, fields in {
            "atomic": ({"atomic": ["a"]}, {"atomic": ["a", "b"]}, {"atomic": []}),
            "strings": ({"strings": ["b", "a"]}, {"strings": ["c", "b"]}, {"strings": ["d"]}),
            "numbers": ({"numbers": [1, 2]}, {"numbers": [3, 2.0]}, {"numbers": [-1]}),
            "sails": (
                {"sails": [{"name": "main", "area": 1}, {"name": "jib", "side": "starboard"}]},
                {"sails": [{"name": "main", "area": 2}, {"name": "main", "side": "starboard"}]},
                {"sails": [{"name": "jib", "side": "starboard", "area": 3}]},
            ),
            "ropes": (
                {"ropes": [{"number": 1, "sorts": ["a"], "color": "red"}]},
                {"ropes": [{"number": 1, "sorts": ["b"]}, {"number": 2}]},
                {"ropes": [{"number": 2, "color": "blue"}]},
            ),
            "whole": ({"whole": {"a": "1"}}, {"whole": {"b": "1"}}, {"whole": {}}),
            "parts": ({"parts": {"a": "1", "b": {"c": 1}}}, {"parts": {"b": {"c": 2}}}, {"parts": {"b": {}}}),
            "words": ({"words": {"a": "1"}}, {"words": {"a": "2", "b": "1"}}, {"words": {"c": "1"}}),
            "free": ({"free": {"a": {"b": 1}}}, {"free": {"a": {"b": 2, "c": [1]}}}, {"free": {"a": 7}}),
            "value": ({"value": 1}, {"value": "1"}, {"value": "50%"}),
            "maybe": ({"maybe": None}, {"maybe": "x"}, {"maybe": None}),
            "given": ({"given": "x"}, {"given": "y"}, {}),
            "size": ({"size": 1}, {"size": 1.0}, {"size": 1.5}),
            "object": (
                {"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"a": "b"}}}},
                {"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"c": "d"}}, "x": 1}},
                {"object": {"apiVersion": "v1", "kind": "Pod"}},
            ),
        }.items()
    ),
    scenario(
        "mistakes", "Apply, Status errors",
        ALL,
        *(
            spec(**{name: value})
            for name, value in (
                ("strings", ["a", "a"]), ("numbers", [1, 1.0]), ("numbers", ["1"]), ("strings", [None]), ("strings", [{}]),
                ("sails", [{"area": 1}]), ("sails", [{"side": "port"}]), ("sails", [{"name": "a"}, {"name": "a", "side": "port"}]),
                ("ropes", [{}]), ("ropes", [{"number": "1"}]), ("ropes", [{"number": None}]), ("sails", [{"name": None}]), ("sails", [{}]), ("whole", "x"), ("whole", {"c": "1"}), ("parts", {"c": 1}),
                ("words", {"a": 1}), ("free", "x"), ("value", {}), ("value", [1]), ("maybe", 7), ("size", "x"), ("size", True),
                ("object", {"kind": "Pod"}), ("object", {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}),
            )
        ),
        get(BOAT),
    ),
    scenario(
        "status", "Apply, Subresources",
        ALL, spec(atomic=["a"]),
        apply(f"{BOAT}/status", boat(status={"ready": 1, "conditions": [{"type": "A", "status": "True"}]})),
        apply(f"{BOAT}/status", boat(status={"conditions": [{"type": "B", "status": "True"}]}), "ben"),
        apply(f"{BOAT}/status", boat(status={"conditions": [{"type": "A", "status": "False"}]}), "ben"),
        apply(f"{BOAT}/status", boat(status={"ready": 1})), get(BOAT), spec(atomic=["b"]), get(BOAT),
    ),
    scenario(
        "two-versions", RULES,
        TWO, spec(a="1", b="1"), spec(NEW, "ben", by="v2", a="1", c="1"), get(BOAT), get(NEW),
        spec(NEW, "cleo", by="v2", a="2"), spec(NEW, "cleo", by="v2", force=True, a="2"), get(BOAT),
        spec(a="1", b="1"), spec(force=True, a="1", b="2"), get(NEW), spec(NEW, "ben", by="v2"), get(BOAT),
    ),
    scenario(
        "one-manager-in-two-versions", RULES,
        TWO, spec(a="1", b="1"), spec(NEW, by="v2", a="1"), get(BOAT), spec(NEW, by="v2", c="1"), get(NEW), spec(b="1"), get(BOAT),
    ),
    scenario(
        "updates-in-two-versions", "Apply, Update",
        TWO, spec(a="1", b="1"), patch(NEW, {"spec": {"a": "2"}}, fieldManager="upa"), get(BOAT),
        patch(BOAT, {"spec": {"a": "3", "b": "3"}}, fieldManager="upa"), get(NEW), spec(a="1", b="1"),
        post(NEWER, boat("b", "v2", spec={"a": "1"})), apply(f"{NEWER}/b", boat("b", "v2", spec={"c": "1"})), get(f"{NEWER}/b"),
    ),
    scenario(
        "two-versions-of-one-schema", RULES,
        SAME, spec(a="1", b="1"), spec(NEW, "ben", by="v2", a="1"), get(NEW), spec(NEW, "ben", by="v2", a="2"),
        spec(NEW, "ben", by="v2", force=True, a="2"), get(BOAT), spec(NEW, by="v2", b="1"), get(BOAT), spec(NEW, by="v2"), spec(a="2"), get(BOAT),
        patch(NEW, {"spec": {"a": "3"}}, fieldManager="upa"), patch(BOAT, {"spec": {"a": "4"}}, fieldManager="upa"), get(NEW),
    ),
    scenario(
        "version-of-another", "Apply, Status errors",
        TWO, spec(by="v2", a="1"), spec(NEW, by="v1", a="1"), spec(by="v3", a="1"), get(BOAT),
    ),
    scenario(
        "version-no-longer-served", RULES,
        SAME, spec(a="1"), spec(NEW, "ben", by="v2", a="1", b="1"),
        changed(of(obj(a=STRING, b=STRING)), of(obj(a=STRING, b=STRING), "v2", storage=False, served=False), until=get(NEW), status=404),
        get(BOAT), spec(a="2"), spec(force=True, a="2"), get(BOAT), patch(BOAT, {"spec": {"a": "3"}}, fieldManager="upa"), get(BOAT),
    ),
    scenario(
        "version-that-is-gone", RULES,
        SAME, spec(NEW, "ben", by="v2", a="1"), spec(b="1"),
        changed(of(obj(a=STRING, b=STRING)), until=get(NEW), status=404),
        get(BOAT), spec(b="2"), spec(b="1"), get(BOAT), patch(BOAT, {"spec": {"a": "3"}}, fieldManager="upa"), get(BOAT), spec(b="2"), get(BOAT),
    ),
    scenario(
        "parts-become-one", RULES,
        installed(of(obj(m=obj(a=STRING, b=STRING), l=a_list(STRING, "set")))), spec(m={"a": "1"}, l=["x"]), spec(manager="ben", m={"b": "1"}, l=["y"]),
        changed(of(obj(m={**obj(a=STRING, b=STRING), "x-kubernetes-map-type": "atomic"}, l=a_list(STRING, "atomic"), n=STRING)), until=patch(BOAT, {"spec": {"n": "1"}}, fieldManager="upa", fieldValidation="Strict")),
        get(BOAT), spec(m={"a": "2"}, l=["x"]), spec(force=True, m={"a": "2"}, l=["x"]), get(BOAT),
    ),
    scenario(
        "one-becomes-parts", RULES,
        installed(of(obj(m={**obj(a=STRING, b=STRING), "x-kubernetes-map-type": "atomic"}))), spec(m={"a": "1"}), spec(manager="ben", m={"a": "1"}),
        changed(of(obj(m=obj(a=STRING, b=STRING), n=STRING)), until=patch(BOAT, {"spec": {"n": "1"}}, fieldManager="upa", fieldValidation="Strict")),
        get(BOAT), spec(m={"b": "1"}), spec(manager="ben", m={"a": "2"}), spec(manager="ben", force=True, m={"a": "2"}), get(BOAT),
    ),
    scenario(
        "without-a-status", RULES,
        installed(version(schema=obj(spec=obj(a=STRING), status=obj(b=STRING)))),
        apply(BOAT, boat(spec={"a": "1"}, status={"b": "1"})), apply(BOAT, boat(status={"b": "2"}), "ben"), apply(f"{BOAT}/status", boat(status={"b": "2"}), "ben"), get(BOAT),
    ),
    scenario(
        "definition", RULES,
        installed(), Until(get(BOAT), 404),
        apply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats." + GROUP, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"boats.{GROUP}", "labels": {"a": "b"}}}), frames("crd", 1),
    ),
]  # fmt: skip
