"""Schemas of CustomResourceDefinitions: such as are taken, and such as are refused; and what makes definitions of them."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "{u}.example.com"
NAME = f"things.{GROUP}"
ONE = f"{CRDS}/{NAME}"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE, KEYS, MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
RULES = "x-kubernetes-validations"
ANYTHING: Tree = {"type": "object", PRESERVE: True}
EITHER: Tree = {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}


def version(name: str = "v1", schema: Any = ANYTHING, **more: Any) -> Tree:
    held = {} if schema is None else {"schema": {"openAPIV3Schema": schema}}
    return {"name": name, "served": True, "storage": True} | held | more


def crd(*versions: Tree, metadata: Tree | None = None, names: Tree | None = None, **spec: Any) -> Tree:
    called = {"plural": "things", "kind": "Thing"} if names is None else names
    whole = {"group": GROUP, "names": called, "scope": "Namespaced", "versions": list(versions or [version()])} | spec
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME} | (metadata or {}),
        "spec": whole,
    }


def obj(**properties: Any) -> Tree:
    return {"type": "object", "properties": properties}


def array(items: Any, **more: Any) -> Tree:
    return {"type": "array", "items": items} | more


def of_spec(**properties: Any) -> Tree:
    """The schema of a kind with these fields in its spec."""
    return obj(spec=obj(**properties))


STRING: Tree = {"type": "string"}
INTEGER: Tree = {"type": "integer"}
KEYED = obj(name=STRING) | {"required": ["name"]}

#: Schemas that are taken.
GOOD: dict[str, Tree] = {
    "all-types": of_spec(
        a=STRING, b=INTEGER, c={"type": "number"}, d={"type": "boolean"}, e=array(STRING), f=obj(), g=EITHER
    ),
    "int-or-string": of_spec(
        a={INT_OR_STRING: True},
        b={INT_OR_STRING: True, "allOf": [{"anyOf": EITHER["anyOf"]}, {"not": {"enum": [1]}}]},
        c={INT_OR_STRING: True, "pattern": "^a"},
    ),
    "maps": of_spec(
        a={"type": "object", "additionalProperties": STRING},
        b={"type": "object", "additionalProperties": True},
        c={"type": "object", "additionalProperties": False},
    ),
    "lists": of_spec(
        a=array(STRING, **{LIST_TYPE: "set"}),
        b=array(KEYED, **{LIST_TYPE: "map", KEYS: ["name"]}),
        c=array(obj(), **{LIST_TYPE: "atomic"}),
    ),
    "sets-of-atoms": of_spec(
        a=array(obj() | {MAP_TYPE: "atomic"}, **{LIST_TYPE: "set"}), b=array(array(STRING), **{LIST_TYPE: "set"})
    ),
    "key-with-default": of_spec(a=array(obj(name=STRING | {"default": "x"}), **{LIST_TYPE: "map", KEYS: ["name"]})),
    "junctors": of_spec(
        a=INTEGER
        | {
            "anyOf": [{"minimum": 3}, {"maximum": 1}],
            "oneOf": [{"multipleOf": 2}],
            "not": {"enum": [7]},
            "allOf": [{"exclusiveMinimum": True, "minimum": 0}],
        }
    ),
    "junctors-at-the-root": obj(spec=obj(a=STRING, b=array(obj(c=STRING))))
    | {
        "anyOf": [
            {"properties": {"spec": {"required": ["a"]}}},
            {"properties": {"spec": {"properties": {"b": {"items": {"properties": {"c": {"pattern": "x"}}}}}}}},
        ]
    },
    "metadata": obj(metadata=obj(name=STRING | {"pattern": "^a", "maxLength": 9}), apiVersion=STRING, kind=STRING),
    "metadata-generated": obj(metadata=obj(name=STRING, generateName=STRING)),
    "embedded": of_spec(a=ANYTHING | {EMBEDDED: True}, b=obj(spec=STRING) | {EMBEDDED: True}),
    "defaults": of_spec(
        a=STRING | {"default": "x"},
        b=INTEGER | {"default": 3},
        c=array(STRING, default=["a"]),
        d=obj(e=STRING) | {"default": {"e": "f"}},
        f=obj() | {"default": {}},
        g={"type": "number", "default": 1.5},
        h={"type": "number", "default": 2.0},
    ),
    "default-null": of_spec(a=STRING | {"default": None, "nullable": True, "example": None}),
    "default-of-anything": of_spec(
        a={PRESERVE: True, "default": {"x": [1, 2.5, None]}},
        b={"type": "object", PRESERVE: True, "default": {"x": {"y": 1}}},
    ),
    "nullable": of_spec(a=STRING | {"nullable": True}, b=obj() | {"nullable": True}),
    "documentation": of_spec(
        a=STRING
        | {
            "description": "x",
            "title": "t",
            "externalDocs": {"url": "https://example.com", "description": "d"},
            "example": "e",
        }
    ),
    "bounds": of_spec(
        a=STRING | {"minLength": 0, "maxLength": 3, "pattern": r"^\p{Greek}+[[:alpha:]]$"},
        b=INTEGER | {"minimum": -1, "maximum": 5.5, "multipleOf": 0.5},
        c=array(STRING, minItems=0, maxItems=2),
        d={"type": "object", "additionalProperties": STRING, "maxProperties": 3, "minProperties": 1},
    ),
    "large-numbers": of_spec(
        a=INTEGER | {"maximum": 9223372036854775807, "minimum": -1e30},
        b={"type": "number", "maximum": 1e21, "minimum": 0.0000001, "default": 0.000001},
    ),
    "empty-things": of_spec(
        a=STRING
        | {
            "description": "",
            "enum": [],
            "required": [],
            "format": "",
            "nullable": False,
            "properties": {},
            "allOf": [],
        },
        b=array({"type": "string", "description": "", "required": []}),
    ),
    "unknown-below-items": of_spec(
        a=array({"type": "string", "color": "red"}),
        b={"type": "object", "additionalProperties": {"type": "string", "color": "red"}},
    ),
    "enums": of_spec(
        a=STRING | {"enum": ["a", "b"]},
        b=INTEGER | {"enum": [1, 2.0]},
        c=STRING | {"nullable": True, "enum": ["a", None]},
    ),
    "known-formats": of_spec(
        a=STRING | {"format": "date-time"},
        b=INTEGER | {"format": "int32"},
        c={"type": "number", "format": "double"},
        d=STRING | {"format": "uuid"},
    ),
    "unknown-format": of_spec(a=STRING | {"format": "color"}),
    "unknown-format-of-a-number": of_spec(a=INTEGER | {"format": "int16"}),
    "format-of-an-object": of_spec(a=obj() | {"format": "thing"}, b=array(STRING | {"format": "thing"})),
    "deep": obj(a=obj(b=array(obj(c={"type": "object", "additionalProperties": array(obj(d=STRING))})))),
    "granular": of_spec(a=obj(b=STRING) | {MAP_TYPE: "granular"}),
    "embedded-defaults": of_spec(
        a=ANYTHING
        | {
            EMBEDDED: True,
            "default": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "x", "color": "red", "creationTimestamp": None, "labels": {"a": "b"}},
            },
        }
    ),
    "embedded-metadata-defaults": of_spec(
        a=obj(
            metadata=obj(name=STRING | {"default": "ab"}),
            kind=STRING | {"default": "Pod"},
            apiVersion=STRING | {"default": "v1"},
            spec=obj(),
        )
        | {EMBEDDED: True}
    ),
    "rules": obj(
        spec=obj(
            a=STRING | {"maxLength": 9, "default": "x", RULES: [{"rule": "self == oldSelf", "message": "it stays"}]}
        )
        | {
            RULES: [
                {
                    "rule": "self.a != 'y'",
                    "reason": "FieldValueForbidden",
                    "fieldPath": ".a",
                    "messageExpression": "'not ' + self.a",
                }
            ]
        }
    ),
    "properties-and-anything": of_spec(a=obj(b=STRING) | {"additionalProperties": True}),
}

#: Schemas that are refused.
BAD: dict[str, Any] = {
    "no-type": {},
    "no-type-of-a-field": of_spec(a={}),
    "no-type-of-items": of_spec(a=array({})),
    "no-type-of-values": of_spec(a={"type": "object", "additionalProperties": {}}),
    "root-is-a-string": STRING,
    "root-is-a-map": {"type": "object", "additionalProperties": STRING},
    "root-is-nullable": obj(a=STRING) | {"nullable": True},
    "type-unknown": of_spec(a={"type": "text"}),
    "type-null": of_spec(a={"type": "null"}),
    "array-without-items": of_spec(a={"type": "array"}),
    "items-are-several": of_spec(a={"type": "array", "items": [STRING, INTEGER]}),
    "items-are-none": of_spec(a={"type": "array", "items": []}),
    "items-are-null": of_spec(a={"type": "array", "items": None}),
    "items-are-a-word": of_spec(a={"type": "array", "items": "string"}),
    "unique-items": of_spec(a=array(STRING, uniqueItems=True)),
    "reference": of_spec(a={"$ref": "#/definitions/x"}),
    "reference-and-type": of_spec(a=STRING | {"$ref": "#/definitions/x"}),
    "schema-url": obj(a=STRING) | {"$schema": "http://json-schema.org/draft-04/schema#"},
    "schema-url-below": of_spec(a=STRING | {"$schema": "http://json-schema.org/draft-04/schema#"}),
    "id": of_spec(a=STRING | {"id": "x"}),
    "definitions": obj(a=STRING) | {"definitions": {"x": STRING}},
    "definitions-with-mistakes": obj(a=STRING) | {"definitions": {"x": {"type": "text"}}},
    "dependencies": of_spec(a=STRING) | {"dependencies": {"a": ["b"], "c": {"type": "text"}}},
    "pattern-properties": of_spec(a={"type": "object", "patternProperties": {"^a": STRING}}),
    "additional-items": of_spec(a=array(STRING, additionalItems=STRING)),
    "additional-items-false": of_spec(a=array(STRING, additionalItems=False)),
    "properties-and-values": of_spec(a=obj(b=STRING) | {"additionalProperties": STRING}),
    "properties-and-no-more": of_spec(a=obj(b=STRING) | {"additionalProperties": False}),
    "preserve-false": of_spec(a=obj() | {PRESERVE: False}),
    "embedded-string": of_spec(a=STRING | {EMBEDDED: True}),
    "embedded-without-type": of_spec(a={EMBEDDED: True, PRESERVE: True}),
    "embedded-empty": of_spec(a=obj() | {EMBEDDED: True}),
    "embedded-map": of_spec(a={"type": "object", EMBEDDED: True, PRESERVE: True, "additionalProperties": STRING}),
    "embedded-metadata": of_spec(a=obj(metadata=STRING, kind=INTEGER, apiVersion=obj()) | {EMBEDDED: True}),
    "embedded-in-metadata": of_spec(a=obj(metadata=obj(b=ANYTHING | {EMBEDDED: True})) | {EMBEDDED: True}),
    "int-or-string-preserved": of_spec(a={INT_OR_STRING: True, PRESERVE: True}),
    "int-or-string-embedded": of_spec(a={INT_OR_STRING: True, EMBEDDED: True}),
    "int-or-string-otherwise": of_spec(a={INT_OR_STRING: True, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
    "int-or-string-too-late": of_spec(a={INT_OR_STRING: True, "allOf": [{"minimum": 1}, {"anyOf": EITHER["anyOf"]}]}),
    "metadata-labels": obj(metadata=obj(labels={"type": "object", "additionalProperties": STRING})),
    "metadata-more": obj(metadata=obj(name=STRING, namespace=STRING)),
    "metadata-described": obj(metadata={"type": "object", "description": "x"}),
    "metadata-a-string": obj(metadata=STRING),
    "metadata-default": obj(metadata=obj(name=STRING | {"default": "x"})),
    "kind-a-number": obj(kind=INTEGER, apiVersion=obj()),
    "kind-default": obj(kind=STRING | {"default": "Thing"}),
    "metadata-in-a-junctor": obj(metadata=obj(name=STRING))
    | {"allOf": [{"properties": {"metadata": {"required": ["name"]}}}]},
    "type-in-a-junctor": of_spec(a=STRING | {"anyOf": [STRING, {"minLength": 1}]}),
    "all-in-a-junctor": of_spec(
        a=STRING
        | {
            "allOf": [
                {
                    "description": "x",
                    "title": "y",
                    "default": "z",
                    "nullable": True,
                    PRESERVE: True,
                    EMBEDDED: True,
                    INT_OR_STRING: True,
                    KEYS: ["a"],
                    LIST_TYPE: "set",
                    MAP_TYPE: "atomic",
                    "additionalProperties": True,
                    RULES: [{"rule": "true"}],
                }
            ]
        }
    ),
    "not-described": of_spec(a=STRING | {"not": {"description": "x"}}),
    "not-there-outside": obj(spec=obj(a=STRING))
    | {
        "allOf": [{"properties": {"spec": {"properties": {"b": {"pattern": "x"}}}}}],
        "not": {"properties": {"status": {"required": ["x"]}}},
    },
    "items-not-there-outside": obj(spec=obj(a=STRING))
    | {"oneOf": [{"properties": {"spec": {"properties": {"a": {"items": {"minLength": 1}}}}}}]},
    "pattern-open-group": of_spec(a=STRING | {"pattern": "(a"}),
    "pattern-look-ahead": of_spec(a=STRING | {"pattern": "^(?!x)"}),
    "pattern-in-a-junctor": of_spec(a=STRING | {"anyOf": [{"pattern": "[z-a]"}, {"not": {"pattern": "a**"}}]}),
    "list-type-of-a-string": of_spec(a=STRING | {LIST_TYPE: "set"}),
    "list-type-of-nothing": of_spec(a={PRESERVE: True, LIST_TYPE: "set"}),
    "list-type-unknown": of_spec(a=array(STRING, **{LIST_TYPE: "bag"})),
    "set-of-objects": of_spec(a=array(obj(), **{LIST_TYPE: "set"})),
    "set-of-lists": of_spec(a=array(array(STRING, **{LIST_TYPE: "set"}), **{LIST_TYPE: "set"})),
    "set-of-nullables": of_spec(a=array(STRING | {"nullable": True}, **{LIST_TYPE: "set"})),
    "keys-without-a-type": of_spec(a=array(KEYED, **{KEYS: ["name"]})),
    "keys-of-a-set": of_spec(a=array(STRING, **{LIST_TYPE: "set", KEYS: ["name"]})),
    "map-without-keys": of_spec(a=array(KEYED, **{LIST_TYPE: "map"})),
    "map-of-strings": of_spec(a=array(STRING, **{LIST_TYPE: "map", KEYS: ["name"]})),
    "map-without-items": of_spec(a={"type": "array", LIST_TYPE: "map", KEYS: ["name"]}),
    "map-of-several": of_spec(a={"type": "array", "items": [KEYED], LIST_TYPE: "map", KEYS: ["name"]}),
    "key-unknown": of_spec(a=array(KEYED, **{LIST_TYPE: "map", KEYS: ["name", "other"]})),
    "key-twice": of_spec(a=array(KEYED, **{LIST_TYPE: "map", KEYS: ["name", "name"]})),
    "key-an-object": of_spec(a=array(obj(name=obj()) | {"required": ["name"]}, **{LIST_TYPE: "map", KEYS: ["name"]})),
    "key-optional": of_spec(a=array(obj(name=STRING), **{LIST_TYPE: "map", KEYS: ["name"]})),
    "key-nullable": of_spec(
        a=array(
            obj(name=STRING | {"nullable": True}) | {"required": ["name"], "nullable": True},
            **{LIST_TYPE: "map", KEYS: ["name"]},
        )
    ),
    "map-type-of-a-list": of_spec(a=array(STRING, **{MAP_TYPE: "atomic"})),
    "map-type-unknown": of_spec(a=obj() | {MAP_TYPE: "loose"}, b={PRESERVE: True, MAP_TYPE: "atomic"}),
    "default-of-wrong-type": of_spec(a=STRING | {"default": 1}),
    "default-too-short": of_spec(a=STRING | {"default": "x", "minLength": 2}),
    "default-not-in-the-enumeration": of_spec(a=STRING | {"default": "x", "enum": ["a"]}),
    "default-of-no-format": of_spec(a=STRING | {"default": "x", "format": "date"}),
    "default-unknown-field": of_spec(a=obj(b=STRING) | {"default": {"c": "x"}}),
    "default-unknown-below": of_spec(a={"type": "object", "additionalProperties": True, "default": {"b": {"c": 1}}}),
    "default-incomplete": of_spec(a=obj(b=STRING) | {"default": {}, "required": ["b"]}),
    "default-wrong-below": of_spec(a=obj(b=obj(c=INTEGER)) | {"default": {"b": {"c": "x"}}}),
    "default-wrong-item": of_spec(a=array(INTEGER, default=[1, "x"])),
    "default-out-of-bounds": of_spec(a=INTEGER | {"default": 7, "maximum": 5}),
    "default-none-of-any": of_spec(a=INTEGER | {"default": 7, "anyOf": [{"maximum": 5}]}),
    "default-at-the-root": obj(a=STRING) | {"default": {"a": 1}},
    "default-of-an-embedded-one": of_spec(a=ANYTHING | {EMBEDDED: True, "default": {"kind": "x"}}),
    "default-of-embedded-metadata": of_spec(
        a=obj(
            metadata=obj(
                name=STRING | {"default": "a/b"},
                labels={"type": "object", "additionalProperties": STRING, "default": {"a b": "c"}},
            ),
            kind=STRING | {"default": "x y"},
        )
        | {EMBEDDED: True}
    ),
    "default-of-an-embedded-one-of-wrong-type": of_spec(
        a=ANYTHING | {EMBEDDED: True, "default": {"apiVersion": "", "kind": 1, "metadata": {"name": "a/b"}}}
    ),
    "default-of-an-embedded-one-with-odd-labels": of_spec(
        a=ANYTHING
        | {EMBEDDED: True, "default": {"apiVersion": "a/b/c", "kind": "x y", "metadata": {"labels": {"a": 1}}}}
    ),
    "rule-empty": of_spec(a=STRING | {RULES: [{"rule": " "}]}),
    "rule-message-empty": of_spec(a=STRING | {RULES: [{"rule": "true", "message": " "}]}),
    "rule-message-of-lines": of_spec(a=STRING | {RULES: [{"rule": "true", "message": "a\nb"}]}),
    "rule-of-lines": of_spec(a=STRING | {RULES: [{"rule": "true ||\nfalse"}]}),
    "rule-message-expression-empty": of_spec(a=STRING | {RULES: [{"rule": "true", "messageExpression": " "}]}),
    "rule-reason": of_spec(a=STRING | {RULES: [{"rule": "true", "reason": "Odd"}]}),
    "rule-field-path": obj(
        spec=obj(a=STRING)
        | {
            RULES: [
                {"rule": "true", "fieldPath": ".b"},
                {"rule": "true", "fieldPath": "a"},
                {"rule": "true", "fieldPath": " "},
                {"rule": "true", "fieldPath": ".a\n"},
                {"rule": "true", "fieldPath": "['a']"},
            ]
        }
    ),
    "rule-of-no-form": of_spec(a=STRING | {RULES: [{"rule": "self ="}]}),
    "rule-of-unknown-fields": obj(spec=obj(a=STRING) | {RULES: [{"rule": "self.b == 1 && self.a == 2"}]}),
    "rule-no-condition": of_spec(a=STRING | {RULES: [{"rule": "self"}]}),
    "rule-costs-too-much": of_spec(
        a=array(array(array(STRING))) | {RULES: [{"rule": "self.all(x, x.all(y, y.all(z, z.contains('a'))))"}]}
    ),
    "rule-old-self-of-items": of_spec(a=array(STRING | {RULES: [{"rule": "self == oldSelf"}]})),
    "rule-optional-old-self": of_spec(a=STRING | {RULES: [{"rule": "self == 'x'", "optionalOldSelf": True}]}),
    "rule-message-of-no-form": of_spec(a=STRING | {RULES: [{"rule": "true", "messageExpression": "1"}]}),
    "rules-and-other-mistakes": obj(
        a=STRING | {RULES: [{"rule": "self.b"}]},
        b=array(STRING | {RULES: [{"rule": "self.c"}]}, uniqueItems=True),
        c=obj(d=STRING | {"uniqueItems": True}) | {RULES: [{"rule": "self.x"}]},
    ),
    "default-breaks-a-rule": of_spec(
        a=STRING | {"default": "x", RULES: [{"rule": "self == 'y'", "message": "must be y"}]}
    ),
    "several-mistakes": of_spec(
        a={}, b={"type": "text"}, c={"type": "array"}, d=STRING | {"pattern": "("}, e=array(KEYED, **{LIST_TYPE: "map"})
    ),
}
