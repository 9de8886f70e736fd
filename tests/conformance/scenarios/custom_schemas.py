"""What definitions make of objects: pruned, filled in, judged, shown; and of documents about them."""

from __future__ import annotations

from typing import Any

from conformance.boats import (
    AGGREGATED,
    ANYTHING,
    BOAT,
    BOATS,
    CRD,
    CRDS,
    NUMBER,
    OPENAPI,
    SCALED,
    SELECTED,
    STRING,
    TABLE,
    TWO,
    WITH_STATUS,
    Tree,
    boat,
    changed,
    crd,
    followed,
    installed,
    obj,
    own_schemas,
    served,
    tried,
    version,
    yachts,
)
from conformance.scenario import Until, delete, frames, get, patch, post, put, scenario, watch

SCHEMA = obj(
    spec=obj(
        name=STRING,
        masts={"type": "integer", "default": 2},
        crew={"type": "object", "additionalProperties": {"type": "string"}},
        sails={"type": "array", "items": obj(color={"type": "string", "default": "white"}, area=NUMBER)},
        any=ANYTHING,
        either={"x-kubernetes-int-or-string": True},
        nothing={"type": "string", "nullable": True},
        nothing_or_one={"type": "string", "nullable": True, "default": "one"},
    ),
    status=obj(state=STRING),
)

#: What is kept of a spec, and what comes with it.
SPECS: dict[str, Any] = {
    "empty": {},
    "unknown-field": {"color": "red"},
    "unknown-field-in-an-item": {"sails": [{"area": 1, "color": "red", "age": 3}, {}]},
    "null-without-a-place": {"name": None, "crew": {"mate": None, "cook": "Kim"}},
    "null-with-a-default": {"masts": None, "sails": [{"color": None}]},
    "null-with-a-place": {"nothing": None, "nothing_or_one": None},
    "null-item": {"sails": [None]},
    "preserved": {"any": {"a": {"b": None}, "c": [None, {"d": 1}]}},
    "either": {"either": "5%"},
    "either-a-number": {"either": 5},
    "either-a-boolean": {"either": True},
    "of-wrong-type": {"masts": "two"},
    "an-object-where-a-list-is": {"sails": {}},
    "a-list-where-an-object-is": {"crew": []},
}

INNER = obj(
    spec=obj(
        template={
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": obj(size=NUMBER), "metadata": {"type": "object"}},
        },
        free={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    )
)
#: Embedded objects.
EMBEDDED: dict[str, Any] = {
    "whole": {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "x", "labels": {"a": "b"}},
        "spec": {"size": 1},
    },
    "without-kind": {"apiVersion": "v1", "spec": {}},
    "without-version": {"kind": "Thing"},
    "empty-kind": {"apiVersion": "v1", "kind": ""},
    "kind-of-wrong-type": {"apiVersion": "v1", "kind": 5},
    "kind-with-spaces": {"apiVersion": "v1", "kind": "a thing"},
    "version-with-slashes": {"apiVersion": "a/b/c", "kind": "Thing"},
    "unknown-fields": {"apiVersion": "v1", "kind": "Thing", "metadata": {"color": "red"}, "more": 1},
    "wrong-labels": {"apiVersion": "v1", "kind": "Thing", "metadata": {"labels": {"a b": "c d"}}},
    "labels-of-wrong-type": {"apiVersion": "v1", "kind": "Thing", "metadata": {"labels": {"a": 5}}},
    "name-with-slash": {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a/b", "namespace": "N"}},
    "timestamp": {"apiVersion": "v1", "kind": "Thing", "metadata": {"creationTimestamp": None, "name": "y"}},
}

LISTS = obj(
    spec=obj(
        ports={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": obj(name=STRING, port={"type": "integer", "maximum": 100}) | {"required": ["name"]},
        },
        tags={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "maxLength": 5}},
        plain={"type": "array", "items": {"type": "integer", "maximum": 100}},
        limits={"type": "object", "additionalProperties": {"type": "integer", "maximum": 100}},
        name={"type": "string", "maxLength": 5},
        part=obj(name={"type": "string", "maxLength": 5}, other=STRING) | {"required": ["other"]},
    )
)
OPEN = obj(spec=ANYTHING)
#: Refuses a name that is text, which tells that it counts.
NUMBER_SPEC = obj(name=NUMBER)
#: What is there before a schema became stricter, and what is written then.
RATCHETED: dict[str, tuple[Any, Any]] = {
    "unchanged": ({"name": "too long"}, {"name": "too long"}),
    "another-field": ({"name": "too long"}, {"name": "too long", "tags": ["a"]}),
    "the-field-itself": ({"name": "too long"}, {"name": "also too long"}),
    "another-beside-it": ({"name": "too long"}, {"name": "too long", "limits": {"a": 101}}),
    "entry-of-a-map": ({"limits": {"a": 101}}, {"limits": {"a": 101, "b": 1}}),
    "new-entry-of-a-map": ({"limits": {"a": 101}}, {"limits": {"a": 101, "b": 102}}),
    "item-by-key": (
        {"ports": [{"name": "a", "port": 101}]},
        {"ports": [{"name": "b", "port": 1}, {"name": "a", "port": 101}]},
    ),
    "item-with-another-key": ({"ports": [{"name": "a", "port": 101}]}, {"ports": [{"name": "b", "port": 101}]}),
    "keys-twice": (
        {"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]},
        {"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 3}]},
    ),
    "keys-twice-now": ({"ports": []}, {"ports": [{"name": "a"}, {"name": "a"}]}),
    "set-unchanged": ({"tags": ["too long"]}, {"tags": ["too long"], "name": "a"}),
    "set-longer": ({"tags": ["too long"]}, {"tags": ["too long", "b"]}),
    "list-unchanged": ({"plain": [101, 1]}, {"plain": [101, 1], "name": "b"}),
    "list-longer": ({"plain": [101]}, {"plain": [101, 2]}),
    "required": ({"part": {"name": "a"}}, {"part": {"name": "a"}, "name": "b"}),
    "required-beside-a-change": ({"part": {"name": "a"}}, {"part": {"name": "b"}}),
    "type": ({"name": 5}, {"name": 5, "tags": []}),
}

DESCRIBED = obj(
    spec={
        "type": "object",
        "description": "What is wanted.",
        "properties": {
            "size": {"type": "string", "enum": ["small", "large"], "description": "How big.", "title": "Size"},
            "when": {"type": "string", "format": "date-time", "example": "2026-01-01T00:00:00Z"},
            "many": {
                "type": "array",
                "minItems": 1,
                "maxItems": 3,
                "x-kubernetes-list-type": "set",
                "items": {"type": "string"},
            },
            "share": {"type": "number", "format": "double", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 0.5},
            "either": {
                "x-kubernetes-int-or-string": True,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "pattern": "^a",
            },
            "choice": {
                "type": "object",
                "properties": {"a": STRING, "b": STRING},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
                "x-kubernetes-map-type": "atomic",
            },
            "ruled": {
                "type": "integer",
                "nullable": True,
                "x-kubernetes-validations": [{"rule": "self > 0", "message": "must be positive"}],
            },
            "more": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": NUMBER},
                "minProperties": 1,
                "externalDocs": {"url": "https://example.com", "description": "more"},
            },
        },
    }
)

RULED = obj(
    spec=obj(
        low={"type": "integer"},
        high={"type": "integer", "x-kubernetes-validations": [
            {"rule": "self >= oldSelf", "message": "never shrinks", "reason": "FieldValueForbidden"},
        ]},
        name={"type": "string", "maxLength": 20, "x-kubernetes-validations": [
            {"rule": "self.startsWith('b')", "messageExpression": "'no good name: ' + self"},
        ]},
        parts={"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
               "items": obj(name={"type": "string", "maxLength": 9}, size=NUMBER) | {
                   "required": ["name"], "x-kubernetes-validations": [{"rule": "self.size < 10", "fieldPath": ".size"}],
               }},
    ) | {"x-kubernetes-validations": [{"rule": "!has(self.low) || self.low <= self.high", "message": "low above high"}]},
    status=obj(state={"type": "string", "maxLength": 9}) | {"x-kubernetes-validations": [{"rule": "self.state != 'bad'"}]},
)  # fmt: skip
#: What is made, and what it is changed to, under rules.
JUDGED: dict[str, tuple[Any, Any]] = {
    "good": ({"low": 1, "high": 2, "name": "boat"}, {"low": 2, "high": 3}),
    "broken": ({"low": 3, "high": 2, "name": "ship"}, {}),
    "shrunk": ({"high": 2}, {"high": 1}),
    "item": ({"parts": [{"name": "a", "size": 12}]}, {}),
    "item-changed": ({"parts": [{"name": "a", "size": 2}]}, {"parts": [{"name": "a", "size": 12}, {"name": "b", "size": 3}]}),
    "type-first": ({"high": "x", "name": "ship"}, {}),
    "too-long-first": ({"name": "x" * 21, "high": 2}, {}),
    "no-such-key": ({"low": 1}, {}),
    "error": ({"parts": [{"name": "a"}]}, {}),
}  # fmt: skip

COLUMNS: list[Tree] = [
    {"name": "Masts", "type": "integer", "jsonPath": ".spec.masts", "description": "How many"},
    {"name": "Name", "type": "string", "jsonPath": ".spec.name", "priority": 1},
    {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Fast", "type": "boolean", "jsonPath": ".spec.fast"},
    {"name": "Speed", "type": "number", "jsonPath": ".spec.speed", "format": "double"},
    {"name": "Sails", "type": "string", "jsonPath": ".spec.sails[*].color"},
    {"name": "First", "type": "string", "jsonPath": ".spec.sails[0].color"},
    {"name": "Crew", "type": "string", "jsonPath": ".spec.crew"},
]
#: Paths to keys with dots, of which only some are escaped.
DOTTED: list[Tree] = [
    {"name": f"Dotted {number}", "type": "string", "jsonPath": path}
    for number, path in enumerate([
        ".metadata.labels.app\\.example\\.com/name", ".metadata.labels['app\\.example\\.com/name']",
        ".metadata.labels.app.example.com/name", ".metadata.labels['app.example.com/name']",
        ".spec['crew']['mate']", ".spec['crew.mate']", ".spec.crew\\.mate", ".spec.crew.\\m\\a\\t\\e", ".spec.crew.\\.",
        ".spec.a/b", ".spec.a$b", ".spec.a\\$b",
    ])
]  # fmt: skip
SCENARIOS = [
    # pruning and defaulting
    *(
        scenario(
            f"spec-{name}", "Kinds, fieldValidation",
            installed(version(schema=SCHEMA, **WITH_STATUS)),
            post(BOATS, boat("a", spec=spec, status={"state": "x"}, more=1)), get(BOAT),
            post(BOATS, boat("b", spec=spec), fieldValidation="Strict"),
            post(BOATS, boat("c")), patch(f"{BOATS}/c", {"spec": spec}), get(f"{BOATS}/c"),
        )
        for name, spec in SPECS.items()
    ),
    scenario(
        "default-for-a-whole-part", "Kinds",
        installed(version(schema=obj(
            spec={"type": "object", "default": {"name": "x"}, "properties": {
                "name": STRING, "masts": {"type": "integer", "default": 3},
            }},
        ))),
        post(BOATS, boat("a")), post(BOATS, boat("b", spec={})), post(BOATS, boat("c", spec=None)),
    ),
    scenario(
        "default-of-later", "Kinds, No-op writes",
        installed(version(schema=obj(spec=obj(name=STRING)))),
        post(BOATS, boat("a", spec={"name": "x"}), as_="a"),
        changed(
            version(schema=obj(spec=obj(name=STRING, masts={"type": "integer", "default": 2}))), until=get(BOAT)
        ),
        Until(post(BOATS, boat("b", spec={"masts": "x"}), dryRun="All"), 422),
        get(BOAT), get(BOATS), get(BOAT, accept=TABLE), watch("boats", BOATS), frames("boats", 1),
        patch(BOAT, {"metadata": {"labels": {"a": "b"}}}), frames("boats", 1), get(BOAT),
    ),
    scenario(
        "pruned-later", "Kinds",
        installed(version(schema=OPEN)),
        post(BOATS, boat("a", spec={"name": "x", "color": "red"})),
        changed(version(schema=obj(spec=obj(name=STRING))), until=post(BOATS, boat("b", spec={"name": 5}), dryRun="All"), status=422),
        get(BOAT), get(BOATS), patch(BOAT, {"metadata": {"labels": {"a": "b"}}}), get(BOAT),
        changed(version(schema=OPEN), until=post(BOATS, boat("b", spec={"name": 5}), dryRun="All"), status=201),
        get(BOAT),
    ),
    # embedded objects
    *(
        scenario(
            f"embedded-{name}", "Kinds, fieldValidation",
            installed(version(schema=INNER)),
            post(BOATS, boat("a", spec={"template": inner})), get(BOAT), post(BOATS, boat("b", spec={"free": inner})),
            post(BOATS, boat("c", spec={"template": inner}), fieldValidation="Strict"),
        )
        for name, inner in EMBEDDED.items()
    ),
    # what was wrong before
    *(
        scenario(
            f"ratcheting-{name}", "Kinds, Update",
            installed(version(schema=OPEN)),
            post(BOATS, boat("a", spec=before)),
            changed(version(schema=LISTS), until=tried(boat("b", spec={"name": "too long"})), status=422),
            get(BOAT, as_="a"), put(BOAT, boat(spec=after, metadata={"resourceVersion": "$rv:a"})), get(BOAT),
            post(BOATS, boat("c", spec=after)),
        )
        for name, (before, after) in RATCHETED.items()
    ),
    scenario(
        "ratcheting-status", "Kinds, Subresources",
        installed(version(schema=obj(status=ANYTHING), **WITH_STATUS)),
        post(BOATS, boat("a")), patch(f"{BOAT}/status", {"status": {"state": "too long", "more": 1}}),
        changed(
            version(schema=obj(spec=obj(name=NUMBER), status=obj(state={"type": "string", "maxLength": 5}, more=NUMBER)), **WITH_STATUS),
            until=tried(boat("b", spec={"name": "x"})), status=422,
        ),
        patch(f"{BOAT}/status", {"status": {"more": 2}}), patch(f"{BOAT}/status", {"status": {"state": "longer still"}}),
        patch(f"{BOAT}/status", {"status": {"more": "x"}}), patch(BOAT, {"metadata": {"labels": {"a": "b"}}}), get(BOAT),
    ),
    # rules
    *(
        scenario(
            f"rules-{name}", "Kinds",
            installed(version(schema=RULED, **WITH_STATUS)), post(BOATS, boat("a", spec=made)), get(BOAT),
            patch(BOAT, {"spec": changes}), patch(f"{BOAT}/status", {"status": {"state": "bad"}}), get(BOAT),
        )
        for name, (made, changes) in JUDGED.items()
    ),
    *(
        scenario(
            f"rules-of-later-{name}", "Kinds, Update",
            installed(version(schema=OPEN)), post(BOATS, boat("a", spec=made)),
            changed(version(schema=RULED, **WITH_STATUS), until=tried(boat("b", spec={"name": "ship"})), status=422),
            patch(BOAT, {"metadata": {"labels": {"a": "b"}}}), patch(BOAT, {"spec": {"high": 3}}), patch(BOAT, {"spec": changes}),
            get(BOAT),
        )
        # one at a time: the order of several warnings is chance
        for name, made, changes in (
            ("spec", {"low": 5, "high": 2}, {"low": 4}),
            ("field", {"name": "ship"}, {"name": "sloop"}),
            ("item", {"parts": [{"name": "a", "size": 12}]}, {"parts": [{"name": "b", "size": 1}, {"name": "a", "size": 12}]}),
        )
    ),
    # subresources
    scenario(
        "status", "Subresources, generation",
        installed(version(schema=SCHEMA, **WITH_STATUS)), post(BOATS, boat("a", status={"state": "x"})),
        patch(f"{BOAT}/status", {"status": {"state": "y"}, "spec": {"name": "z"}, "metadata": {"labels": {"a": "b"}}}),
        patch(BOAT, {"status": {"state": "z"}, "spec": {"name": "z"}}), get(f"{BOAT}/status"),
        patch(f"{BOAT}/status", {"status": None}), get(BOAT), get(f"{BOAT}/scale"), get(f"{BOAT}/other"),
    ),
    scenario(
        "no-status", "Subresources, generation",
        installed(version(schema=SCHEMA)), post(BOATS, boat("a", status={"state": "x"})),
        patch(f"{BOAT}/status", {"status": {"state": "y"}}), patch(BOAT, {"status": {"state": "z"}}), get(BOAT),
        get(f"{BOAT}/status"),
    ),
    scenario(
        "status-from-now-on", "Subresources",
        installed(version(schema=SCHEMA)), post(BOATS, boat("a", status={"state": "x"})),
        changed(
            version(schema=obj(spec=NUMBER_SPEC, status=ANYTHING), **WITH_STATUS),
            until=tried(boat("b", spec={"name": "x"})), status=422,
        ),
        patch(BOAT, {"status": {"state": "y"}}), get(BOAT),
    ),
    scenario(
        "scale", "Subresources",
        installed(version(schema=obj(spec=obj(masts=NUMBER), status=obj(masts=NUMBER, selector=STRING)), **SCALED)),
        post(BOATS, boat("a", spec={"masts": 3})), get(f"{BOAT}/scale"),
        patch(f"{BOAT}/status", {"status": {"masts": 1, "selector": "a=b"}}), get(f"{BOAT}/scale"),
        patch(f"{BOAT}/scale", {"spec": {"replicas": 5}}), get(BOAT), patch(f"{BOAT}/scale", {"spec": {"replicas": -1}}),
        post(BOATS, boat("b", spec={"masts": -1})), post(BOATS, boat("c")), get(f"{BOATS}/c/scale"),
        patch(f"{BOATS}/c/scale", {"spec": {"replicas": 2}}), get(f"{BOATS}/c"), served("v1"),
    ),
    # what is shown
    scenario(
        "columns", "Table",
        installed(version(schema=obj(spec=ANYTHING, status=ANYTHING), additionalPrinterColumns=COLUMNS)),
        post(BOATS, boat(
            "a", spec={"masts": 3, "name": "x", "fast": True, "speed": 1.5, "sails": [{"color": "red"}, {"color": "blue"}],
                       "crew": {"mate": "Kim", "cook": "Jo"}},
            status={"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
        )),
        post(BOATS, boat("b", spec={"masts": "many", "name": 5, "fast": "yes", "speed": 2, "sails": [], "crew": [1, "x"]})),
        post(BOATS, boat("c")), get(BOATS, accept=TABLE), get(BOAT, accept=TABLE), get(f"{BOATS}/b", accept=TABLE),
        get(f"{BOATS}/c", accept=TABLE),
    ),
    scenario(
        "columns-with-dotted-keys", "Table",
        installed(version(schema=obj(spec=ANYTHING), additionalPrinterColumns=DOTTED)),
        post(BOATS, boat(
            "a", spec={"crew": {"mate": "Kim", ".": "dot"}, "crew.mate": "Jo", "a/b": "y", "a$b": "z"},
            metadata={"labels": {"app.example.com/name": "n"}},
        )),
        get(BOATS, accept=TABLE),
    ),
    scenario("no-columns", "Table", installed(), post(BOATS, boat("a")), get(BOATS, accept=TABLE)),
    scenario(
        "selectable-fields", "Selectors",
        installed(version(schema=obj(spec=obj(name=STRING, masts=NUMBER)), **SELECTED)),
        post(BOATS, boat("a", spec={"name": "x", "masts": 1})), post(BOATS, boat("b", spec={"name": "y", "masts": 1})),
        post(BOATS, boat("c")), get(BOATS, fieldSelector="spec.name=x"), get(BOATS, fieldSelector="spec.masts=1,spec.name!=x"),
        get(BOATS, fieldSelector="spec.name="), get(BOATS, fieldSelector="spec.other=x"), get(BOATS, fieldSelector="status.x=1"),
        watch("boats", BOATS, fieldSelector="spec.name=x"), frames("boats", 1),
        patch(f"{BOATS}/b", {"spec": {"name": "x"}}), frames("boats", 1), patch(BOAT, {"spec": {"name": "z"}}), frames("boats", 1),
        delete(BOATS, fieldSelector="spec.masts=1"), frames("boats", 1), get(BOATS), served("v1"),
    ),
    scenario(
        "list-kind", "Kinds",
        installed(names={"listKind": "Fleet", "singular": "vessel"}), get(BOATS), get(CRD), served("v1"),
    ),
    # documents
    scenario(
        "openapi-v3", "OpenAPI v3",
        installed(
            version(schema=SCHEMA, **SCALED), TWO[1] | {"deprecated": True},
            names={"shortNames": ["bt"], "categories": ["all"]},
        ),
        Until(get(OPENAPI), 200), get(OPENAPI, focus=own_schemas), get(OPENAPI.replace("/v1", "/v2"), focus=own_schemas),
    ),
    *(
        scenario(f"openapi-v3-of-{name}", "OpenAPI v3", installed(version(schema=schema, **(SELECTED if name == "selectable-fields" else {}))),
                 Until(get(OPENAPI), 200), get(OPENAPI, focus=own_schemas))
        for name, schema in {
            "a-whole-schema": obj(apiVersion=STRING, kind=STRING, metadata={"type": "object"}, spec=LISTS["properties"]["spec"])
            | {"description": "A thing that floats.", "required": ["spec"]},
            "embedded-objects": INNER,
            "anything": ANYTHING,
            "many-words": DESCRIBED,
            "selectable-fields": obj(spec=obj(name=STRING, masts=NUMBER)),
        }.items()
    ),
    scenario(
        "openapi-v3-cluster-wide", "OpenAPI v3",
        followed(), post(CRDS, crd(scope="Cluster")), frames("crd", 3), Until(get(OPENAPI), 200),
        get(OPENAPI, focus=own_schemas),
    ),
    scenario(
        "aggregated-discovery", "Discovery",
        installed(
            version(**SCALED), version("v2", storage=False),
            names={"kind": "Yacht", "shortNames": ["bt"], "categories": ["all"], "listKind": "Fleet"},
        ),
        Until(get(OPENAPI), 200), get("/apis", accept=AGGREGATED, focus=yachts),
    ),
]  # fmt: skip
