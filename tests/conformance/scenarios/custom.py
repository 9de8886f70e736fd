"""Custom resources: the class `samples.site.Site`, which the engine knows by its CRD and the embedded server directly."""

from __future__ import annotations

from typing import Any

from conformance.bodies import CM, merged
from conformance.scenario import delete, frames, get, patch, post, put, scenario, watch

from samples.site import GROUP

V1 = f"/apis/{GROUP}/v1"
SITES = f"{V1}/namespaces/{{ns}}/sites"
ONE = f"{SITES}/a"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def site(name: str = "a", **spec: Any) -> dict[str, Any]:
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Site", "metadata": {"name": name}}
    return body | {"spec": {"image": "example.com/web:1"} | spec}


#: What a spec may hold, and what it may not: of a wrong type, outside of its bounds, unknown, null, twice. One mistake an
#: object: the engine tells several in the order of a Go map, which is another one each time.
SPECS: dict[str, dict[str, Any]] = {
    "boolean-for-string": {"image": True},
    "number-for-string": {"image": 7},
    "string-for-number": {"replicas": "3"},
    "fraction-for-number": {"replicas": 1.5},
    "whole-fraction": {"replicas": 2.0},
    "below-the-minimum": {"replicas": -1},
    "above-the-maximum": {"replicas": 51},
    "not-in-the-enumeration": {"mode": "lazy"},
    "null-for-what-is-required": {"image": None},
    "null-for-a-default": {"mode": None},
    "null-for-the-rest": {"memory": None},
    "object-for-list": {"ports": {"name": "http", "port": 80}},
    "string-for-list": {"ports": "80"},
    "list-of-strings": {"ports": ["http"]},
    "list-with-null": {"ports": [None]},
    "key-missing": {"ports": [{"port": 80}]},
    "key-twice": {"ports": [{"name": "http", "port": 80}, {"name": "http", "port": 81}]},
    "part-missing": {"ports": [{"name": "http"}]},
    "part-out-of-bounds": {"ports": [{"name": "http", "port": 0}, {"name": "https", "port": 65536}]},
    "part-of-wrong-type": {"routes": [{"path": 1}]},
    "quantity-as-number": {"memory": 5},
    "quantity-as-text": {"memory": "1Gi"},
    "no-quantity": {"memory": "much"},
    "quantity-as-object": {"memory": {}},
    "unknown-field": {"color": "red"},
    "unknown-field-below": {"routes": [{"path": "/", "color": "red"}]},
    "preserved": {"settings": {"a": {"b": [1, None, "x"]}, "c": None}},
    "list-for-object": {"settings": []},
}

STATUSES: dict[str, Any] = {
    "good": {"replicas": 2},
    "of-wrong-type": {"replicas": "2"},
    "a-string": "ready",
    "a-list": [],
    "null": None,
    "unknown-field": {"replicas": 1, "color": "red"},
}

SCENARIOS = [
    *(
        scenario(
            f"spec-{name}", "Kinds, Patch, Update, Status errors, fieldValidation",
            post(SITES, site("new", **spec)), get(f"{SITES}/new"),
            post(SITES, site("strict", **spec), fieldValidation="Strict"),
            post(SITES, site("ignore", **spec), fieldValidation="Ignore"),
            post(SITES, site(), as_="a"),
            patch(ONE, {"spec": spec}), get(ONE, as_="a"),
            put(ONE, merged(site(**spec), {"metadata": {"resourceVersion": "$rv:a"}}), as_="a"),
            patch(ONE, [{"op": "replace", "path": "/spec", "value": {"image": "x"} | spec}], "json"),
            patch(ONE, {"spec": spec}, fieldValidation="Strict"),
            get(ONE),
        )
        for name, spec in SPECS.items()
    ),
    *(
        scenario(
            f"status-{name}", "Subresources, Patch, Status errors",
            post(SITES, merged(site(), {"status": status} if status is not None else {})),
            patch(f"{ONE}/status", {"status": status}), patch(ONE, {"status": status}),
            get(f"{ONE}/status", as_="a"),
            put(f"{ONE}/status", site() | {"metadata": {"name": "a", "resourceVersion": "$rv:a"}, "status": status}),
            get(ONE),
        )
        for name, status in STATUSES.items()
    ),
    scenario(
        "without-a-spec", "Kinds, Status errors",
        post(SITES, {name: value for name, value in site().items() if name != "spec"}),
        post(SITES, site() | {"spec": None}), post(SITES, site() | {"spec": "x"}), post(SITES, site() | {"spec": []}),
        post(SITES, site()), patch(ONE, {"spec": None}), patch(ONE, {"spec": "x"}),
        patch(ONE, [{"op": "remove", "path": "/spec/image"}], "json"), patch(ONE, [{"op": "remove", "path": "/spec"}], "json"),
        get(ONE),
    ),
    scenario(
        "life", "Kinds, Update, generation, No-op writes, Delete",
        post(SITES, site(replicas=2), as_="a"), post(SITES, site()), put(ONE, site()),
        put(ONE, merged(site(), {"metadata": {"resourceVersion": "$rv:a"}}), as_="b"),
        put(ONE, merged(site(), {"metadata": {"resourceVersion": "$rv:a"}})),
        put(ONE, merged(site(), {"metadata": {"resourceVersion": "$rv:b"}})),
        put(f"{SITES}/none", merged(site("none"), {"metadata": {"resourceVersion": "$rv:b"}})),
        patch(ONE, {"metadata": {"labels": {"a": "1"}, "finalizers": ["example.com/hold"]}}),
        patch(ONE, {"spec": {"replicas": 5}}, dryRun="All"),
        get(SITES), get(SITES, labelSelector="a=1", limit=1), get(ONE, accept=TABLE), get(SITES, fieldSelector="spec.mode=static"),
        delete(ONE), get(ONE), patch(ONE, {"metadata": {"finalizers": None}}), get(ONE), delete(ONE),
    ),
    scenario(
        "patches-of-the-root", "Patch, Status errors, Subresources",
        post(SITES, site(replicas=2)),
        *(patch(f"{ONE}{part}", [{"op": "replace", "path": "", "value": value}], "json") for part in ("", "/scale", "/status") for value in (None, [], "x", {})),
        get(ONE),
    ),
    scenario("strategic-merge-patch", "Patch", post(SITES, site()), patch(ONE, {"spec": {"replicas": 5}}, "strategic")),
    scenario(
        "scale", "Subresources, Status errors",
        post(SITES, site(replicas=2)), get(f"{ONE}/scale"), patch(f"{ONE}/scale", {"spec": {"replicas": 7}}),
        patch(f"{ONE}/scale", {"spec": {"replicas": 51}}), patch(f"{ONE}/scale", {"spec": {"replicas": -1}}), get(ONE),
        patch(f"{ONE}/status", {"status": {"replicas": 3, "readyReplicas": 1}}), get(f"{ONE}/scale"),
    ),
    scenario(
        "watch", "Watch stream, Kinds",
        post(SITES, site("old"), as_="old"), watch("w", SITES, resourceVersion="$rv:old"),
        post(SITES, site()), patch(ONE, {"spec": {"replicas": 3}}), patch(ONE, {"spec": {"replicas": True}}), delete(ONE),
        frames("w", 3),
    ),
    scenario(
        "metadata", "Metadata, Kinds, Status errors",
        post(SITES, merged(site(), {"metadata": {"labels": {"a": 1}}})), post(SITES, site("Upper")),
        post(SITES, merged(site(), {"metadata": {"color": "red"}})), post(SITES, site() | {"kind": "Cite"}),
        *(post(SITES, site() | {"apiVersion": f"{GROUP}/v2"}, fieldValidation=strictness) for strictness in ("Strict", "Ignore")),
        post(SITES, site() | {"color": "red"}),
        patch(ONE, {"metadata": {"name": "b"}}), patch(ONE, {"metadata": {"uid": "x"}}), patch(ONE, {"kind": "Cite"}),
        patch(ONE, {"metadata": {"labels": {"a": 1}}}), patch(ONE, {"color": "red"}), get(ONE),
    ),
    scenario(
        "what-the-group-does-not-have", "Status errors, Discovery",
        get(f"{V1}/nope"), get(f"{V1}/nope/a"), get(f"{V1}/namespaces/{{ns}}/nope"), get(f"{V1}/namespaces/{{ns}}/nope/a"),
        post(f"{V1}/namespaces/{{ns}}/nope", site()), delete(f"{V1}/namespaces/{{ns}}/nope/a"), get(f"{V1}/namespaces/{{ns}}"),
        get(f"{V1}/nope", watch="true"), get(f"/apis/{GROUP}/v2"), get(f"/apis/{GROUP}/v2/sites"),
        get(f"/apis/{GROUP}/v2/namespaces/{{ns}}/sites"), get(f"{SITES}/a/nope"), get(f"{V1}/sites/a"), post(f"{V1}/sites", site()),
        post(ONE, site()), put(SITES, site()), patch(SITES, {}), get(f"/apis/{GROUP}"), get(f"/apis/{GROUP}/"), get(f"{V1}/"), get(f"{ONE}/"),
        get("/apis/nobody.example.com/v1/nope"), get(f"{CM}/a/nope"),
    ),
]  # fmt: skip
