"""Validation of the schema of one version of a CustomResourceDefinition, or of all of them.

Guarantees
- Messages and order are kube-apiserver's; where that is the order of a Go map, fields are sorted by name.
- CEL rules are compiled only if nothing else is wrong: see `_cel_problems`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from steersman.apiserver.registry.crd.defaults import metadata_problem
from steersman.objects.field_problems import FieldProblem, Printed, forbidden, invalid
from steersman.schemas import (
    SCHEMA_FIELDS,
    Leniency,
    conversion_problem,
    default_problems,
    keyword_problems,
    printed_schema,
    structural_problems,
)

Schema = Mapping[str, Any]

_RULES: Final = b'"x-kubernetes-validations"'
#: Allowed at the root of a schema with a status subresource, because the status is validated alone.
_AT_ROOT: Final = tuple(
    """
    Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern
    MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example
    XPreserveUnknownFields XValidations
    """.split()  # noqa: SIM905
)
_ONLY_OBJECT: Final = (
    'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
)
_ONLY_THESE: Final = (
    f"only [{' '.join(_AT_ROOT)}] fields are allowed at the root of the schema if the status subresource is enabled"
)
_COST_OF_ONE: Final = ("Forbidden: estimated rule cost exceeds", "Forbidden: estimated messageExpression cost exceeds")


class SchemaOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that are relaxed for a schema, because they did not exist when it was created."""

    leniency: Leniency = Leniency()
    #: Whether it must be structural, and its defaults must hold no unknown fields.
    structural: bool = True
    pruned_defaults: bool = True
    #: Whether the costs of rules were checked before.
    same_costs: bool = False


def schema_problems(schema: Schema, path: str, options: SchemaOptions, *, has_status: bool) -> list[FieldProblem]:
    """The problems of a schema."""
    problems = _root_problems(schema, path) if has_status else []
    if schema.get("nullable"):
        problems.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    reason = conversion_problem(schema) if options.structural else ""
    encoded = msgspec.json.encode(schema)
    has_rules = options.structural and not reason and _RULES in encoded
    if options.structural and not reason:
        wrong = structural_problems(schema, path)
        if not wrong and b'"default"' in encoded:
            wrong = default_problems(
                schema, path, pruned=options.pruned_defaults, cel=_default_problems, metadata=metadata_problem
            )
        has_rules = has_rules and not wrong
        problems += wrong
    keywords = keyword_problems(schema, path, options.leniency)
    problems += keywords
    if has_rules:
        problems += _compiled(schema, path, keywords, same_costs=options.same_costs)
    if reason and not problems:
        problems.append(invalid(path, "", reason))
    return problems


def _root_problems(schema: Schema, path: str) -> list[FieldProblem]:
    for called, name, _, _ in SCHEMA_FIELDS:
        if name not in schema:
            continue
        if called == "Type":
            if schema["type"] != "object":
                return [invalid(f"{path}.type", schema["type"], _ONLY_OBJECT)]
        elif called not in _AT_ROOT:
            return [invalid(path, Printed(printed_schema(schema)), _ONLY_THESE)]
    return []


def _compiled(schema: Schema, path: str, keywords: list[FieldProblem], *, same_costs: bool) -> list[FieldProblem]:
    """The problems of CEL rules, where nothing else is wrong at them and below."""
    problems: list[FieldProblem] = []
    for problem in _cel_problems(schema, path):
        node = problem.path.partition(".x-kubernetes-validations")[0]
        below = node != problem.path and any(other.path.startswith((f"{node}.", f"{node}[")) for other in keywords)
        if not below and not (same_costs and problem.message.startswith(_COST_OF_ONE)):
            problems.append(problem)
    return problems


def _cel_problems(schema: Schema, path: str) -> list[FieldProblem]:
    """The problems of a schema's CEL rules."""
    from steersman.cel import compile_rules  # noqa: PLC0415 - only needed for schemas with rules

    return compile_rules(schema, path=path)[1]


def _default_problems(schema: Schema, value: Any, path: str) -> list[FieldProblem]:
    """The problems that CEL rules find in a default: as an unchanged value, and as a new one."""
    if _RULES not in msgspec.json.encode(schema):
        return []
    from steersman.cel import compile_rules  # noqa: PLC0415 - only needed for schemas with rules

    rules, wrong = compile_rules(schema, path=path, resource=bool(schema.get("x-kubernetes-embedded-resource")))
    return [] if wrong else rules.problems(value, value, path=path) or rules.problems(value, path=path)
