"""A kind of boats, defined anew in each scenario: its definition, its objects, and the steps that all begin with."""

from __future__ import annotations

from typing import Any

from conformance.scenario import Call, Step, Until, frames, get, patch, post, watch

GROUP = "{u}.test.steersman.dev"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = f"boats.{GROUP}"
CRD = f"{CRDS}/{NAME}"
BOATS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/boats"
BOAT = f"{BOATS}/a"
NEWER = BOATS.replace("/v1/", "/v2/")
OPENAPI = f"/openapi/v3/apis/{GROUP}/v1"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
ROWS = "Kinds, Watch stream"

Tree = dict[str, Any]

ANYTHING: Tree = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def obj(**properties: Any) -> Tree:
    """The schema of an object."""
    return {"type": "object", "properties": properties}


STRING: Tree = {"type": "string"}
NUMBER: Tree = {"type": "integer"}


def version(name: str = "v1", schema: Tree | None = None, *, storage: bool = True, **more: Any) -> Tree:
    """A version of a definition; ``spec`` is its schema's only property unless a schema is given."""
    schema = obj(spec=ANYTHING) if schema is None else schema
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}} | more


def crd(*versions: Tree, plural: str = "boats", names: Tree | None = None, **spec: Any) -> Tree:
    """A definition."""
    called = {"plural": plural, "kind": "Boat"} | (names or {})
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": called, "versions": list(versions) or [version()]}
        | spec,
    }


def boat(name: str = "a", version: str = "v1", **more: Any) -> Tree:
    """An instance."""
    metadata = {"name": name} | more.pop("metadata", {})
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Boat", "metadata": metadata} | more


def followed(name: str = NAME, *, watched: str = "crd") -> Step:
    """A watch of a definition."""
    return watch(watched, CRDS, fieldSelector=f"metadata.name={name}")


def installed(*versions: Tree, **options: Any) -> list[Step]:
    """A definition, served."""
    return [followed(), post(CRDS, crd(*versions, **options), as_="crd"), frames("crd", 3), Until(get(BOATS), 200)]


def changed(*versions: Tree, until: Call | None = None, status: int = 200, **options: Any) -> list[Step]:
    """Other versions of it, once they count."""
    body = {"spec": crd(*versions, **options)["spec"]}
    return [patch(CRD, body), frames("crd", 1), *([Until(until, status)] if until is not None else [])]


def tried(body: Tree, path: str = BOATS) -> Call:
    """A creation that leaves nothing behind: its answer tells when a new schema counts."""
    return post(path, body, dryRun="All")


def conditions(tree: Any) -> Any:
    """The conditions of a definition, and its finalizers."""
    return tree["status"]["conditions"], tree["metadata"]["finalizers"]


def without_hashes(tree: Any) -> Any:
    """A list of resources without what is made of the name of their group, which is another one each time."""
    for resource in tree["resources"]:
        resource.pop("storageVersionHash", None)
    return tree


def own_schemas(tree: Any) -> Any:
    """The schemas of the kind and its list, and which paths there are for what."""
    schemas = tree["components"]["schemas"]
    return {
        "schemas": {
            name: told(schema) for name, schema in schemas.items() if name.rpartition(".")[2] in {"Boat", "BoatList"}
        },
        "paths": {path: sorted(each) for path, each in tree["paths"].items()},
    }


def told(schema: Any, name: str = "") -> Any:
    """A schema without what is said of the fields of every object, which each server says in its own words."""
    if isinstance(schema, list):
        return [told(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    common = name in {"apiVersion", "kind", "metadata", "items"} and "description" in schema
    return {key: told(value, key) for key, value in schema.items() if not (common and key == "description")}


def yachts(tree: Any) -> Any:
    """What aggregated discovery tells of the group of one scenario, which is known by its kind."""
    return [
        item
        for item in tree["items"]
        if any(each["responseKind"]["kind"] == "Yacht" for one in item["versions"] for each in one["resources"])
    ]


def served(version: str) -> Call:
    """What is served of a version."""
    return get(f"/apis/{GROUP}/{version}", focus=without_hashes)


WITH_STATUS: Tree = {"subresources": {"status": {}}}
SCALED: Tree = {
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.masts",
            "statusReplicasPath": ".status.masts",
            "labelSelectorPath": ".status.selector",
        },
    }
}
SELECTED: Tree = {"selectableFields": [{"jsonPath": ".spec.name"}, {"jsonPath": ".spec.masts"}]}
TWO = (
    version("v1", obj(spec=obj(name=STRING, masts={"type": "integer", "default": 1}))),
    version("v2", obj(spec=obj(name=STRING, crew={"type": "integer", "default": 7})), storage=False),
)
