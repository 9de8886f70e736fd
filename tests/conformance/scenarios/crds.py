"""CustomResourceDefinitions as objects: which are taken, what is filled in, and what is said of those that are refused.

Most are only tried (``dryRun``): a kind that is served costs both servers something, and is none of these scenarios' business.
"""

from __future__ import annotations

import base64
from typing import Any

from conformance.crd_schemas import (
    ANYTHING,
    BAD,
    CRDS,
    GOOD,
    GROUP,
    INTEGER,
    NAME,
    ONE,
    STRING,
    Tree,
    array,
    crd,
    obj,
    of_spec,
    version,
)
from conformance.scenario import Close, Until, frames, get, patch, post, put, scenario, watch

#: What is wrong, or not, with the rest of a definition.
SPECS: dict[str, Tree] = {
    "least": crd(),
    "all-names": crd(
        names={
            "plural": "things",
            "singular": "thing",
            "kind": "Thing",
            "listKind": "ThingList",
            "shortNames": ["th", "t"],
            "categories": ["all"],
        }
    ),
    "names-wrong": crd(
        names={
            "plural": "things",
            "singular": "Thing",
            "kind": "1Thing",
            "listKind": "a_b",
            "shortNames": ["ok", "T"],
            "categories": ["a", "B.c"],
        }
    ),
    "names-missing": crd(names={"plural": "things"}),
    "names-none": crd(names={}),
    "kind-and-list-alike": crd(names={"plural": "things", "kind": "Thing", "listKind": "Thing"}),
    "plural-upper": crd(names={"plural": "Things", "kind": "Thing"}),
    "name-wrong": crd(metadata={"name": "other.{u}.example.com"}),
    "name-no-domain": crd(metadata={"name": "Other_{u}"}),
    "name-generated": crd(metadata={"name": "", "generateName": "things-"}),
    "name-missing": crd(metadata={"name": ""}),
    "labels-wrong": crd(metadata={"labels": {"a b": "c"}, "name": "other"}),
    "finalizers-unqualified": crd(metadata={"finalizers": ["hold"]}),
    "namespace-given": crd(metadata={"namespace": "default"}),
    "group-missing": crd(group=""),
    "group-without-a-dot": crd(group="example", metadata={"name": "things.example"}),
    "group-wrong": crd(group="Example.com", metadata={"name": "things.Example.com"}),
    "scope-missing": crd(scope=""),
    "scope-unknown": crd(scope="Galaxy"),
    "scope-cluster": crd(scope="Cluster"),
    "versions-none": crd(versions=[]),
    "versions-null": crd(versions=None),
    "versions-without-storage": crd(version(storage=False)),
    "versions-with-two-storages": crd(version(), version("v2")),
    "versions-alike": crd(version(), version(storage=False)),
    "versions-several": crd(version(), version("v2", storage=False)),
    "versions-of-two-schemas": crd(version(schema=of_spec(a=STRING)), version("v2", of_spec(a=INTEGER), storage=False)),
    "versions-of-two-bad-schemas": crd(
        version(schema=of_spec(a={})), version("v2", of_spec(a={"type": "array"}), storage=False)
    ),
    "versions-different-otherwise": crd(
        version(
            schema=of_spec(a=STRING),
            subresources={"status": {}},
            additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
        ),
        version("v2", of_spec(a=STRING, b=STRING), storage=False, selectableFields=[{"jsonPath": ".spec.b"}]),
    ),
    "versions-different-and-without-storage": crd(
        version(
            schema=of_spec(a=STRING),
            storage=False,
            subresources={
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.r",
                    "statusReplicasPath": ".status.r",
                    "labelSelectorPath": ".status.s",
                },
            },
            additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".spec.a", "priority": 1}],
        ),
        version(
            "v2",
            obj(spec=ANYTHING) | {"description": "<x> & y"},
            storage=False,
            deprecated=True,
            deprecationWarning="old",
            selectableFields=[{"jsonPath": ".spec.b"}],
        ),
    ),
    "version-name-wrong": crd(version("1.0")),
    "version-not-served": crd(version(served=False)),
    "version-deprecated": crd(version(deprecated=True, deprecationWarning="use v2")),
    "deprecation-of-a-good-version": crd(version(deprecationWarning="use v2")),
    "deprecation-empty": crd(version(deprecated=True, deprecationWarning="")),
    "deprecation-long": crd(version(deprecated=True, deprecationWarning="x" * 257)),
    "deprecation-of-lines": crd(version(deprecated=True, deprecationWarning="ä\nx")),
    "schema-missing": crd(version(schema=None)),
    "schema-empty": crd(version(schema=None) | {"schema": {}}),
    "schema-missing-once": crd(version(), version("v2", None, storage=False)),
    "preserve-unknown-fields": crd(preserveUnknownFields=True),
    "preserve-unknown-fields-and-defaults": crd(
        version(schema=of_spec(a=STRING | {"default": "x"})), preserveUnknownFields=True
    ),
    "preserve-unknown-fields-off": crd(preserveUnknownFields=False),
    "subresources-empty": crd(version(subresources={})),
    "status": crd(version(subresources={"status": {}})),
    "status-and-a-narrow-root": crd(
        version(schema=obj(spec=obj(a=STRING)) | {"anyOf": [{"required": ["spec"]}]}, subresources={"status": {}})
    ),
    "status-and-a-string": crd(version(schema=STRING, subresources={"status": {}})),
    "status-and-min-properties": crd(
        version(schema=of_spec(a=STRING) | {"minProperties": 1, "description": "x"}, subresources={"status": {}})
    ),
    "scale": crd(
        version(
            subresources={
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector",
                }
            }
        )
    ),
    "scale-empty": crd(version(subresources={"scale": {}})),
    "scale-elsewhere": crd(
        version(
            subresources={
                "scale": {
                    "specReplicasPath": ".status.replicas",
                    "statusReplicasPath": ".spec.replicas",
                    "labelSelectorPath": ".metadata.x",
                }
            }
        )
    ),
    "scale-no-paths": crd(
        version(
            subresources={
                "scale": {"specReplicasPath": "spec", "statusReplicasPath": "status.x", "labelSelectorPath": "x"}
            }
        )
    ),
    "columns": crd(
        version(
            additionalPrinterColumns=[
                {
                    "name": "A",
                    "type": "date",
                    "jsonPath": ".metadata.creationTimestamp",
                    "format": "date-time",
                    "description": "d",
                    "priority": 1,
                },
                {"name": "B", "type": "string", "jsonPath": ".spec.b", "priority": 0, "format": ""},
            ]
        )
    ),
    "columns-wrong": crd(
        version(additionalPrinterColumns=[{}, {"name": "A", "type": "text", "jsonPath": "spec", "format": "odd"}])
    ),
    "selectable": crd(
        version(
            schema=of_spec(a=STRING, b=INTEGER, c={"type": "boolean"}),
            selectableFields=[{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.b"}, {"jsonPath": ".spec.c"}],
        )
    ),
    "selectable-wrong": crd(
        version(
            schema=obj(
                spec=obj(a=STRING, b=obj(), c=array(STRING), d={"type": "object", "additionalProperties": STRING}),
                metadata=obj(name=STRING),
            ),
            selectableFields=[
                {},
                {"jsonPath": "spec.a"},
                {"jsonPath": ".spec.x"},
                {"jsonPath": ".spec.b"},
                {"jsonPath": ".spec.c[0]"},
                {"jsonPath": ".spec['a']"},
                {"jsonPath": ".metadata.name"},
                {"jsonPath": ".spec.a"},
                {"jsonPath": ".spec.a"},
                {"jsonPath": ".spec."},
                {"jsonPath": ".spec.d.x"},
                {"jsonPath": ".spec.a.b"},
            ],
        )
    ),
    "selectable-many": crd(
        version(
            schema=of_spec(**{f"f{at}": STRING for at in range(10)}),
            selectableFields=[{"jsonPath": f".spec.f{at}"} for at in range(9)],
        )
    ),
    "conversion-none": crd(conversion={"strategy": "None"}),
    "conversion-empty": crd(conversion={}),
    "conversion-unknown": crd(conversion={"strategy": "Magic"}),
    "conversion-none-with-a-webhook": crd(
        conversion={
            "strategy": "None",
            "webhook": {"clientConfig": {"url": "https://example.com"}, "conversionReviewVersions": ["v1"]},
        }
    ),
    "conversion-none-with-an-empty-webhook": crd(conversion={"strategy": "None", "webhook": {}}),
    "conversion-webhook": crd(
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {
                    "service": {"name": "a", "namespace": "b", "path": "/convert"},
                    "caBundle": base64.b64encode(b"no pem").decode(),
                },
                "conversionReviewVersions": ["v1", "v1beta1"],
            },
        }
    ),
    "conversion-webhook-missing": crd(conversion={"strategy": "Webhook"}),
    "conversion-webhook-empty": crd(
        conversion={"strategy": "Webhook", "webhook": {"clientConfig": {}, "conversionReviewVersions": []}}
    ),
    "conversion-webhook-both": crd(
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"url": "https://example.com", "service": {"name": "a", "namespace": "b"}},
                "conversionReviewVersions": ["v2"],
            },
        }
    ),
    "conversion-service-wrong": crd(
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"service": {"name": "", "namespace": "b", "port": 0, "path": "a//B/"}},
                "conversionReviewVersions": ["v1", "v1", "V"],
            },
        }
    ),
    "conversion-service-without-namespace": crd(
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"service": {"name": "a", "port": 70000, "path": "//"}},
                "conversionReviewVersions": ["v1"],
            },
        }
    ),
    "conversion-url-wrong": crd(
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"url": "http://user:pass@example.com/x?y=1#z"},
                "conversionReviewVersions": ["v1"],
            },
        }
    ),
    "conversion-url-without-a-host": crd(
        conversion={
            "strategy": "Webhook",
            "webhook": {"clientConfig": {"url": "https:///x"}, "conversionReviewVersions": ["v1"]},
        }
    ),
    "conversion-url-none": crd(
        conversion={
            "strategy": "Webhook",
            "webhook": {"clientConfig": {"url": ":x"}, "conversionReviewVersions": ["v1"]},
        }
    ),
    "status-given": crd()
    | {
        "status": {
            "conditions": [{"type": "Established", "status": "True"}],
            "acceptedNames": {"plural": "x", "kind": "Y"},
            "storedVersions": ["v9"],
        }
    },
    "approved": crd(
        group="{u}.k8s.io",
        metadata={
            "name": "things.{u}.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"},
        },
    ),
    "approval-missing": crd(group="{u}.k8s.io", metadata={"name": "things.{u}.k8s.io"}),
    "approval-bypassed": crd(
        group="{u}.kubernetes.io",
        metadata={
            "name": "things.{u}.kubernetes.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, an experiment"},
        },
    ),
    "approval-wrong": crd(
        group="{u}.k8s.io",
        metadata={"name": "things.{u}.k8s.io", "annotations": {"api-approved.kubernetes.io": "surely"}},
    ),
    "no-spec": {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
    },
    "unknown-fields": crd(color="red") | {"color": "red"},
    "many-mistakes": crd(
        version("V1", schema=None),
        group="x",
        scope="",
        names={"plural": "Things", "kind": "thing list"},
        conversion={"strategy": ""},
        metadata={"name": "x"},
    ),
    "schema-of-wrong-type": crd(version(schema=of_spec(a={"type": 1}))),
    "items-of-wrong-type": crd(version(schema=of_spec(a=array({"type": 1})))),
    "values-of-wrong-type": crd(version(schema=of_spec(a={"type": "object", "additionalProperties": "x"}))),
}


def settled(body: Any) -> Any:
    """What of an answer does not change while a server takes a definition in."""
    if not isinstance(body, dict) or body.get("kind") != "CustomResourceDefinition":
        return body
    kept = {name: body["metadata"].get(name) for name in ("name", "generation", "labels", "annotations", "finalizers")}
    status = body.get("status", {})
    return {"metadata": kept, "spec": body["spec"], "stored": status.get("storedVersions")}


TWO = crd(version(schema=of_spec(a=STRING, b=INTEGER)), version("v2", of_spec(a=STRING), storage=False))
#: Changes of `TWO`.
CHANGES: dict[str, Any] = {
    "a-label": {"metadata": {"labels": {"a": "1"}}},
    "a-finalizer": {"metadata": {"finalizers": ["hold"]}},
    "the-group": {"spec": {"group": "other.example.com"}},
    "the-plural": {"spec": {"names": {"plural": "others"}}},
    "short-names": {"spec": {"names": {"shortNames": ["th"]}}},
    "the-storage-version": {
        "spec": {
            "versions": [
                TWO["spec"]["versions"][0] | {"storage": False},
                TWO["spec"]["versions"][1] | {"storage": True},
            ]
        }
    },
    "no-storage-version": {
        "spec": {"versions": [TWO["spec"]["versions"][0] | {"storage": False}, TWO["spec"]["versions"][1]]}
    },
    "without-a-version": {"spec": {"versions": [TWO["spec"]["versions"][0]]}},
    "without-the-stored-version": {"spec": {"versions": [TWO["spec"]["versions"][1] | {"storage": True}]}},
    "a-bad-schema": {"spec": {"versions": [version(schema=of_spec(a={"type": "text"}))]}},
    "an-unknown-format": {"spec": {"versions": [version(schema=of_spec(a=STRING | {"format": "color"}))]}},
    "nothing": {"spec": {"scope": "Namespaced"}},
    "the-conversion": {"spec": {"conversion": {"strategy": "Webhook"}}},
    "preserving": {"spec": {"preserveUnknownFields": True}},
    "the-status": {"status": {"storedVersions": ["v7"]}},
}
#: Statuses that are written to `TWO`.
STATUSES: dict[str, Any] = {
    "accepted-names-wrong": {
        "acceptedNames": {
            "plural": "Things",
            "kind": "a b",
            "listKind": "x y",
            "shortNames": ["B"],
            "categories": ["C"],
        }
    },
    "accepted-names-alike": {"acceptedNames": {"kind": "Thing", "listKind": "Thing"}},
}

SCENARIOS = [
    *(
        scenario(f"schema-{name}", "Kinds, dryRun", post(CRDS, crd(version(schema=schema)), dryRun="All"))
        for name, schema in GOOD.items()
    ),
    *(
        scenario(
            f"bad-schema-{name}", "Kinds, dryRun, Status errors", post(CRDS, crd(version(schema=schema)), dryRun="All"),
            post(CRDS, crd(version(schema=schema, subresources={"status": {}}), version("v2", storage=False)), dryRun="All"),
        )
        for name, schema in BAD.items()
    ),
    *(scenario(f"spec-{name}", "Kinds, dryRun, Status errors, Metadata", post(CRDS, body, dryRun="All")) for name, body in SPECS.items()),
    *(
        scenario(
            f"change-{name}", "Kinds, Update, generation, No-op writes, Patch",
            post(CRDS, TWO, focus=settled), patch(ONE, change, focus=settled), patch(ONE, change, dryRun="All", focus=settled), get(ONE, focus=settled),
        )
        for name, change in CHANGES.items()
    ),
    *(
        scenario(
            f"status-{name}", "Subresources, Status errors",
            post(CRDS, TWO, focus=settled), patch(f"{ONE}/status", {"status": status}, focus=settled), get(f"{ONE}/status", focus=settled),
        )
        for name, status in STATUSES.items()
    ),
    scenario(
        "status-stored-versions", "Subresources",
        post(CRDS, TWO, focus=settled), patch(f"{ONE}/status", {"status": {"storedVersions": ["v2"]}, "metadata": {"labels": {"a": "1"}}, "spec": {"scope": "Cluster"}}, focus=settled),
        patch(ONE, {"spec": {"names": {"shortNames": ["x"]}}}, focus=settled),
        patch(f"{ONE}/status", {"status": {"storedVersions": None}}, focus=settled), get(ONE, focus=settled),
        patch(f"{ONE}/status", {"status": {"storedVersions": ["v1", "v3"]}}, focus=settled),
        patch(ONE, {"metadata": {"labels": {"b": "1"}}}, focus=settled),
    ),
    scenario(
        "what-is-served-stays", "Kinds, Update, Status errors",
        # Served as soon as its names are accepted, which is before it is established.
        watch("crd", CRDS, fieldSelector=f"metadata.name={NAME}"), post(CRDS, TWO, focus=settled), frames("crd", 3), Close("crd"),
        Until(get(f"/apis/{GROUP}/v1/things"), 200),
        patch(ONE, {"spec": {"scope": "Cluster"}}), patch(ONE, {"spec": {"names": {"kind": "Other", "listKind": "OtherList"}}}),
        patch(ONE, {"spec": {"names": {"singular": "other", "shortNames": ["ot"]}}}, focus=settled),
        patch(ONE, {"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://example.com", "caBundle": "bm8gcGVt"}, "conversionReviewVersions": ["v1"]}}}}),
        patch(ONE, {"spec": {"versions": [{"name": "v1", "served": False, "storage": True}]}}), get(ONE, focus=settled),
    ),
    scenario(
        "replaced", "Kinds, Update, No-op writes, generation, Subresources",
        # Its conditions are written in two steps after it was made.
        watch("crd", CRDS, fieldSelector=f"metadata.name={NAME}"), post(CRDS, TWO, focus=settled), frames("crd", 3), Close("crd"),
        Until(get(f"/apis/{GROUP}/v1/things"), 200), get(ONE, as_="a", focus=settled),
        put(ONE, TWO | {"metadata": {"name": NAME, "resourceVersion": "$rv:a"}}, focus=settled),
        put(ONE, crd(scope="Namespaced", metadata={"resourceVersion": "$rv:a"}), as_="b", focus=settled),
        put(ONE, TWO | {"metadata": {"name": NAME, "resourceVersion": "1"}}),
        get(ONE, as_="c", focus=settled),
        put(f"{ONE}/status", crd(metadata={"resourceVersion": "$rv:c", "labels": {"a": "1"}}, scope="Cluster") | {"status": {"acceptedNames": {"plural": "X"}}}),
        get(ONE, focus=settled),
    ),
    scenario("update-without-a-version", "Update", post(CRDS, TWO, focus=settled), put(ONE, TWO), put(f"{ONE}/status", TWO)),
    scenario("created-twice", "Kinds, Status errors", post(CRDS, crd(), focus=settled), post(CRDS, crd()), post(CRDS, crd(), dryRun="All")),
    scenario("not-there", "Status errors", get(ONE), patch(ONE, {}), put(ONE, crd(metadata={"resourceVersion": "1"})), patch(f"{ONE}/status", {})),
]  # fmt: skip
