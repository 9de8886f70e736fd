"""What a server says about itself: versions, health, groups, resources, schemas."""

from __future__ import annotations

from typing import Any

from conformance.scenario import Scenario, call, get, lookup, scenario

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
GROUPS = {
    "apps": "v1",
    "batch": "v1",
    "policy": "v1",
    "coordination.k8s.io": "v1",
    "events.k8s.io": "v1",
    "rbac.authorization.k8s.io": "v1",
}
CORE = (
    "namespaces", "configmaps", "secrets", "services", "serviceaccounts", "pods", "events", "persistentvolumeclaims",
)  # fmt: skip


def _resources(names: tuple[str, ...]) -> Any:
    """The resources of these names, with their status and scale."""
    wanted = {f"{name}{part}" for name in names for part in ("", "/status", "/scale")}

    def focus(tree: Any) -> Any:
        found = [
            {key: value for key, value in one.items() if key != "storageVersionHash"}
            for one in tree["resources"]
            if one["name"] in wanted
        ]
        return {**tree, "resources": sorted(found, key=lambda one: one["name"])}

    return focus


def _group(name: str) -> Any:
    def focus(tree: Any) -> Any:
        return {**tree, "groups": [one for one in tree["groups"] if one["name"] == name]}

    return focus


def _aggregated(group: str) -> Any:
    """What aggregated discovery says of a group, its other versions and subresources aside."""

    def focus(tree: Any) -> Any:
        found = [one for one in tree["items"] if one["metadata"].get("name", "") == group]
        for one in found:
            one["versions"] = [version for version in one["versions"] if version["version"] == "v1"]
            for version in one["versions"]:
                kept = [r for r in version["resources"] if group or r["resource"] in CORE]
                for resource in kept:
                    told = resource.get("subresources", [])
                    resource["subresources"] = [s for s in told if s["subresource"] in {"status", "scale"}]
                version["resources"] = sorted(kept, key=lambda r: r["resource"])
        return {**tree, "metadata": {}, "items": found}

    return focus


def _keys(tree: Any) -> Any:
    return sorted(tree)


def _operations(path: str) -> Any:
    """What kubectl reads of the schema: the patch operation and its parameters."""

    def focus(tree: Any) -> Any:
        operation = tree["paths"][path]["patch"]
        kind = operation["x-kubernetes-group-version-kind"]
        parameters = [one.get("name") for one in operation.get("parameters", [])]
        parameters += [one.get("name") for one in tree["paths"][path].get("parameters", [])]
        return {
            "kind": kind,
            "has fieldValidation": "fieldValidation" in parameters,
            "content": sorted(operation["requestBody"]["content"]),
        }

    return focus


def _schema(name: str) -> Any:
    def focus(tree: Any) -> Any:
        schema = lookup(tree, "components.schemas")[name]
        return {"gvk": schema.get("x-kubernetes-group-version-kind"), "properties": sorted(schema["properties"])}

    return focus


def _scenarios() -> list[Scenario]:
    made = [
        scenario(
            f"group-{group}",
            "Discovery",
            get(f"/apis/{group}"),
            get(f"/apis/{group}/"),
            get("/apis", focus=_group(group)),
        )
        for group in GROUPS
    ]
    resources = {
        "apps": ("deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"),
        "batch": ("jobs", "cronjobs"),
        "policy": ("poddisruptionbudgets",),
        "coordination.k8s.io": ("leases",),
        "events.k8s.io": ("events",),
        "rbac.authorization.k8s.io": ("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
    }
    made += [
        scenario(
            f"resources-of-{group}",
            "Discovery",
            get(f"/apis/{group}/v1", focus=_resources(names)),
            get(f"/apis/{group}/v1/", focus=_resources(names)),
        )
        for group, names in resources.items()
    ]
    made += [
        scenario(f"aggregated-{group}", "Discovery", get("/apis", accept=AGGREGATED, focus=_aggregated(group)))
        for group in GROUPS
    ]
    return made


SCENARIOS = [
    *_scenarios(),
    scenario(
        "core-resources",
        "Discovery",
        get("/api"),
        get("/api/"),
        *(get("/api/v1", focus=_resources((name,))) for name in CORE),
        get("/api/v1/", focus=_resources(CORE)),
    ),
    scenario(
        "aggregated-core",
        "Discovery",
        get("/api", accept=AGGREGATED, focus=_aggregated("")),
        get("/api", accept=f"{AGGREGATED},application/json", focus=_aggregated("")),
        get("/api", accept="application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,application/json"),
        get("/api", accept="application/json"),
        get("/api", accept="*/*"),
    ),
    scenario(
        "not-there",
        "Discovery, Status errors",
        get("/apis/nothing.example.com"),
        get("/apis/nothing.example.com/v1"),
        get("/apis/apps/v9"),
        get("/api/v9"),
        get("/apis/apps/v1/gadgets"),
        get("/api/v1/gadgets"),
        get("/api/v1/namespaces/default/gadgets"),
        get("/api/v1/namespaces/default/gadgets/a"),
        get("/nothing"),
        get("/apis/apps/v1/namespaces/default/deployments/a/gadget"),
        call("DELETE", "/apis/apps/v9"),
        call("POST", "/apis/nothing.example.com/v1/things", {"kind": "Thing"}),
    ),
    scenario("version", "Health", get("/version", focus=_keys), get("/version/", focus=_keys)),
    scenario("healthz", "Health", get("/healthz"), get("/healthz/ping")),
    scenario("livez", "Health", get("/livez"), get("/livez/ping")),
    scenario("readyz", "Health", get("/readyz"), get("/readyz/ping")),
    scenario(
        "health-not-there",
        "Health, Status errors",
        get("/healthz/nothing"),
        get("/readyz/nothing"),
        get("/livez/nothing"),
    ),
    scenario(
        "openapi-index",
        "OpenAPI v3",
        get(
            "/openapi/v3",
            focus=lambda tree: [p for p in ("api/v1", "apis/apps/v1", "apis/batch/v1") if p in tree["paths"]],
        ),
    ),
    scenario(
        "openapi-of-configmaps",
        "OpenAPI v3",
        get("/openapi/v3/api/v1", focus=_operations("/api/v1/namespaces/{namespace}/configmaps/{name}")),
        get("/openapi/v3/api/v1", focus=_schema("io.k8s.api.core.v1.ConfigMap")),
        get("/openapi/v3/api/v1", focus=_schema("io.k8s.api.core.v1.PodSpec")),
    ),
    scenario(
        "openapi-of-deployments",
        "OpenAPI v3",
        get("/openapi/v3/apis/apps/v1", focus=_operations("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")),
        get("/openapi/v3/apis/apps/v1", focus=_schema("io.k8s.api.apps.v1.DeploymentSpec")),
        get("/openapi/v3/apis/apps/v9"),
    ),
]
