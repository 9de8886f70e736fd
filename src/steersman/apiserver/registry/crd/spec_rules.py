"""Validation of a CustomResourceDefinition's spec: names, scope, versions and their content.

Guarantee: messages and order are kube-apiserver's.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.apiserver.registry.crd.internal_version import printed_versions, schemas_of
from steersman.apiserver.registry.crd.ratcheting import Options, any_part
from steersman.apiserver.registry.crd.schema_rules import schema_problems
from steersman.apiserver.registry.crd.version_rules import (
    column_problems,
    deprecation_problems,
    selectable_problems,
    subresource_problems,
)
from steersman.apiserver.registry.crd.webhook_rules import conversion_problems
from steersman.golang import printed_json
from steersman.objects.field_problems import FieldProblem, Printed, invalid, required, unsupported, until_enough
from steersman.schemas.names import dns_1035_label, dns_subdomain

_EXTENSIONS: Final = frozenset(
    {
        "x-kubernetes-embedded-resource",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-validations",
    }
)
_UNTYPED_NAMES: Final = "may have mixed case, but should otherwise match: "
_NO_DEFAULTS: Final = "must be false in order to use defaults in the schema"


def spec_problems(spec: Tree, options: Options) -> list[FieldProblem]:
    """The problems of a spec in internal form: see `internal_spec`."""
    problems = _group_problems(spec["group"])
    scope: str = spec["scope"]
    if not scope:
        problems.append(required("spec.scope"))
    elif scope not in {"Cluster", "Namespaced"}:
        problems.append(unsupported("spec.scope", scope, ("Cluster", "Namespaced")))
    preserves = bool(spec.get("preserveUnknownFields"))
    problems += _missing_schemas(spec, preserves=preserves, needed=options.needs_schema)
    schemas = schemas_of(spec)
    if preserves and any_part(schemas, lambda part: "default" in part):
        problems.append(invalid("spec.preserveUnknownFields", value=True, detail=_NO_DEFAULTS))
    # Pruning, defaults and list types need a structural schema, whatever was there before.
    strict = not preserves or any_part(schemas, lambda part: "default" in part or not _EXTENSIONS.isdisjoint(part))
    if strict:
        options = replace(options, schemas=replace(options.schemas, structural=True))
    holders = _subresource_holders(spec)
    for at, version in until_enough(items(spec, "versions"), problems):
        where = f"spec.versions[{at}]"
        problems += _joined(f"{where}.name", version["name"], dns_1035_label(version["name"]))
        problems += _version_problems(version, where, options, holder=holders.get(version["name"], spec))
    problems += _set_problems(spec)
    problems += _required_names(spec["names"]) + names_problems(spec["names"], "spec.names")
    return problems + _common_problems(spec, options, preserves=preserves)


def _group_problems(group: str) -> list[FieldProblem]:
    if not group:
        return [required("spec.group")]
    if reasons := dns_subdomain(group):
        return _joined("spec.group", group, reasons)
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _joined(path: str, value: str, reasons: list[str], before: str = "") -> list[FieldProblem]:
    return [invalid(path, value, before + ",".join(reasons))] if reasons else []


def _missing_schemas(spec: Tree, *, preserves: bool, needed: bool) -> list[FieldProblem]:
    if inner(spec, "validation").get("openAPIV3Schema") is not None or (not needed and preserves):
        return []
    detail = "" if needed else "because otherwise all fields are pruned"
    problems: list[FieldProblem] = []
    for at, version in until_enough(items(spec, "versions"), problems):
        if inner(version, "schema").get("openAPIV3Schema") is None and (needed or version["served"]):
            problems.append(required(f"spec.versions[{at}].schema.openAPIV3Schema", detail))
    return problems


def _version_problems(version: Tree, path: str, options: Options, *, holder: Tree) -> list[FieldProblem]:
    """The problems of a version; ``holder`` has its subresources."""
    problems = deprecation_problems(version, path)
    schema: Tree | None = inner(version, "schema").get("openAPIV3Schema")
    if schema is not None:
        has_status = inner(holder, "subresources").get("status") is not None
        problems += _schema_problems(schema, f"{path}.schema", options, version["name"], has_status=has_status)
    problems += subresource_problems(version.get("subresources"), f"{path}.subresources")
    problems += column_problems(items(version, "additionalPrinterColumns"), f"{path}.additionalPrinterColumns")
    fields = items(version, "selectableFields")
    where = f"{path}.selectableFields"
    if not fields:
        return problems
    if schema is None:
        said = "may only be set when `version.schema.openAPIV3Schema` is not included"
        return [*problems, invalid(where, "", said)]
    any_number = version["name"] in options.many_selectable
    return problems + selectable_problems(fields, schema, where, any_number=any_number)


def _subresource_holders(spec: Tree) -> dict[str, Tree]:
    """The versions by name if one has its own subresources; otherwise the spec has those of all."""
    versions = items(spec, "versions")
    if not any("subresources" in version for version in versions):
        return {}
    # Of versions with the same name, the first counts.
    return {version["name"]: version for version in reversed(versions)}


def _schema_problems(
    schema: Tree, path: str, options: Options, version: str, *, has_status: bool
) -> list[FieldProblem]:
    judged = replace(options.schemas, same_costs=version in options.same_schemas)
    return schema_problems(schema, f"{path}.openAPIV3Schema", judged, has_status=has_status)


def _set_problems(spec: Tree) -> list[FieldProblem]:
    """The problems of the versions as a whole."""
    versions = items(spec, "versions")
    names = [version["name"] for version in versions]
    problems: list[FieldProblem] = []
    if len(set(names)) < len(names):
        said = "must contain unique version names"
        problems.append(invalid("spec.versions", Printed(printed_versions(spec)), said))
    if sum(version["storage"] for version in versions) != 1:
        said = "must have exactly one version marked as storage version"
        problems.append(invalid("spec.versions", Printed(printed_versions(spec)), said))
    if names and names[0]:
        problems += _joined("spec.version", names[0], dns_1035_label(names[0]))
    return problems


def _required_names(names: Tree) -> list[FieldProblem]:
    return [
        required(f"spec.names.{name}") for name in ("plural", "singular", "kind", "listKind") if not names.get(name)
    ]


def names_problems(names: Tree, path: str) -> list[FieldProblem]:
    """The problems of a kind's names, requested or accepted."""
    problems: list[FieldProblem] = []
    for name in ("plural", "singular"):
        if value := names.get(name, ""):
            problems += _joined(f"{path}.{name}", value, dns_1035_label(value))
    for name in ("kind", "listKind"):
        if value := names.get(name, ""):
            problems += _joined(f"{path}.{name}", value, dns_1035_label(value.lower()), _UNTYPED_NAMES)
    for at, short in until_enough(items(names, "shortNames"), problems):
        problems += _joined(f"{path}.shortNames[{at}]", short, dns_1035_label(short))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        problems.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    for at, category in until_enough(items(names, "categories"), problems):
        problems += _joined(f"{path}.categories[{at}]", category, dns_1035_label(category))
    return problems


def _common_problems(spec: Tree, options: Options, *, preserves: bool) -> list[FieldProblem]:
    """The problems of what all versions have in common, and of the conversion between them."""
    problems: list[FieldProblem] = []
    versions = items(spec, "versions")
    schema: Tree | None = inner(spec, "validation").get("openAPIV3Schema")
    if schema is not None:
        has_status = any(inner(holder, "subresources").get("status") is not None for holder in (spec, *versions))
        problems += _schema_problems(schema, "spec.validation", options, versions[0]["name"], has_status=has_status)
    problems += subresource_problems(spec.get("subresources"), "spec.subresources")
    problems += column_problems(items(spec, "additionalPrinterColumns"), "spec.additionalPrinterColumns")
    fields = items(spec, "selectableFields")
    if fields and "validation" not in spec:
        said = "may only be set when validations.schema is included"
        problems.append(invalid("spec.selectableFields", "", said))
    elif fields and schema is not None:
        any_number = "" in options.many_selectable
        problems += selectable_problems(fields, schema, "spec.selectableFields", any_number=any_number)
    conversion: Tree = spec["conversion"]
    if conversion["strategy"] != "None" and preserves:
        said = "must be None if spec.preserveUnknownFields is true"
        problems.append(invalid("spec.conversion.strategy", Printed(printed_json(conversion["strategy"])), said))
    return problems + conversion_problems(
        conversion, "spec.conversion", any_review=options.any_review, any_bundle=options.any_bundle
    )
