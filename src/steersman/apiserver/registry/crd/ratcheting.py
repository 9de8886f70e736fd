"""Rules that an update of a CustomResourceDefinition may violate, because the existing one already does.

Guarantee: as in kube-apiserver, a rule that is newer than a definition does not apply to its updates if it was violated
before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import msgspec

from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.apiserver.registry.crd.internal_version import internal_spec, schemas_of
from steersman.apiserver.registry.crd.schema_rules import SchemaOptions
from steersman.apiserver.registry.crd.version_rules import SELECTABLE_MAX
from steersman.apiserver.registry.crd.webhook_rules import bundle_problem, knows_a_review
from steersman.schemas import (
    SCHEMA_TYPES,
    Leniency,
    conversion_problem,
    is_atomic_set,
    is_pruned,
    is_schema,
    map_key_problems,
    structural_problems,
)

Schema = Mapping[str, Any]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How strictly a spec is validated."""

    schemas: SchemaOptions = SchemaOptions()
    #: Whether every version needs a schema.
    needs_schema: bool = True
    any_review: bool = False
    #: No webhook is called before its kind is served.
    any_bundle: bool = True
    #: Whether the parts that determine names and storage keys may no longer change.
    established: bool = False
    #: Versions with unchanged schemas, and those with more selectable fields than allowed.
    same_schemas: frozenset[str] = frozenset()
    many_selectable: frozenset[str] = frozenset()


def quick_options(crd: Tree, old: Tree) -> Options:
    """The options for an update of a valid definition: all rules, except those for established ones."""
    established = _is_established(old)
    return Options(
        any_bundle=not established or _has_bad_bundle(old),
        established=established,
        same_schemas=_same_schemas(internal_spec(crd["spec"]), internal_spec(old["spec"])),
    )


def lenient_options(crd: Tree, old: Tree) -> Options:
    """The options for an update, given the existing violations."""
    before = internal_spec(old["spec"])
    schemas = schemas_of(before)
    parts = [part for schema in schemas for part in _all(schema)]
    leniency = Leniency(
        types=any(part.get("type") and part["type"] not in SCHEMA_TYPES for part in parts),
        atomic_sets=not all(is_atomic_set(part) for part in parts),
        map_keys=any(map_key_problems(part, "") for part in parts),
    )
    structural = all(not conversion_problem(schema) and not structural_problems(schema, "") for schema in schemas)
    webhook = inner(inner(before, "conversion"), "webhook")
    quick = quick_options(crd, old)
    return msgspec.structs.replace(
        quick,
        schemas=SchemaOptions(
            leniency=leniency,
            structural=structural,
            pruned_defaults=not structural or all(map(_has_pruned_defaults, schemas)),
        ),
        needs_schema=all(_has_schema(before, version) for version in items(before, "versions")),
        any_review=not knows_a_review(webhook.get("conversionReviewVersions")),
        many_selectable=_many_selectable(internal_spec(crd["spec"]), before),
    )


def any_part(schemas: list[Tree], test: Callable[[Schema], bool]) -> bool:
    """Whether a schema, or a part of one, satisfies a test."""
    return any(test(part) for schema in schemas for part in _all(schema))


def _all(schema: Schema) -> Iterator[Schema]:
    """A schema and all schemas inside it."""
    yield schema
    for name, value in schema.items():
        if name in {"properties", "patternProperties", "definitions", "dependencies"}:
            inner_: list[Any] = list(cast("dict[str, Any]", value).values())
        elif name in {"allOf", "anyOf", "oneOf", "items"} and isinstance(value, list):
            inner_ = cast("list[Any]", value)
        elif name in {"items", "not", "additionalProperties", "additionalItems"}:
            inner_ = [value]
        else:
            continue
        for part in inner_:
            if is_schema(part):
                yield from _all(part)


def _is_established(crd: Tree) -> bool:
    conditions = items(inner(crd, "status"), "conditions")
    return next(
        (condition["status"] == "True" for condition in conditions if condition["type"] == "Established"), False
    )


def _has_bad_bundle(crd: Tree) -> bool:
    webhook = inner(inner(crd["spec"], "conversion"), "webhook")
    bundle = inner(webhook, "clientConfig").get("caBundle")
    return bool(bundle) and bool(bundle_problem(bundle))


def _schema_of(spec: Tree, version: Tree) -> Any:
    return version.get("schema", spec.get("validation"))


def _has_schema(spec: Tree, version: Tree) -> bool:
    held: Tree = _schema_of(spec, version) or {}
    return held.get("openAPIV3Schema") is not None


def _same_schemas(spec: Tree, before: Tree) -> frozenset[str]:
    old = {version["name"]: _schema_of(before, version) for version in items(before, "versions")}
    return frozenset(
        version["name"]
        for version in items(spec, "versions")
        if version["name"] in old and _schema_of(spec, version) == old[version["name"]]
    )


def _many_selectable(spec: Tree, before: Tree) -> frozenset[str]:
    """Names of versions, and an empty one for the common part."""
    pairs = [("", spec, before)]
    old = {version["name"]: version for version in items(before, "versions")}
    pairs += [(each["name"], each, old[each["name"]]) for each in items(spec, "versions") if each["name"] in old]
    return frozenset(
        name
        for name, new, was in pairs
        if len(items(was, "selectableFields")) > SELECTABLE_MAX
        and new.get("selectableFields") == was["selectableFields"]
    )


def _has_pruned_defaults(schema: Schema) -> bool:
    return all(is_pruned(part, part["default"]) for part in _all(schema) if "default" in part)
