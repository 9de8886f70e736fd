"""`validate()` and `problems()`: check an object against the declarations of its class."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from steersman.objects import Object, ResourceOptions, ScaleSubresource, Struct, to_json
from steersman.objects.field_problems import FieldProblem, invalid_error, problem
from steersman.schemas.admission import admitted
from steersman.schemas.quick_validation import Check, quick_check
from steersman.schemas.structural_schema import readable_schema
from steersman.schemas.validation import validate_tree

_INT32_MAX = 2**31 - 1


def problems(struct: Struct, *, field: str = "") -> list[FieldProblem]:
    """The reasons why a server would reject this object, judged by its class; empty if there are none.

    With ``field``, only what is inside this field counts. CEL rules, names and labels are left to the server, like
    everything that only it can check.
    """
    cls, tree = type(struct), to_json(struct)
    options: ResourceOptions | None = getattr(cls, "__resource__", None)
    scale = options.scale if options is not None else None
    found: list[FieldProblem] = []
    if not _quick_check(cls, field)(tree.get(field) if field else tree):
        schema = readable_schema(cls)
        tree = admitted(schema, tree, root=isinstance(struct, Object))
        found = validate_tree(schema, tree)
    if scale is not None:
        found += _scale_problems(scale, tree)
    # The paths of a scale begin with a dot.
    return [each for each in found if each.path.lstrip(".").startswith(f"{field}.")] if field else found


@cache
def _quick_check(cls: type[Struct], field: str) -> Check:
    schema = readable_schema(cls)
    return quick_check(schema["properties"].get(field, {}) if field else schema)


def validate(struct: Struct) -> None:
    """Raise `Invalid` if the server would reject this object for what its type declares. Sends no request.

    Example: ``validate(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="nginx", replicas=99)))`` raises "spec.replicas
    ... should be less than or equal to 50". CEL rules and the rules of metadata are left to the server.
    """
    found = problems(struct)
    if not found:
        return
    kind, group, name = type(struct).__name__, "", ""
    if isinstance(struct, Object):
        name = struct.metadata.name or struct.metadata.generate_name or ""
        if (options := getattr(type(struct), "__resource__", None)) is not None:
            kind, group = options.kind, options.group
    raise invalid_error(found, group=group, kind=kind, name=name, tried=f"validate {kind} {name}".rstrip())


def _scale_problems(scale: ScaleSubresource, tree: Any) -> list[FieldProblem]:
    """Check the number of replicas of a kind with a scale subresource, which the server checks without a schema."""
    found: list[FieldProblem] = []
    for path in (scale.spec_replicas_path, scale.status_replicas_path):
        value: Any = tree
        for name in path.lstrip(".").split("."):
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        if isinstance(value, int) and value < 0:
            found.append(problem(path, "FieldValueInvalid", value, "should be a non-negative integer"))
        elif isinstance(value, int) and value > _INT32_MAX:
            found.append(problem(path, "FieldValueInvalid", value, f"should be less than or equal to {_INT32_MAX}"))
    return found
