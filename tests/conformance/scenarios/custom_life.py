"""CustomResourceDefinitions at work: how they come to be served, in which names and versions, and how they go."""

from __future__ import annotations

from conformance.boats import (
    ANYTHING,
    BOAT,
    BOATS,
    CRD,
    CRDS,
    GROUP,
    NEWER,
    NUMBER,
    PARTIAL,
    ROWS,
    STRING,
    TABLE,
    TWO,
    Tree,
    boat,
    changed,
    conditions,
    crd,
    followed,
    installed,
    obj,
    served,
    tried,
    version,
)
from conformance.scenario import Until, delete, ends, frames, get, patch, post, put, scenario, watch


def webhook(bundle: str | None = None) -> Tree:
    """A conversion by a webhook that does not answer."""
    client = {"url": "https://127.0.0.1:1/convert"} | ({"caBundle": bundle} if bundle else {})
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}


SCENARIOS = [
    # life
    scenario(
        "made-and-served", ROWS,
        followed(), post(CRDS, crd(), as_="crd"), frames("crd", 3), get(CRD), Until(get(BOATS), 200),
        get(BOATS), post(BOATS, boat(spec={"a": 1})), get(BOAT), served("v1"), get(f"/apis/{GROUP}"),
    ),
    scenario("tried-only", "dryRun, Kinds", post(CRDS, crd(), dryRun="All"), get(CRD), get(BOATS)),
    scenario(
        "deleted-without-instances", "Delete, Kinds",
        installed(), delete(CRD), frames("crd", 3), get(CRD), Until(get(BOATS), 404), get(BOATS),
        served("v1"),
    ),
    scenario(
        "deleted-with-instances", "Delete, Kinds",
        installed(), post(BOATS, boat("a")), post(BOATS, boat("b")), watch("boats", BOATS), frames("boats", 2),
        delete(CRD), frames("crd", 3), frames("boats", 2), get(CRD), Until(get(BOATS), 404),
    ),
    scenario(
        "deleted-with-a-finalizer", "Delete, Kinds",
        installed(), post(BOATS, boat("a", metadata={"finalizers": ["test.steersman.dev/wait"]})),
        watch("boats", BOATS), frames("boats", 1), delete(CRD), frames("crd", 2), frames("boats", 1),
        post(BOATS, boat("b")), get(BOATS), delete(CRD),
        patch(BOAT, {"metadata": {"finalizers": None}}), frames("boats", 1), frames("crd", 2),
    ),
    scenario(
        "deleted-by-a-dry-run", "dryRun, Delete",
        installed(), delete(CRD, dryRun="All"), get(CRD), post(BOATS, boat("a")),
    ),
    scenario(
        "deleted-with-its-own-finalizer", "Delete, Kinds",
        post(CRDS, crd()), Until(get(BOATS), 200), patch(CRD, {"metadata": {"finalizers": ["test.steersman.dev/wait"]}}),
        # whether its condition changed within a second is chance, and so is whether it is gone when the patch is answered
        delete(CRD), Until(tried(boat("a")), 403), get(CRD, focus=conditions), get(BOATS),
        patch(CRD, {"metadata": {"finalizers": None}}, focus=lambda tree: tree["kind"]), get(CRD), Until(get(BOATS), 404),
    ),
    scenario(
        "deleted-with-preconditions", "Delete",
        installed(), delete(CRD, {"preconditions": {"uid": "x"}}), delete(CRD, {"preconditions": {"resourceVersion": "1"}}),
        delete(CRD, {"preconditions": {"uid": "$uid:crd"}, "propagationPolicy": "Foreground"}), frames("crd", 3),
    ),
    scenario(
        "made-again", "Delete, Kinds",
        installed(), post(BOATS, boat("a")), delete(CRD), frames("crd", 3), Until(get(BOATS), 404),
        post(CRDS, crd()), frames("crd", 3), Until(get(BOATS), 200), get(BOATS),
    ),
    scenario(
        "cluster-wide", "Kinds",
        followed(), post(CRDS, crd(scope="Cluster")), frames("crd", 3), Until(get(f"/apis/{GROUP}/v1/boats"), 200),
        post(f"/apis/{GROUP}/v1/boats", boat()), get(f"/apis/{GROUP}/v1/boats/a"), post(BOATS, boat()), get(BOATS),
        served("v1"),
    ),
    scenario(
        "watch-ends-with-the-definition", "Watch stream, Kinds",
        installed(), watch("boats", BOATS, timeoutSeconds=10), delete(CRD), frames("crd", 3), ends("boats"),
    ),
    scenario(
        "watch-ends-with-a-change", "Watch stream, Kinds",
        installed(), watch("boats", BOATS, timeoutSeconds=10),
        changed(version(schema=obj(spec=obj(name=STRING)))), ends("boats"),
    ),
    scenario(
        "watch-outlives-a-status", "Watch stream, Kinds",
        installed(), watch("boats", BOATS), patch(CRD, {"metadata": {"labels": {"a": "b"}}}), frames("crd", 1),
        post(BOATS, boat("a")), frames("boats", 1),
    ),
    # names
    *(
        scenario(
            f"names-{name}", "Kinds",
            installed(names={"shortNames": ["bt", "bo"], "categories": ["all"]}),
            followed(f"ships.{GROUP}", watched="other"),
            post(CRDS, crd(plural="ships", names=names)), frames("other", 2), served("v1"),
            get(f"/apis/{GROUP}/v1/namespaces/{{ns}}/ships"), delete(f"{CRDS}/ships.{GROUP}"), frames("other", 3),
        )
        for name, names in {
            "kind-taken": {"kind": "Boat", "listKind": "ShipList", "singular": "ship"},
            "list-kind-taken": {"kind": "Ship", "listKind": "BoatList"},
            "singular-taken": {"kind": "Ship", "singular": "boat"},
            "singular-is-a-plural": {"kind": "Ship", "singular": "boats"},
            "short-name-taken": {"kind": "Ship", "shortNames": ["sh", "bt"]},
            "short-names-taken": {"kind": "Ship", "shortNames": ["bt", "bo"]},
            "everything-taken": {"kind": "Boat", "shortNames": ["bt"]},
            "list-kind-is-a-kind": {"kind": "Ship", "listKind": "Boat"},
        }.items()
    ),
    scenario(
        "names-free-again", "Kinds",
        installed(), followed(f"ships.{GROUP}", watched="other"), post(CRDS, crd(plural="ships")), frames("other", 2),
        delete(CRD), frames("crd", 3), frames("other", 2), get(f"{CRDS}/ships.{GROUP}"),
        Until(get(f"/apis/{GROUP}/v1/namespaces/{{ns}}/ships"), 200),
    ),
    scenario(
        "names-changed", "Kinds",
        installed(names={"shortNames": ["bt"]}),
        patch(CRD, {"spec": {"names": {"shortNames": ["bo"], "categories": ["sea"]}}}), frames("crd", 2), get(CRD),
    ),
    scenario(
        "names-of-another-group", "Kinds",
        installed(), post(CRDS, crd(plural="boats") | {
            "metadata": {"name": "boats.{u2}.test.steersman.dev"},
            "spec": crd()["spec"] | {"group": "{u2}.test.steersman.dev"},
        }), Until(get("/apis/{u2}.test.steersman.dev/v1/boats"), 200),
    ),
    # Kubernetes' own groups
    *(
        scenario(
            f"approval-{name}", "Kinds",
            post(CRDS, crd() | {
                "metadata": {"name": "boats.{u}.k8s.io", "annotations": {"api-approved.kubernetes.io": approval}},
                "spec": crd()["spec"] | {"group": "{u}.k8s.io"},
            }), Until(get("/apis/{u}.k8s.io/v1/boats"), 200 if name != "nonsense" else 404),
        )
        for name, approval in {
            "given": "https://github.com/kubernetes/kubernetes/pull/1",
            "not-given": "unapproved, a test",
            "nonsense": "yes",
        }.items()
    ),
    # versions
    scenario(
        "versions-none", "Kinds",
        installed(*TWO), post(BOATS, boat("a", spec={"name": "x", "crew": 1})),
        post(NEWER, boat("b", "v2", spec={"name": "y", "masts": 3})),
        get(BOAT), get(f"{NEWER}/a"), get(f"{BOATS}/b"), get(f"{NEWER}/b"), get(BOATS), get(NEWER),
        get(f"{NEWER}/a", accept=PARTIAL), get(NEWER, accept=PARTIAL), get(NEWER, accept=TABLE),
        get(f"/apis/{GROUP}"), served("v2"), get(CRD),
    ),
    scenario(
        "versions-watched", "Kinds, Watch stream",
        installed(*TWO), watch("old", BOATS), watch("new", NEWER), post(BOATS, boat("a", spec={"name": "x"})),
        frames("old", 1), frames("new", 1), patch(f"{NEWER}/a", {"spec": {"crew": 3}}),
        patch(f"{NEWER}/a", {"metadata": {"labels": {"a": "b"}}}), frames("old", 2), frames("new", 2),
        delete(f"{NEWER}/a"), frames("old", 1), frames("new", 1),
    ),
    scenario(
        "versions-mixed-up", "Kinds, Status errors",
        installed(*TWO), post(BOATS, boat("a", "v2")), post(NEWER, boat("a", "v1")), post(BOATS, boat("a", "v3")),
        post(BOATS, boat("a", "v1"), as_="a"), put(BOAT, boat("a", "v2", metadata={"resourceVersion": "$rv:a"})),
        get(BOAT.replace("/v1/", "/v3/")),
    ),
    scenario(
        "versions-stored-in-another", "Kinds, No-op writes, generation",
        installed(*TWO), post(BOATS, boat("a", spec={"name": "x", "masts": 3}), as_="a"), post(BOATS, boat("b", spec={"name": "y"})),
        changed(
            version(
                "v1", obj(spec=obj(name=STRING, masts={"type": "integer", "default": 1, "maximum": 9})), storage=False
            ),
            version("v2", TWO[1]["schema"]["openAPIV3Schema"]),
            until=tried(boat("z", spec={"masts": 10})), status=422,
        ),
        get(CRD), get(BOAT), get(f"{NEWER}/a"),
        put(BOAT, boat("a", spec={"name": "x", "masts": 3}, metadata={"resourceVersion": "$rv:a"})), get(BOAT),
        get(f"{NEWER}/a"), get(BOATS),
    ),
    scenario(
        "versions-written-anew", "Kinds, No-op writes, generation",
        installed(version("v1"), version("v2", storage=False)), post(BOATS, boat("a", spec={"name": "x"}), as_="a"),
        changed(
            version("v1", obj(spec=ANYTHING, extra=NUMBER), storage=False), version("v2"),
            until=tried(boat("z", extra="x")), status=422,
        ),
        put(BOAT, boat("a", spec={"name": "x"}, metadata={"resourceVersion": "$rv:a"}), as_="a"),
        put(BOAT, boat("a", spec={"name": "x"}, metadata={"resourceVersion": "$rv:a"})), get(f"{NEWER}/a"),
        patch(f"{NEWER}/a", {"metadata": {"finalizers": ["test.steersman.dev/wait"]}}), delete(BOAT), get(f"{NEWER}/a"),
        patch(BOAT, {"metadata": {"finalizers": None}}), get(BOAT),
    ),
    scenario(
        "versions-no-longer-served", "Kinds",
        installed(*TWO), post(BOATS, boat("a", spec={"name": "x"})), watch("new", NEWER), frames("new", 1),
        changed(TWO[0], TWO[1] | {"served": False}), Until(get(NEWER), 404), ends("new"), get(BOAT),
        served("v2"), get(f"/apis/{GROUP}"), get(NEWER),
    ),
    scenario(
        "versions-removed", "Kinds, Status errors",
        installed(*TWO), changed(TWO[1] | {"storage": True}, TWO[0] | {"storage": False}),
        patch(CRD, {"spec": {"versions": [TWO[1] | {"storage": True}]}}),
        patch(f"{CRD}/status", {"status": {"storedVersions": ["v2"]}}), frames("crd", 1),
        patch(CRD, {"spec": {"versions": [TWO[1] | {"storage": True}]}}), frames("crd", 1), get(CRD),
    ),
    scenario(
        "versions-stored-versions", "Kinds, Subresources",
        installed(*TWO), patch(f"{CRD}/status", {"status": {"storedVersions": []}}),
        patch(f"{CRD}/status", {"status": {"storedVersions": ["v2"]}}),
        patch(f"{CRD}/status", {"status": {"storedVersions": ["v1", "v3"]}}), frames("crd", 2),
    ),
    scenario(
        "versions-deprecated", "Kinds",
        installed(
            version("v1", deprecated=True), version("v2", deprecated=True, deprecationWarning="no more", storage=False),
            version("v3", storage=False), version("v2beta1", deprecated=True, storage=False),
        ),
        get(BOATS), get(NEWER), get(BOATS.replace("/v1/", "/v3/")), get(BOATS.replace("/v1/", "/v2beta1/")),
        post(BOATS, boat("a")), get(f"/apis/{GROUP}"),
    ),
    scenario(
        "versions-in-order", "Discovery",
        installed(
            version("v1"), *(version(name, storage=False) for name in ("v10", "v2", "v11alpha1", "v3beta1", "foo1", "v11beta2", "foo10")),
        ),
        get(f"/apis/{GROUP}"),
    ),
    # webhooks
    scenario(
        "conversion-by-an-untrusted-webhook", "Kinds",
        followed(), post(CRDS, crd(conversion=webhook("bm90IGEgY2VydA=="))), frames("crd", 3),
        patch(CRD, {"spec": {"conversion": {"strategy": "None", "webhook": None}}}), frames("crd", 2), Until(get(BOATS), 200),
    ),
    scenario(
        "conversion-by-webhook-of-one-version", "Kinds",
        installed(
            version("v1"),
            conversion=webhook(),
        ),
        post(BOATS, boat("a")), get(BOAT),
    ),
]  # fmt: skip
