"""The nodes of a schema that have rules at them or below."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, cast

import msgspec

from steersman.cel.compiled_rule import CompiledRule
from steersman.cel.model import Shape

Schema = Mapping[str, Any]
RULES: Final = "x-kubernetes-validations"


def has_rules(schema: Schema) -> bool:
    """Whether a schema holds any rule."""
    return f'"{RULES}"'.encode() in msgspec.json.encode(schema)


class RuleNode:
    """A node of a schema with rules at it or below; `shape` describes its values."""

    def __init__(self, schema: Schema, shape: Shape) -> None:
        self.schema = schema
        self.shape = shape

    @cached_property
    def rules(self) -> list[CompiledRule]:
        """The rules at the node itself."""
        written: list[Schema] = self.schema.get(RULES) or []
        declared = self.shape.declared
        if declared is None:
            return []
        return [CompiledRule(rule, self.shape, declared, self.shape.structs) for rule in written]

    @cached_property
    def properties(self) -> dict[str, RuleNode]:
        """The nodes of named fields with rules."""
        known: Mapping[str, Schema] = self.schema.get("properties") or {}
        shapes = self.shape.properties or {}
        return {
            name: RuleNode(inner, shapes[name]) for name, inner in known.items() if name in shapes and has_rules(inner)
        }

    @cached_property
    def additional(self) -> RuleNode | None:
        """The node of a map's values."""
        return self._inner("additionalProperties", self.shape.additional)

    @cached_property
    def items(self) -> RuleNode | None:
        """The node of a list's items."""
        return self._inner("items", self.shape.items)

    def _inner(self, keyword: str, shape: Shape | None) -> RuleNode | None:
        inner = self.schema.get(keyword)
        if shape is None or not isinstance(inner, Mapping):
            return None
        schema = cast("Schema", inner)
        return RuleNode(schema, shape) if has_rules(schema) else None
