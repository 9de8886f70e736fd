"""Which changes of a definition are called breaking, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.schemas import DefinitionChange, definition_changes

Tree = dict[str, Any]

STRING, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def fields(*required: str, **properties: Any) -> Tree:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def items(of: Tree, **more: Any) -> Tree:
    return {"type": "array", "items": of, **more}


def keyed(of: Tree, *keys: str) -> Tree:
    return items(of, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def rule(text: str, of: Tree) -> Tree:
    return {**of, "x-kubernetes-validations": [{"rule": text, "message": "never compared"}]}


def version(name: str, spec: Tree, **more: Any) -> Tree:
    schema = {"type": "object", "properties": {"spec": spec}}
    return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}} | more


def definition(*versions: Tree, stored: tuple[str, ...] = (), name: str = "sites.example.com", **spec: Any) -> Tree:
    plural, _, group = name.partition(".")
    names = {"kind": "Site", "plural": plural, "shortNames": ["st"]}
    return {
        "metadata": {"name": name},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions)} | spec,
        "status": {"storedVersions": list(stored)},
    }


def told(old: Tree, new: Tree) -> list[str]:
    """The breaking changes between two schemas of a field ``a``, as place and words."""
    changes = definition_changes([definition(version("v1", fields(a=old)))], [definition(version("v1", fields(a=new)))])
    return [f"{each.path}: {each.what}" for each in changes if each.breaks]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (STRING, {**STRING, "description": "another", "title": "x", "example": "y"}),
        ({**STRING, "maxLength": 3, "pattern": "^a"}, STRING),
        ({**STRING, "maxLength": 3}, {**STRING, "maxLength": 4, "minLength": 0}),
        ({**NUMBER, "minimum": 1}, {**NUMBER, "minimum": 0, "exclusiveMinimum": True}),
        ({**NUMBER, "multipleOf": 6}, {**NUMBER, "multipleOf": 3}),
        ({**NUMBER, "format": "int32"}, {**NUMBER, "format": "int64"}),
        ({**STRING, "enum": ["a"]}, {**STRING, "enum": ["b", "a"]}),
        ({**STRING, "enum": ["a"]}, {**STRING, "maxLength": 1, "pattern": "^[ab]$"}),
        (STRING, {**STRING, "nullable": True}),
        (STRING, {**STRING, "format": "not enforced by the server"}),
        (fields("b", b=STRING), fields(b=STRING)),
        (fields("b", b=STRING), fields("b", b={**STRING, "default": "x"})),
        (fields(b=STRING), fields(b=STRING, c=STRING, d={**NUMBER, "default": 1})),
        (fields(b=STRING), fields("d", b=STRING, d={**NUMBER, "default": 1})),
        (fields(b=STRING), {**fields(b=STRING), "x-kubernetes-preserve-unknown-fields": True}),
        (fields(b=STRING, c=STRING), {**fields(b=STRING), "x-kubernetes-preserve-unknown-fields": True}),
        (items(STRING), items(STRING, **{"x-kubernetes-list-type": "atomic"})),
        ({**items(STRING), "maxItems": 3}, items(STRING)),
        (rule("self > 1", NUMBER), NUMBER),
        (rule("self > 1", NUMBER), {**NUMBER, "x-kubernetes-validations": [{"rule": "self > 1", "message": "new"}]}),
        ({"type": "object"}, {"type": "object", "additionalProperties": STRING}),
        ({"x-kubernetes-int-or-string": True}, {"x-kubernetes-int-or-string": True, "anyOf": [NUMBER, STRING]}),
    ],
)
def test_what_is_safe(old: Tree, new: Tree) -> None:
    """A false alarm makes users ignore the true ones."""
    assert told(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (STRING, NUMBER, "spec.a: type integer instead of string"),
        (NUMBER, {"type": "number"}, "spec.a: type number instead of integer"),
        (fields(b=STRING), {"type": "object", "additionalProperties": STRING}, "spec.a: type map instead of object"),
        ({**STRING, "nullable": True}, STRING, "spec.a: no longer nullable"),
        ({**NUMBER, "default": 1}, {**NUMBER, "default": 1, "nullable": True}, "spec.a: now nullable"),
        (STRING, {**STRING, "enum": ["a"]}, 'spec.a: accepts only "a"'),
        ({**STRING, "enum": ["a", "b"]}, {**STRING, "enum": ["a"]}, 'spec.a: no longer accepts "b"'),
        ({**STRING, "enum": ["a", "bb"]}, {**STRING, "maxLength": 1}, 'spec.a: no longer accepts "bb"'),
        (STRING, {**STRING, "maxLength": 5}, "spec.a: maxLength 5 added"),
        ({**STRING, "minLength": 1}, {**STRING, "minLength": 2}, "spec.a: minLength 2 instead of 1"),
        (STRING, {**STRING, "pattern": "^a"}, "spec.a: pattern ^a added"),
        ({**STRING, "pattern": "^a"}, {**STRING, "pattern": "^b"}, "spec.a: pattern ^b instead of ^a"),
        (STRING, {**STRING, "format": "date-time"}, "spec.a: format date-time added"),
        ({**NUMBER, "format": "int64"}, {**NUMBER, "format": "int32"}, "spec.a: format int32 instead of int64"),
        ({**NUMBER, "maximum": 9}, {**NUMBER, "maximum": 8}, "spec.a: maximum 8 instead of 9"),
        (
            {**NUMBER, "maximum": 9},
            {**NUMBER, "maximum": 9, "exclusiveMaximum": True},
            "spec.a: maximum 9 (exclusive) instead of 9",
        ),
        ({**NUMBER, "multipleOf": 3}, {**NUMBER, "multipleOf": 6}, "spec.a: multipleOf 6 instead of 3"),
        (STRING, {**STRING, "not": {"enum": ["a"]}}, "spec.a: not added"),
        (items(STRING), items(STRING, maxItems=2), "spec.a: maxItems 2 added"),
        (items(STRING), items({**STRING, "maxLength": 2}), "spec.a[]: maxLength 2 added"),
        (
            items(STRING),
            items(STRING, **{"x-kubernetes-list-type": "set"}),
            "spec.a: x-kubernetes-list-type set instead of atomic",
        ),
        (
            keyed(fields("b", "c", b=STRING, c=STRING), "b"),
            keyed(fields("b", "c", b=STRING, c=STRING), "c"),
            "spec.a: x-kubernetes-list-map-keys c instead of b",
        ),
        (
            fields(b=STRING),
            {**fields(b=STRING), "x-kubernetes-map-type": "atomic"},
            "spec.a: x-kubernetes-map-type atomic instead of granular",
        ),
        (fields(b=STRING), fields("b", b=STRING), "spec.a.b: now required"),
        (fields(b=STRING), fields("c", b=STRING, c=STRING), "spec.a.c: new required field without a default"),
        (fields(b=STRING), fields(), "spec.a.b: field removed"),
        (OPEN, {"type": "object"}, "spec.a: undeclared fields removed"),
        (OPEN, {**OPEN, "properties": {"b": STRING}}, "spec.a.b: new field among undeclared ones"),
        ({**NUMBER, "default": 1}, {**NUMBER, "default": 2}, "spec.a: default 2 instead of 1"),
        ({**FLAG, "default": False}, {**FLAG, "default": True}, "spec.a: default true instead of false"),
        ({**NUMBER, "default": 1}, NUMBER, "spec.a: no default any more"),
        (fields(b=fields(c={**NUMBER, "default": 1})), OPEN, "spec.a.b.c: no default any more"),
        (
            fields(b={**items(STRING), "x-kubernetes-list-type": "set"}),
            OPEN,
            "spec.a.b: x-kubernetes-list-type atomic instead of set",
        ),
        (NUMBER, {**NUMBER, "default": 1}, "spec.a: new default 1"),
        (
            {**fields(b=STRING), "maxProperties": 1},
            {**fields(b=STRING, c={**NUMBER, "default": 1}), "maxProperties": 1},
            "spec.a.c: new field with a default",
        ),
        (NUMBER, rule("self > 1", NUMBER), "spec.a: new rule self > 1"),
        (rule("self > 1", NUMBER), rule("self > 2", NUMBER), "spec.a: new rule self > 2"),
        (OPEN, {**OPEN, "x-kubernetes-embedded-resource": True}, "spec.a: x-kubernetes-embedded-resource changed"),
        (STRING, {**STRING, "x-kubernetes-unheard-of": 1}, "spec.a: x-kubernetes-unheard-of changed"),
    ],
)
def test_what_breaks(old: Tree, new: Tree, found: str) -> None:
    """A change that is missed locks users out of their objects."""
    assert told(old, new) == [found]


def changes(old: Tree, new: Tree, **options: bool) -> list[DefinitionChange]:
    return definition_changes([old], [new], **options)


def words(old: Tree, new: Tree, **options: bool) -> list[str]:
    return [f"{each.version} {each.what}".strip() for each in changes(old, new, **options) if each.breaks]


ONE, TWO = version("v1", fields(a=STRING)), version("v2", fields(a=STRING))


def test_versions_that_go() -> None:
    """A version with clients or stored objects cannot go."""
    both = definition(ONE, TWO, stored=("v1",))
    assert words(both, definition(ONE)) == ["v2 version removed"]
    assert words(both, definition({**TWO, "storage": True})) == ["v1 version removed"]
    advice = changes(both, definition({**TWO, "storage": True}))[0].advice
    assert advice == "store objects in another version, run steersman migrate sites.example.com, then remove it"
    assert words(both, definition(ONE, {**TWO, "served": False})) == ["v2 no longer served"]
    unserved = definition(ONE, {**TWO, "served": False}, stored=("v1",))
    assert words(unserved, definition(ONE)) == []


def test_a_new_storage_version_is_no_break_but_needs_a_migration() -> None:
    """Objects stay in the old version; without a hint, that version can never go."""
    old = definition(ONE, TWO, stored=("v1",))
    moved = definition({**ONE, "storage": False}, {**TWO, "storage": True})
    (found,) = changes(old, moved)
    assert not found.breaks
    assert found.advice == "after the rollout, run steersman migrate sites.example.com"
    (first,) = changes(definition(ONE), moved)
    assert "a rollback to a definition without v2 is refused" in first.reason


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"scope": "Cluster"}, "scope Cluster instead of Namespaced"),
        ({"names": {"kind": "Page", "plural": "sites", "shortNames": ["st"]}}, "kind Page instead of Site"),
        ({"names": {"kind": "Site", "plural": "sites"}}, "short name st removed"),
        ({"conversion": {"strategy": "None"}}, "conversion removed"),
    ],
)
def test_the_definition_itself(change: Tree, found: str) -> None:
    """Names, scope and conversion are part of what clients use."""
    webhook = {"conversion": {"strategy": "Webhook"}}
    assert found in words(definition(ONE, TWO, **webhook), definition(ONE, TWO, **{**webhook, **change}))


def test_a_conversion_that_another_program_sets() -> None:
    """``--without-conversion`` says that the definition alone does not tell."""
    old = definition(ONE, TWO, conversion={"strategy": "Webhook"})
    assert words(old, definition(ONE, TWO), converted=True) == []


def test_subresources_and_selectable_fields() -> None:
    """Clients write the status, scale objects and select them through these."""
    scale = {"specReplicasPath": ".spec.a"}
    old = version(
        "v1", fields(a=STRING), subresources={"status": {}, "scale": scale}, selectableFields=[{"jsonPath": ".spec.a"}]
    )
    assert words(definition(old), definition(ONE)) == [
        "v1 subresource status removed",
        "v1 subresource scale removed",
        "v1 no longer selectable",
    ]
    assert words(definition(ONE), definition(old)) == ["v1 subresource status added"]


def test_definitions_that_go() -> None:
    """A definition that is not generated any more takes all of its objects with it when it is deleted."""
    old = definition(ONE)
    assert [each.what for each in definition_changes([old], [])] == ["definition removed"]
    assert definition_changes([old], [], complete=False) == []
    moved = definition(ONE, name="pages.example.com")
    assert [each.what for each in definition_changes([old], [moved], complete=False)] == [
        "named pages.example.com instead"
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (fields(a=STRING), fields(a={**STRING, "maxLength": 2}), "the server tolerates a stored one until it changes"),
        (
            fields(a=items(STRING)),
            fields(a=items({**STRING, "maxLength": 2})),
            "clients cannot write such a value any more, and an object that has one cannot change spec.a",
        ),
        (
            fields(a=keyed(fields("b", b=STRING, c=STRING), "b")),
            fields(a=keyed(fields("b", b=STRING, c={**STRING, "maxLength": 2}), "b")),
            "the server tolerates a stored one until it changes",
        ),
        (
            fields(a=STRING),
            fields("b", a=STRING, b=STRING),
            "clients cannot write an object without it any more, and one that lacks it cannot change spec",
        ),
    ],
)
def test_the_reason_says_what_the_server_tolerates(old: Tree, new: Tree, reason: str) -> None:
    """Kubernetes tolerates an unchanged value where it can tell that it is unchanged: that decides how bad a change is."""
    (found,) = changes(definition(version("v1", old)), definition(version("v1", new)))
    assert found.reason.endswith(reason)
