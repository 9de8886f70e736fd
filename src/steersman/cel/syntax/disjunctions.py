"""Calls of one function, joined by ``||``: parsed as CEL, but neither checked nor run. Shard selectors have this form.

Guarantees
- The calls come in the order of the text, each as soon as it is read: what is wrong with an earlier one is found first.
- An expression of another form is a `NotDisjunction` with the server's message. Macros and optional syntax are off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from steersman.cel.syntax.nodes import Call, Ident, ListOf, Literal, MapOf, Node, Select, Struct
from steersman.cel.syntax.parser import parse
from steersman.cel.values import Uint
from steersman.golang import quoted

#: The numbers that messages show for kinds of expressions.
_KINDS: Final[dict[type[Node], int]] = {Call: 1, Ident: 3, ListOf: 4, Literal: 5, MapOf: 6, Select: 7, Struct: 8}
_GO_TYPES: Final[dict[type[Any], str]] = {
    bool: "bool",
    int: "int64",
    Uint: "uint64",
    float: "float64",
    str: "string",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
}


class NotDisjunction(ValueError):
    """An expression is not a call of the function, or several of them joined by ``||``."""


class CallArgument(NamedTuple):
    """One argument of a call."""

    #: The number that messages show for the kind of expression.
    kind: int
    #: ``a.b.c`` as a text; None for anything else than a name and its fields.
    path: str | None
    #: The number that messages show for what keeps the argument from being a path.
    path_kind: int
    #: The value of a literal text; None for anything else.
    text: str | None
    #: Go's name for the type of a literal; empty for anything else.
    literal_type: str


def disjoined_calls(text: str, function: str) -> Iterator[list[CallArgument]]:
    """The arguments of each call."""
    node, issues = parse(text, plain=True)
    if node is None:
        raise NotDisjunction(f"CEL parse error: {min(issues, key=lambda issue: issue.at).said}")
    return _calls(node, function)


def _calls(node: Node, function: str) -> Iterator[list[CallArgument]]:
    if not isinstance(node, Call):
        words = f"unexpected expression kind {_KINDS[type(node)]}; expected {function}() call or || operator"
        raise NotDisjunction(words)
    if node.function == "_||_":
        for each in node.args:
            yield from _calls(each, function)
    elif node.function == function:
        yield [_argument(each) for each in node.args]
    else:
        words = f"unsupported function {quoted(node.function)}; only {function}() and || are allowed"
        raise NotDisjunction(words)


def _argument(node: Node) -> CallArgument:
    names: list[str] = []
    root = node
    while isinstance(root, Select):
        names.append(root.field)
        root = root.operand
    path = ".".join((root.name, *reversed(names))) if isinstance(root, Ident) else None
    value = node.value if isinstance(node, Literal) else None
    return CallArgument(
        kind=_KINDS[type(node)],
        path=path,
        path_kind=_KINDS[type(root)],
        text=value if isinstance(value, str) else None,
        literal_type=_GO_TYPES[type(value)] if isinstance(node, Literal) else "",
    )
