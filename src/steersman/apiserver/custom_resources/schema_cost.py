"""What a schema may cost when an object is validated by it, found in one pass over the schema.

Guarantee: a schema with tens of thousands of fields is read in a fraction of a second, in time that grows with its size.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, TypeGuard, cast

import msgspec

from steersman.apiserver.registry.definition import Tree

#: CEL functions that iterate over a list, a map or a text: nesting multiplies their time.
_LOOPS: Final = re.compile(
    r"\b(?:all|exists|exists_one|existsOne|map|filter|transform\w*|sortBy|sort|distinct|in|contains|matches|find|findAll"
    r"|indexOf|lastIndexOf|replace|split|join)\b"
)
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_COMBINED: Final = frozenset({*_JUNCTORS, "not"})
#: The keys of a schema that cost something; most schemas of fields have none of them.
_COSTLY: Final = _COMBINED | {
    "properties",
    "items",
    "additionalProperties",
    "required",
    "default",
    "x-kubernetes-validations",
}


class SchemaCost(NamedTuple):
    """The cost of validating an object by a schema."""

    #: The size in bytes of defaults below list items and map entries.
    item_defaults: int
    #: The maximum number of steps to validate one value: combined schemas, fields and rules count.
    steps: int
    #: The length and the number of loops of each CEL expression.
    rules: list[tuple[int, int]]


def cost_of(schema: Tree) -> SchemaCost:
    """The cost of a schema."""
    item_defaults, steps = 0, 1
    rules: list[tuple[int, int]] = []
    # A schema, whether it is that of items or below one, and whether it is below a combined schema.
    level: list[tuple[Tree, bool, bool]] = [(schema, False, False)]
    while level:
        below: list[tuple[Tree, bool, bool]] = []
        for node, is_repeated, is_joined in level:
            properties: Tree = node.get("properties") or {}
            validations: list[Any] = node.get("x-kubernetes-validations") or []
            rules += _rules(validations)
            joined = _joined(node)
            if not is_joined:
                if is_repeated and "default" in node:
                    item_defaults += len(msgspec.json.encode(node["default"]))
                fields = len(properties) + len(node.get("required") or ())
                steps = max(steps, _closure_size(joined) + fields // 10 + 2 * len(validations))
            below += [(each, is_repeated, is_joined) for each in properties.values() if _is_costly(each)]
            items = (node.get("items"), node.get("additionalProperties"))
            below += [(each, True, is_joined) for each in items if _is_costly(each)]
            below += [(each, is_repeated, True) for each in joined if _is_costly(each)]
        level = below
    return SchemaCost(item_defaults, steps, rules)


def _is_costly(node: Any) -> TypeGuard[Tree]:
    return isinstance(node, dict) and not _COSTLY.isdisjoint(cast("Tree", node))


def _rules(validations: list[Any]) -> list[tuple[int, int]]:
    """The length and the number of loops of CEL expressions."""
    named = [rule.get(name) for rule in _trees(validations) for name in ("rule", "messageExpression")]
    return [(len(text), len(_LOOPS.findall(text))) for text in named if isinstance(text, str)]


def _joined(node: Tree) -> list[Tree]:
    """The schemas that validate the same value as this one."""
    if _COMBINED.isdisjoint(node):
        return []
    listed = [each for name in _JUNCTORS for each in node.get(name) or ()]
    return _trees([*listed, node.get("not")])


def _closure_size(joined: list[Tree]) -> int:
    """The number of these schemas, and of those that they combine in turn."""
    count = 0
    while joined:
        count += len(joined)
        joined = [below for each in joined for below in _joined(each)]
    return count


def _trees(nodes: list[Any]) -> list[Tree]:
    return [node for node in nodes if isinstance(node, dict)]
