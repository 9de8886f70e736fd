"""Read OpenAPI v3 documents and CRDs into one description of models.

Guarantees
- ``/openapi/v3`` of kube-apiserver and a CRD give the same kind of description, so a kind's types do not depend on
  where its schema came from.
- A definition that several documents repeat is read once. Lists of a kind (``DeploymentList``) are omitted: a list is
  the client's own type.
- Any other input raises `UnreadableSchema`, which says what was expected.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from steersman.codegen.description import Model, ModelCatalog, is_from_go, references_in
from steersman.codegen.openapi_types import (
    CONDITION,
    VALUES,
    Node,
    Reading,
    UnreadableSchema,
    model_of,
    part,
    parts,
    rules_of,
    target_of,
)
from steersman.markers import Marker
from steersman.objects import GroupVersion, PrinterColumn, ResourceOptions, ScaleSubresource, plural_of

_GVK = "x-kubernetes-group-version-kind"
_META_PACKAGE = "io.k8s.apimachinery.pkg.apis.meta.v1"
#: A stable version: v1, v2; not v1beta1.


@contextmanager
def _reading(what: str) -> Generator[None]:
    """Turn any error from a malformed document into `UnreadableSchema`."""
    try:
        yield
    except UnreadableSchema as error:
        raise UnreadableSchema(f"{what}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise UnreadableSchema(f"{what} is malformed: {type(error).__name__}: {error}") from error


def served_group_versions(index: Node) -> dict[GroupVersion, str]:
    """The group-versions in the answer of ``/openapi/v3``, each with the path of its document."""
    found: dict[GroupVersion, str] = {}
    for path, entry in part(index, "paths").items():
        match path.split("/"):
            case ["api", version]:
                found[GroupVersion("", version)] = entry["serverRelativeURL"]
            case ["apis", group, version]:
                found[GroupVersion(group, version)] = entry["serverRelativeURL"]
            case _:
                pass
    if not found:
        raise UnreadableSchema("the server's /openapi/v3 lists no group-version; it must be Kubernetes 1.27 or later")
    return found


def discovery_path(group_version: GroupVersion) -> str:
    """The path that lists a group-version's resources."""
    return f"/apis/{group_version}" if group_version.group else f"/api/{group_version}"


def openapi_definitions(documents: Iterable[Node]) -> dict[str, Node]:
    """All definitions of several OpenAPI v3 documents, by name."""
    found: dict[str, Node] = {}
    for document in documents:
        if not str(document.get("openapi", "")).startswith("3."):
            raise UnreadableSchema("not an OpenAPI v3 document: it has no field openapi: 3.x")
        for name, node in part(document, "components", "schemas").items():
            # DeleteOptions and WatchEvent name every group-version that serves them, so they belong to none.
            shared = len(parts(node, _GVK)) > 1
            found[name] = {key: value for key, value in node.items() if key != _GVK} if shared else node
    return dict(sorted(found.items()))


def is_list(node: Node) -> bool:
    """Whether a definition is a list of objects of a kind."""
    properties = part(node, "properties")
    return "items" in properties and (target_of(part(properties, "metadata")) or "").endswith(".ListMeta")


def kind_of(node: Node) -> tuple[GroupVersion, str] | None:
    """The group-version and kind of a definition; None if it is not a kind."""
    found: list[dict[str, str]] = parts(node, _GVK)
    if len(found) != 1 or is_list(node):
        return None
    return GroupVersion(found[0]["group"], found[0]["version"]), found[0]["kind"]


def read_openapi(
    documents: Iterable[Node], *, discovery: Iterable[Node] = (), only: Iterable[GroupVersion] | None = None
) -> ModelCatalog:
    """Read OpenAPI v3 documents, with the resource lists (APIResourceList) of the same group-versions.

    ``only`` keeps the kinds of these group-versions, and everything that their fields refer to.
    """
    definitions = openapi_definitions(documents)
    resources = _resources(discovery)
    wanted = None if only is None else set(only)
    models: dict[str, Model] = {}
    packages: dict[str, GroupVersion] = {_META_PACKAGE: GroupVersion("meta.k8s.io", "v1")}
    waiting: list[str] = []
    for name, node in definitions.items():
        kind = kind_of(node)
        if kind is None or name.startswith(_META_PACKAGE):
            continue
        packages.setdefault(name.rpartition(".")[0], kind[0])
        if wanted is None or kind[0] in wanted:
            waiting.append(name)
    while waiting:
        name = waiting.pop()
        if name not in models and name not in VALUES:
            if name not in definitions and name == CONDITION:
                continue  # recognized by its shape, and a type of steersman.objects
            if name not in definitions:
                raise UnreadableSchema(f"the OpenAPI documents refer to {name} but do not define it")
            with _reading(f"the definition {name}"):
                models[name] = _definition(name, definitions, resources)
            waiting.extend(references_in(models[name]))
    return ModelCatalog(models=dict(sorted(models.items())), packages=packages)


def _resources(lists: Iterable[Node]) -> dict[tuple[GroupVersion, str], Node]:
    """Resources by group-version and kind, each with the names of its subresources."""
    found: dict[tuple[GroupVersion, str], Node] = {}
    for resource_list in lists:
        group_version = GroupVersion.parse(resource_list["groupVersion"])
        entries: list[Node] = parts(resource_list, "resources")
        for entry in entries:
            if "/" not in entry["name"]:
                prefix = f"{entry['name']}/"
                inside = [other["name"].removeprefix(prefix) for other in entries if other["name"].startswith(prefix)]
                found[group_version, entry["kind"]] = entry | {"subresources": inside}
    return found


def _definition(
    name: str, definitions: Mapping[str, Node], resources: Mapping[tuple[GroupVersion, str], Node]
) -> Model:
    node = definitions[name]
    reading = Reading(from_go=is_from_go(name))
    model = model_of(node, (name.rpartition(".")[2],), reading, definition=name)
    if reading.from_go:
        model = _with_required_spec(model, node, definitions)
    kind = kind_of(node)
    if kind is None or "metadata" not in part(node, "properties"):
        return model
    group_version, kind_name = kind
    resource = resources.get((group_version, kind_name))
    if resource is None and resources:
        note = "It has no resource of its own: it is sent to, or read from, a subresource of other kinds."
        return _as_kind(model, _options(group_version, kind_name, {}, node), notes=(note,))
    return _as_kind(model, _options(group_version, kind_name, resource or {}, node))


def _as_kind(model: Model, options: ResourceOptions, **changes: Any) -> Model:
    """A model of whole objects; apiVersion, kind and metadata come with every object."""
    kept = tuple(prop for prop in model.properties if prop.wire not in {"apiVersion", "kind", "metadata"})
    return msgspec.structs.replace(model, kind=options, properties=kept, **changes)


def _options(group_version: GroupVersion, kind: str, resource: Node, node: Node) -> ResourceOptions:
    """The options of a kind, from discovery."""
    lacks_subresource = bool(resource) and "status" not in resource["subresources"] and "status" in node["properties"]
    return ResourceOptions(
        group=group_version.group,
        version=group_version.version,
        kind=kind,
        plural=resource.get("name") or plural_of(kind),
        singular=resource.get("singularName") or kind.lower(),
        scope="Namespaced" if resource.get("namespaced", True) else "Cluster",
        short_names=tuple(resource.get("shortNames") or ()),
        categories=tuple(resource.get("categories") or ()),
        status_subresource=False if lacks_subresource else None,
    )


def _with_required_spec(model: Model, node: Node, definitions: Mapping[str, Node]) -> Model:
    """Require a ``spec`` that Go holds by value and whose type has required fields: omitting it cannot be valid.

    OpenAPI does not list it as required, because Go cannot tell an absent struct from an empty one; it has ``default:
    {}`` instead. The empty struct then lacks what the spec's own type requires.
    """
    spec = part(node, "properties", "spec")
    target = definitions.get(target_of(spec) or "", {})
    if spec.get("default") != {} or not target.get("required"):
        return model
    return msgspec.structs.replace(
        model,
        properties=tuple(
            msgspec.structs.replace(prop, required=True) if prop.wire == "spec" else prop for prop in model.properties
        ),
    )


def read_crds(objects: Iterable[Node], *, as_owner: bool = False) -> ModelCatalog:
    """Read CustomResourceDefinition objects with all their versions.

    ``as_owner`` keeps what only the owner of the CRD needs: columns, rules, storage, defaults as Python defaults.
    """
    models: dict[str, Model] = {}
    packages: dict[str, GroupVersion] = {}
    for crd in objects:
        with _reading(f"the CRD {part(crd, 'metadata').get('name', 'without a name')}"):
            for version in _crd_versions(crd):
                group = str(crd["spec"]["group"])
                package = ".".join([*reversed(group.split(".")), str(version["name"])])
                packages[package] = GroupVersion(group, str(version["name"]))
                model = _crd_model(crd, version, package, as_owner=as_owner)
                if foreign := references_in(model) - {CONDITION}:
                    raise UnreadableSchema(f"it refers to {', '.join(sorted(foreign))}, but a CRD cannot use $ref")
                if model.definition in models:
                    raise UnreadableSchema(f"{crd['metadata']['name']} version {version['name']} appears twice")
                models[model.definition] = model
    return ModelCatalog(models=dict(sorted(models.items())), packages=packages)


def _crd_versions(crd: Node) -> list[Node]:
    if crd.get("kind") != "CustomResourceDefinition":
        shown = " ".join(str(crd.get(name)) for name in ("apiVersion", "kind") if crd.get(name)) or "no kind"
        raise UnreadableSchema(f"expected a CustomResourceDefinition, got {shown}")
    if crd.get("apiVersion") != "apiextensions.k8s.io/v1":
        raise UnreadableSchema(
            f"its apiVersion is {crd.get('apiVersion')}; convert it to apiextensions.k8s.io/v1, "
            "for example by applying it to a cluster and reading it back"
        )
    spec = part(crd, "spec")
    if not {"group", "names", "versions"} <= spec.keys() or not {"kind", "plural"} <= part(spec, "names").keys():
        raise UnreadableSchema("it is incomplete: spec needs group, names (kind, plural) and versions")
    return parts(spec, "versions")


def _crd_model(crd: Node, version: Node, package: str, *, as_owner: bool) -> Model:
    kind = str(crd["spec"]["names"]["kind"])
    schema = part(version, "schema", "openAPIV3Schema")
    model = model_of(schema, (kind,), Reading(from_go=False, as_owner=as_owner), definition=f"{package}.{kind}")
    rules: list[Marker] = [*rules_of(schema)] if as_owner else []
    return _as_kind(model, _crd_options(crd["spec"], version, as_owner=as_owner), rules=tuple(rules))


def _crd_options(spec: Node, version: Node, *, as_owner: bool) -> ResourceOptions:
    names: dict[str, Any] = spec["names"]
    subresources = part(version, "subresources")
    schema = part(version, "schema", "openAPIV3Schema")
    has_status = "status" in part(schema, "properties")
    serves_status = "status" in subresources
    deprecated: bool | str = bool(version.get("deprecated")) and (version.get("deprecationWarning") or True)
    options = ResourceOptions(
        group=str(spec["group"]),
        version=str(version["name"]),
        kind=str(names["kind"]),
        plural=str(names["plural"]),
        singular=str(names.get("singular") or names["kind"].lower()),
        scope=spec.get("scope") or "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        status_subresource=None if serves_status == has_status else serves_status,
        deprecated=deprecated,
    )
    if not as_owner:
        return options
    scale: Node | None = subresources.get("scale")
    return msgspec.structs.replace(
        options,
        columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
        selectable_fields=tuple(field["jsonPath"] for field in version.get("selectableFields") or ()),
        scale=scale
        and ScaleSubresource(
            spec_replicas_path=scale["specReplicasPath"],
            status_replicas_path=scale["statusReplicasPath"],
            label_selector_path=scale.get("labelSelectorPath"),
        ),
        storage=bool(version.get("storage")),
        served=bool(version.get("served")),
    )


def _column(column: Node) -> PrinterColumn:
    return PrinterColumn(
        name=column["name"],
        type=column["type"],
        json_path=column["jsonPath"],
        description=column.get("description") or "",
        format=column.get("format") or "",
        priority=column.get("priority") or 0,
    )
