"""Resource classes -> CustomResourceDefinition, as a JSON tree or as YAML.

Guarantees
- Mistakes that the server would reject raise here first, in terms of the Python classes: two storage versions, a column
  or a scale path to a missing field, versions that disagree about names or scope, CEL rules that do not compile or cost
  too much.
- The result depends only on the classes, so a generated file changes only when they do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from steersman.objects import Object, ResourceOptions, ScaleSubresource, nearest
from steersman.schemas.constraints import Schema, Where
from steersman.schemas.structural_schema import schema_for, undescribed_schema

_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)+")
_LABEL: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_SELECTABLE: Final = frozenset({"string", "boolean", "integer"})
_SELECTABLE_MAX: Final = 8
_WARNING_MAX: Final = 256


def crd_for(
    *classes: type[Object],
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    conversion: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind as a new JSON tree, from one class per version: ``crd_for(Site, SiteV1Beta1)``.

    ``conversion`` is its ``spec.conversion``; without it, the server changes only the ``apiVersion`` of an object.
    """
    return _crd(classes, schema_for, labels=labels, annotations=annotations, conversion=conversion)


def undescribed_crd(*classes: type[Object]) -> dict[str, Any]:
    """Like `crd_for`, with `undescribed_schema` of each version."""
    return _crd(classes, undescribed_schema)


def _crd(
    classes: tuple[type[Object], ...],
    schema_of: Callable[[type[Object]], Schema],
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    conversion: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    if not classes:
        raise TypeError("crd_for() needs at least one resource class, one for each version of the kind")
    first = _options(classes[0])
    for cls in classes:
        _check_version(cls, classes[0])
    stored = [f"{cls.__qualname__} ({_options(cls).version})" for cls in classes if _options(cls).storage]
    if len(stored) != 1:
        found = f"{', '.join(stored)} are" if stored else "none is"
        raise TypeError(
            f"{first.kind}.{first.group}: exactly one version must be the storage version, but {found}; pass storage=False to all other classes"
        )
    metadata: dict[str, Any] = {"name": f"{first.plural}.{first.group}"}
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": first.group,
            "names": _names(next(_options(cls) for cls in classes if _options(cls).storage)),
            "scope": first.scope,
            "versions": [_version(cls, schema_of(cls)) for cls in classes],
            **({"conversion": dict(conversion)} if conversion else {}),
        },
    }


def crd_yaml(
    *classes: type[Object],
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    conversion: Mapping[str, Any] | None = None,
) -> str:
    """The CustomResourceDefinition as a YAML document, for a file or ``kubectl apply``: ``crd_yaml(Site)``."""
    import yaml  # noqa: PLC0415 - only needed to print YAML

    from steersman.golang import YamlDumper  # noqa: PLC0415 - as above

    tree = crd_for(*classes, labels=labels, annotations=annotations, conversion=conversion)
    return yaml.dump(tree, sort_keys=False, allow_unicode=True, width=120, explicit_start=True, Dumper=YamlDumper)


def _options(cls: type[Object]) -> ResourceOptions:
    options: ResourceOptions | None = getattr(cls, "__resource__", None)
    if options is None:
        raise TypeError(
            f'{cls.__qualname__} declares no kind; write class {cls.__name__}(Resource[...], group="example.com", version="v1")'
        )
    return options


def _check_version(cls: type[Object], first: type[Object]) -> None:
    options, expected, where = _options(cls), _options(first), Where(cls.__qualname__)
    if not _SUBDOMAIN.fullmatch(options.group):
        raise where.refuse(f'group="{options.group}" must be a domain with a dot, such as "web.example.com"')
    for what, name in (("version", options.version), ("plural", options.plural), ("kind", options.kind.lower())):
        if len(name) > 63 or not _LABEL.fullmatch(name):
            raise where.refuse(
                f'{what} "{name}" is not a valid API name: use lower-case letters, digits and -, beginning with a letter'
            )
    for option in ("group", "kind", "plural", "singular", "scope"):
        if getattr(options, option) != getattr(expected, option):
            raise where.refuse(
                f"its {option} is {getattr(options, option)!r}, but that of {first.__qualname__} is {getattr(expected, option)!r}; "
                "all classes of one CRD need the same"
            )
    if cls is not first and options.version == expected.version:
        raise where.refuse(
            f"{first.__qualname__} also has version {options.version!r}; each class of one CRD needs its own"
        )


def _names(options: ResourceOptions) -> Schema:
    names: Schema = {
        "plural": options.plural,
        "singular": options.singular,
        "kind": options.kind,
        "listKind": f"{options.kind}List",
    }
    if options.short_names:
        names["shortNames"] = list(options.short_names)
    if options.categories:
        names["categories"] = list(options.categories)
    return names


def _version(cls: type[Object], schema: Schema) -> Schema:
    options, where = _options(cls), Where(cls.__qualname__)
    if b'"x-kubernetes-validations"' in msgspec.json.encode(schema):
        _check_rules(cls)
    version: Schema = {"name": options.version, "served": options.served, "storage": options.storage}
    if options.deprecated:
        version["deprecated"] = True
        if isinstance(options.deprecated, str):
            if len(options.deprecated) > _WARNING_MAX or not options.deprecated.isprintable():
                raise where.refuse(f"the warning in deprecated= must be one line of at most {_WARNING_MAX} characters")
            version["deprecationWarning"] = options.deprecated
    version["schema"] = {"openAPIV3Schema": schema}
    has_status = "status" in schema.get("properties", {})
    subresources: Schema = {}
    if has_status if options.status_subresource is None else options.status_subresource:
        subresources["status"] = {}
    if options.scale is not None:
        subresources["scale"] = _scale(schema, options.scale, where)
    if subresources:
        version["subresources"] = subresources
    if options.columns:
        version["additionalPrinterColumns"] = [_column(schema, column, where) for column in options.columns]
    if options.selectable_fields:
        version["selectableFields"] = _selectable(schema, options.selectable_fields, where)
    return version


@cache
def _check_rules(cls: type[Object]) -> None:
    """Raise for the first CEL rule that the server would reject, with its compiler's message; once per class."""
    from steersman.cel import compile_rules  # noqa: PLC0415 - few kinds have rules

    where = Where(cls.__qualname__)
    _, found = compile_rules(undescribed_schema(cls))
    if found:
        path, message = found[0].path, found[0].message
        place = ".".join(re.findall(r"properties\[([^]]*)\]", path)) or "the object"
        shown, _, said = message.removeprefix("Invalid value: ").partition("}: ")
        what = "rule" if path.endswith(".rule") else path.rpartition(".")[2]
        text = msgspec.json.decode(f"{shown}}}").get("Rule", "") if said else ""
        raise where.refuse(f"the {what} {text!r} of {place} is invalid: {said or message}")


def _scale(schema: Schema, scale: ScaleSubresource, where: Where) -> Schema:
    paths = {
        "specReplicasPath": (scale.spec_replicas_path, "integer", ".spec."),
        "statusReplicasPath": (scale.status_replicas_path, "integer", ".status."),
    }
    if scale.label_selector_path is not None:
        paths["labelSelectorPath"] = (scale.label_selector_path, "string", ".")
    for path, kind, prefix in paths.values():
        found = _at(schema, path, where)
        if not path.startswith(prefix) or found.get("type") != kind:
            raise where.refuse(f"the scale path {path!r} must lead to a field of type {kind} under {prefix}")
    return {name: path for name, (path, _, _) in paths.items()}


def _column(schema: Schema, column: Any, where: Where) -> Schema:
    if re.fullmatch(
        r"[.A-Za-z0-9_]*", column.json_path
    ):  # anything else is a full JSONPath, which only the server evaluates
        _at(schema, column.json_path, where)
    elif not column.json_path.startswith("."):
        raise where.refuse(f"the path {column.json_path!r} of column {column.name!r} must begin with a dot")
    entries = {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.json_path,
        "description": column.description,
        "format": column.format,
        "priority": column.priority,
    }
    return {name: value for name, value in entries.items() if value not in {"", 0}}


def _selectable(schema: Schema, paths: tuple[str, ...], where: Where) -> list[Schema]:
    if len(set(paths)) < len(paths) or len(paths) > _SELECTABLE_MAX:
        raise where.refuse(f"selectable_fields= takes at most {_SELECTABLE_MAX} different paths")
    for path in paths:
        if _at(schema, path, where).get("type") not in _SELECTABLE or path.startswith(".metadata"):
            raise where.refuse(
                f"the selectable field {path!r} must be a string, a boolean or an integer outside metadata"
            )
    return [{"jsonPath": path} for path in paths]


def _at(schema: Schema, path: str, where: Where) -> Schema:
    """Follow a simple path through a schema."""
    if not path.startswith("."):
        raise where.refuse(f"the path {path!r} must begin with a dot: .spec.replicas")
    at = schema
    for name in path[1:].split("."):
        known: Schema = at.get("properties", {})
        if name in known:
            at = known[name]
        elif isinstance(at.get("additionalProperties"), dict):
            at = at["additionalProperties"]
        elif at.get("x-kubernetes-preserve-unknown-fields") or path.startswith(".metadata."):
            return {}
        else:
            meant = nearest(name, known)
            hint = f"; did you mean {meant!r}?" if meant else f"; the fields are {', '.join(known) or 'none'}"
            raise where.refuse(f"the path {path!r} does not exist: there is no field {name!r}{hint} (wire names)")
    return at
