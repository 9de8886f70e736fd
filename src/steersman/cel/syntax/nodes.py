"""The tree of a CEL expression.

Each node has its position in the text. The checker stores its results in the nodes: their types, the possible overloads
of a call, and for a name whether it is a type.
"""

from __future__ import annotations

from typing import Any

from steersman.cel.types import DYN, Type

#: The variable that accumulates the result of a comprehension.
RESULT = "@result"


class Node:
    """One expression."""

    __slots__ = ("at", "type")

    def __init__(self, at: int) -> None:
        self.at = at
        self.type: Type = DYN


class Literal(Node):
    """A literal value."""

    __slots__ = ("value",)

    def __init__(self, at: int, value: Any) -> None:
        super().__init__(at)
        self.value = value


class Ident(Node):
    """The name of a variable, or of a type (then the checker sets `names_type`)."""

    __slots__ = ("name", "names_type")

    def __init__(self, at: int, name: str) -> None:
        super().__init__(at)
        self.name = name
        self.names_type: Type | None = None


class Select(Node):
    """``operand.field``; with `test`, ``has(operand.field)``."""

    __slots__ = ("field", "names_type", "operand", "test")

    def __init__(self, at: int, operand: Node, field: str, *, test: bool = False) -> None:
        super().__init__(at)
        self.operand = operand
        self.field = field
        self.test = test
        self.names_type: Type | None = None


class Call(Node):
    """A function, an operator or a method; ``&&`` and ``||`` take any number of terms."""

    __slots__ = ("args", "function", "overloads", "target")

    def __init__(self, at: int, function: str, args: list[Node], target: Node | None = None) -> None:
        super().__init__(at)
        self.function = function
        self.args = args
        self.target = target
        self.overloads: tuple[str, ...] = ()


class ListOf(Node):
    """``[a, ?b]``."""

    __slots__ = ("elements", "optional")

    def __init__(self, at: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(at)
        self.elements = elements
        self.optional = optional


class MapOf(Node):
    """``{key: value, ?key: optional}``: key, value, whether optional."""

    __slots__ = ("entries",)

    def __init__(self, at: int, entries: list[tuple[Node, Node, bool]]) -> None:
        super().__init__(at)
        self.entries = entries


class Struct(Node):
    """``Name{field: value}``: position, field, value, whether optional."""

    __slots__ = ("fields", "name")

    def __init__(self, at: int, name: str, fields: list[tuple[int, str, Node, bool]]) -> None:
        super().__init__(at)
        self.name = name
        self.fields = fields


class Fold(Node):
    """What all comprehensions become: a result accumulated over a range.

    `macro` is the macro that it came from; ``bind`` only names a value.
    """

    __slots__ = ("accumulator", "condition", "first", "init", "macro", "range", "result", "second", "step")

    def __init__(
        self,
        at: int,
        macro: str,
        *,
        over: Node,
        first: str,
        second: str = "",
        accumulator: str = RESULT,
        init: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(at)
        self.macro = macro
        self.range = over
        self.first = first
        self.second = second
        self.accumulator = accumulator
        self.init = init
        self.condition = condition
        self.step = step
        self.result = result


def qualified_name(node: Node) -> str | None:
    """``a.b.c`` as one name; None if the node is anything else."""
    match node:
        case Ident():
            return node.name
        case Select(test=False):
            prefix = qualified_name(node.operand)
            return None if prefix is None else f"{prefix}.{node.field}"
        case _:
            return None


def children(node: Node) -> list[Node]:  # noqa: PLR0911 - one answer for each kind
    """The nodes directly below a node, in the order of the text."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [node.target, *node.args] if node.target is not None else list(node.args)
        case ListOf():
            return list(node.elements)
        case MapOf():
            return [part for key, value, _ in node.entries for part in (key, value)]
        case Struct():
            return [value for _, _, value, _ in node.fields]
        case Fold():
            return [node.range, node.init, node.condition, node.step, node.result]
        case _:
            return []


def copied(node: Node) -> Node:  # noqa: PLR0911 - one answer for each kind
    """A deep copy of a tree."""
    match node:
        case Literal():
            return Literal(node.at, node.value)
        case Ident():
            return Ident(node.at, node.name)
        case Select():
            return Select(node.at, copied(node.operand), node.field, test=node.test)
        case Call():
            target = None if node.target is None else copied(node.target)
            return Call(node.at, node.function, [copied(arg) for arg in node.args], target)
        case ListOf():
            return ListOf(node.at, [copied(element) for element in node.elements], node.optional)
        case MapOf():
            return MapOf(node.at, [(copied(key), copied(value), maybe) for key, value, maybe in node.entries])
        case Struct():
            return Struct(
                node.at, node.name, [(at, name, copied(value), maybe) for at, name, value, maybe in node.fields]
            )
        case Fold():
            return Fold(
                node.at,
                node.macro,
                over=copied(node.range),
                first=node.first,
                second=node.second,
                accumulator=node.accumulator,
                init=copied(node.init),
                condition=copied(node.condition),
                step=copied(node.step),
                result=copied(node.result),
            )
        case _:
            return Node(node.at)
