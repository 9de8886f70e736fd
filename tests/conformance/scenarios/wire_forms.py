"""Endpoints and small forms: OpenID discovery, tables that do not exist, schemas without empty values, health in detail."""

from __future__ import annotations

from typing import Any

from conformance.boats import ANYTHING, BOATS, SCALED, installed, obj, version
from conformance.bodies import CM, DEPLOYMENT, POD, SERVICE_ACCOUNT, Tree, pod, service_account
from conformance.scenario import Call, Close, call, get, lookup, patch, post, put, scenario

from samples.site import GROUP

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
ASKED = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OPENAPI = "/openapi/v3/api/v1"

#: Scalars with tags, and what they are not.
TAGGED = [
    "!!int 5", '!!int "5"', "!!int 0x1F", "!!int x", "!!int 1e3", "!!int 1.0", "!!float 5", '!!float "1.5"', "!!float .inf", "!!float x", '!!bool "true"',
    "!!bool yes", "!!bool x", '!!null ""', "!!null x", "!!str true", "!!binary eA==", "!!binary '!'", "!!binary '/w=='", "!!timestamp 2001-01-01", "! 5", "!x 5", "!!x 5",
    "!<tag:yaml.org,2002:int> '5'",
]  # fmt: skip
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

REVIEWS: dict[str, tuple[str, Tree]] = {
    "access": (f"{AUTHORIZATION}/selfsubjectaccessreviews", {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": ASKED}),
    "access-of-others": (f"{AUTHORIZATION}/subjectaccessreviews", {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {**ASKED, "user": "u"}}),
    "access-in-a-namespace": (f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews", {"kind": "LocalSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {"namespace": "default"}, "spec": {**ASKED, "user": "u"}}),
    "tokens": (f"{AUTHENTICATION}/tokenreviews", {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": "x"}}),
}  # fmt: skip


def _configuration(tree: Any) -> Any:
    """All but the address, which belongs to the server."""
    return {**tree, "jwks_uri": tree["jwks_uri"].partition("://")[2].partition("/")[2]}


def _keys(tree: Any) -> Any:
    """All but the numbers of the key."""
    return [
        {name: len(value) if name in {"kid", "x", "y"} else value for name, value in key.items()}
        for key in tree["keys"]
    ]


def _described(name: str) -> Any:
    """The descriptions of a schema's fields."""

    def focus(tree: Any) -> Any:
        schema = lookup(tree, "components.schemas")[name]
        told = {field: node.get("description") for field, node in schema["properties"].items()}
        return {"": schema.get("description"), **told}

    return focus


def _common(name: str) -> Any:
    """The descriptions of the fields that every object has."""

    def focus(tree: Any) -> Any:
        properties = lookup(tree, "components.schemas")[name]["properties"]
        return {field: properties[field]["description"] for field in ("apiVersion", "kind", "metadata")}

    return focus


def _empty_values(tree: Any) -> Any:
    """What documents never hold: empty lists of parameters, and flags that are off."""
    found = []
    for path, operations in tree["paths"].items():
        for method, operation in operations.items():
            if isinstance(operation, dict):
                found += [(path, method)] if operation.get("parameters") == [] else []
                found += [(path, method)] if operation.get("requestBody", {}).get("required") is False else []
    return found


def _required(path: str) -> Any:
    """Which operations of a path need a body."""

    def focus(tree: Any) -> Any:
        operations = tree["paths"][path]
        return {
            method: operation.get("requestBody", {}).get("required")
            for method, operation in sorted(operations.items())
            if isinstance(operation, dict)
        }

    return focus


def _with(path: str, **headers: str) -> Call:
    return get(path, headers=tuple(headers.items()))


SCENARIOS = [
    scenario(
        "tags-in-yaml", "Kinds, Negotiation, Status errors",
        [post(CM, f"{MAP}data: {{a: {each}}}\n", content="application/yaml", dryRun="All") for each in TAGGED],
        [post(CM, f"{MAP}immutable: {each}\n", content="application/yaml", dryRun="All") for each in TAGGED],
        [post(CM, f"{MAP}data: {{{each}: b}}\n", content="application/yaml", dryRun="All") for each in ("!!int '5'", "!!binary eA==", "!!bool 'true'", "!!null ''", "!x a")],
        [Call("PATCH", f"{CM}/a", (("fieldManager", "m"), ("dryRun", "All")), (("Content-Type", "application/apply-patch+yaml"),), f"{MAP}data: {{a: {each}}}\n") for each in TAGGED],
    ),
    scenario("openid-configuration", "Discovery", get(CONFIGURATION, focus=_configuration)),
    scenario("openid-configuration-with-a-slash", "Discovery", get(f"{CONFIGURATION}/", focus=_configuration)),
    scenario("openid-keys", "Discovery", get(KEYS, focus=_keys)),
    scenario("openid-keys-with-a-slash", "Discovery", get(f"{KEYS}/", focus=_keys)),
    scenario(
        "openid-media-types",
        "Discovery, Negotiation",
        get(CONFIGURATION, accept="application/json", focus=_configuration),
        get(CONFIGURATION, accept="text/html"),
        get(CONFIGURATION, accept="*/*", focus=_configuration),
        get(KEYS, accept="application/jwk-set+json", focus=_keys),
        get(KEYS, accept="application/json"),
        get(KEYS, accept="application/json,*/*;q=0.1", focus=_keys),
    ),
    scenario(
        "openid-methods",
        "Discovery, Status errors",
        *(call(method, path) for path in (CONFIGURATION, KEYS) for method in ("PUT", "DELETE")),
        post(KEYS, {}),
    ),
    scenario("openid-not-there", "Discovery", get("/.well-known"), get(f"{CONFIGURATION}/x"), get(f"{KEYS}/x"), get("/openid/v1"), get("/openid")),
    scenario(
        "openid-of-a-token",
        "Discovery, Subresources",
        post(SERVICE_ACCOUNT, service_account(), as_="a"),
        post(f"{SERVICE_ACCOUNT}/a/token", {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}}),
    ),
    *(
        scenario(
            f"review-of-{name}",
            "Negotiation, Table",
            post(path, body),
            post(path, body, accept=TABLE),
            post(path, body, accept=f"{TABLE},application/json"),
            post(path, body, accept="application/yaml"),
            post(path, body, accept="text/plain"),
        )
        for name, (path, body) in REVIEWS.items()
    ),
    scenario(
        "review-as-metadata",
        "Negotiation, PartialObjectMetadata",
        *(post(path, body, accept=PARTIAL) for path, body in REVIEWS.values()),
    ),
    scenario(
        "binding-as-a-table",
        "Negotiation, Table, Subresources",
        post(POD, pod()),
        post(f"{POD}/a/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "n"}}, accept=TABLE),
        post(f"{POD}/a/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "n"}}, accept=PARTIAL),
    ),
    scenario(
        "eviction-as-a-table",
        "Negotiation, Table, Subresources",
        post(POD, pod()),
        post(f"{POD}/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}, accept=TABLE),
        post(f"{POD}/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}, accept=f"{TABLE},application/json"),
    ),
    scenario("schemas-without-empty-values", "OpenAPI v3", get(OPENAPI, focus=_empty_values), get("/openapi/v3/apis/apps/v1", focus=_empty_values), get(f"/openapi/v3/apis/{GROUP}/v1", focus=_empty_values)),
    scenario(
        "bodies-that-are-required",
        "OpenAPI v3",
        get(OPENAPI, focus=_required("/api/v1/namespaces/{namespace}/configmaps")),
        get(OPENAPI, focus=_required("/api/v1/namespaces/{namespace}/configmaps/{name}")),
    ),
    *(
        scenario(f"words-about-{name}", "OpenAPI v3", get(OPENAPI, focus=_described(f"{META}.{name}")))
        for name in ("ObjectMeta", "OwnerReference", "ListMeta", "ManagedFieldsEntry")
    ),
    scenario(
        "words-about-every-object",
        "OpenAPI v3",
        *(get(OPENAPI, focus=_common(f"io.k8s.api.core.v1.{kind}")) for kind in ("ConfigMap", "Pod", "Service", "Namespace")),
        get(f"/openapi/v3/apis/{GROUP}/v1", focus=_common(".".join((*reversed(GROUP.split(".")), "v1", "Site")))),
        get(f"/openapi/v3/apis/{GROUP}/v1", focus=_described(".".join((*reversed(GROUP.split(".")), "v1", "SiteList")))),
    ),
    scenario("health-of-one-hook", "Health", get("/healthz/poststarthook/rbac/bootstrap-roles"), get("/livez/log"), get("/readyz/shutdown"), get("/livez/shutdown")),
    scenario("health-of-a-step", "Health", get("/readyz/poststarthook/crd-informer-synced"), get("/livez/autoregister-completion"), get("/readyz/etcd-readiness")),
    scenario(
        "media-types-before-mistakes",
        "Negotiation, Status errors",
        installed(version("v1", obj(spec=ANYTHING, status=ANYTHING), **SCALED)),
        Close("crd"),
        *[
            step
            for path in (CM, DEPLOYMENT, BOATS)
            for step in (
                get(path, accept="application/cbor"), get(path, accept="text/html", limit="x"),
                get(path, accept="application/cbor", watch="true", fieldSelector="zz=1"),
                get(f"{path}/none", accept="application/cbor"), get(f"{path}/none/scale", accept="application/cbor"),
                patch(f"{path}/none/scale", {}, accept="text/html"), put(f"{path}/none/scale", {}, accept="text/html"),
            )
        ],
    ),
]  # fmt: skip
