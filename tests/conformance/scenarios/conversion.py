"""Conversion webhooks: what they are asked, and what becomes of their answers."""

from __future__ import annotations

from typing import Any

from conformance.boats import BOAT, BOATS, CRD, CRDS, NEWER, boat, crd, version
from conformance.hook_server import scripted
from conformance.scenario import Step, Until, delete, frames, get, patch, post, put, scenario, watch

OLD = f"{NEWER}/a"
UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"
ROWS = "Webhooks, Status errors"


def converted(
    script: dict[str, Any], *, reviews: list[str] | None = None, client: dict[str, Any] | None = None
) -> list[Step]:
    """Define boats in two versions, between which a webhook converts, and create one in the stored version."""
    told = client or {"url": "{hooks}" + scripted(**script), "caBundle": "{ca}"}
    by = {"strategy": "Webhook", "webhook": {"clientConfig": told, "conversionReviewVersions": reviews or ["v1"]}}
    return [
        post(CRDS, crd(version(), version("v2", storage=False), conversion=by), focus=lambda tree: tree["kind"]),
        Until(get(BOATS), 200),
        post(BOATS, boat(spec={"color": "red"}, metadata={"labels": {"a": "b"}}), as_="a"),
    ]


#: Answers of a webhook, by name.
ANSWERS: dict[str, dict[str, Any]] = {
    "set": {"set": {"spec.length": 5}},
    "labels": {"set": {"metadata.labels": {"c": "d"}, "metadata.annotations": {"e": "f"}}},
    "no-labels": {"set": {"metadata.labels": None}},
    "invalid-label": {"set": {"metadata.labels": {"a b": "c"}}},
    "invalid-labels": {"set": {"metadata.labels": {"a b": "c d"}}},
    "invalid-annotation": {"set": {"metadata.annotations": {"a b": "c"}}},
    "label-no-text": {"set": {"metadata.labels": {"a": 5}}},
    "labels-no-map": {"set": {"metadata.labels": "x"}},
    "finalizers": {"set": {"metadata.finalizers": ["example.com/x"], "metadata.generation": 9}},
    "other-name": {"set": {"metadata.name": "b"}},
    "other-namespace": {"set": {"metadata.namespace": "b"}},
    "other-uid": {"set": {"metadata.uid": "b"}},
    "other-kind": {"set": {"kind": "Ship"}},
    "other-version": {"set": {"apiVersion": "v3"}},
    "no-metadata": {"drop": "metadata"},
    "no-objects": {"response": {"convertedObjects": []}},
    "null-objects": {"response": {"convertedObjects": None}},
    "objects-no-list": {"response": {"convertedObjects": {}}},
    "object-null": {"response": {"convertedObjects": [None]}},
    "object-number": {"response": {"convertedObjects": [5]}},
    "result-text": {"response": {"result": "Success"}},
    "no-spec": {"set": {"spec": 5}},
    "more-objects": {"response": {"convertedObjects": [{}, {}]}},
    "failure": {"response": {"result": {"status": "Failure", "message": "as told"}}},
    "failure-without-words": {"response": {"result": {"status": "Failure"}}},
    "no-status": {"response": {"result": {}}},
    "no-response": {"raw": '{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}'},
    "wrong-uid": {"response": {"uid": "other"}},
    "wrong-kind": {"review": {"kind": "Other"}},
    "wrong-version": {"review": {"apiVersion": "apiextensions.k8s.io/v1beta1"}},
    "failed": {"status": 500, "raw": "broken", "type": "text/plain"},
    "not-found": {"status": 404, "raw": "none", "type": "text/plain"},
    "empty": {"raw": ""},
    "garbage": {"raw": "{garbage"},
}  # fmt: skip

SCENARIOS = [
    *[
        scenario(
            name,
            ROWS,
            *converted(script),
            get(OLD),
            post(NEWER, boat("b", "v2", spec={"color": "blue"})),
            get(BOAT, focus=lambda tree: tree["spec"]),
            patch(OLD, {"spec": {"color": "green"}}),
            patch(OLD, boat("a", "v2", spec={"sails": 2}), "apply", fieldManager="me"),
            delete(CRD, focus=lambda tree: tree["kind"]),
        )
        for name, script in ANSWERS.items()
    ],
    scenario(
        "life",
        "Webhooks",
        *converted({"set": {"spec.length": 5}}),
        post(NEWER, boat("b", "v2", spec={"color": "blue"}), as_="b"),
        get(BOATS),
        get(NEWER),
        get(OLD, as_="old"),
        put(OLD, "${old..}"),
        patch(OLD, {"spec": {"color": "green"}}),
        patch(OLD, boat("a", "v2", spec={"sails": 2}), "apply", fieldManager="me"),
        patch(f"{NEWER}/c", boat("c", "v2", spec={"sails": 2}), "apply", fieldManager="me"),
        get(BOAT),
        get(f"{BOATS}/c"),
        get(NEWER, labelSelector="a=b"),
        get(NEWER, limit=1, focus=lambda tree: len(tree["items"])),
        delete(OLD),
        get(NEWER),
        delete(CRD, focus=lambda tree: tree["kind"]),
    ),
    scenario(
        "watched",
        "Webhooks, Watch stream",
        *converted({"set": {"spec.length": 5}}),
        watch("new", NEWER, resourceVersion="$rv:a"),
        post(BOATS, boat("b", spec={"color": "blue"})),
        patch(f"{BOATS}/b", {"spec": {"color": "green"}}),
        delete(f"{BOATS}/b"),
        frames("new", 3),
    ),
    scenario("beta", ROWS, *converted({"set": {"spec.length": 5}, "response": {"uid": "any"}}, reviews=["v1beta1", "v1"]), get(OLD)),
    scenario("unreachable", ROWS, *converted({}, client={"url": "https://127.0.0.1:1/x", "caBundle": "{ca}"}), get(OLD), get(BOAT)),
    scenario(
        "unreachable-and-deleted-unsafely", f"{ROWS}, Delete, dryRun",
        *converted({}, client={"url": "https://127.0.0.1:1/x", "caBundle": "{ca}"}),
        patch(BOAT, {"metadata": {"finalizers": ["test.steersman.dev/wait"]}}, focus=lambda tree: tree["kind"]),
        delete(OLD), delete(BOAT, {UNSAFE: True}), delete(OLD, {UNSAFE: True, "dryRun": ["All"]}), get(BOAT, focus=lambda tree: tree["kind"]),
        delete(OLD, {UNSAFE: True}), delete(OLD, {UNSAFE: True}), get(BOAT),
    ),
    scenario("untrusted", ROWS, *converted({}, client={"url": "{hooks}/e30"}), get(OLD)),
    scenario("without-a-service", ROWS, *converted({}, client={"service": {"namespace": "{ns}", "name": "none"}}), get(OLD)),
]  # fmt: skip
