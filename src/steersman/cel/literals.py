"""Checks of a typed expression beyond its types: literals that can never work.

Guarantees
- Duration, timestamp and regular expression literals are parsed before anything runs.
- The elements of a list or map literal have one type, except inside ``format([...])``; a format text fits its
  arguments.
"""

from __future__ import annotations

from typing import Final

from steersman.cel.library.format import format_issue
from steersman.cel.library.functions import FUNCTIONS
from steersman.cel.syntax.nodes import Call, ListOf, Literal, MapOf, Node, children
from steersman.cel.syntax.source import Issue
from steersman.cel.types import Type, unwrapped
from steersman.cel.values import CelError
from steersman.golang.regexp import expression_problem

_CONVERTED: Final = ("duration", "timestamp")


def literal_issues(root: Node) -> list[Issue]:
    """All issues with the literals of a tree whose types fit."""
    issues: list[Issue] = []
    _walk(root, issues, exempt=False)
    return issues


def _walk(node: Node, issues: list[Issue], *, exempt: bool) -> None:
    match node:
        case Call():
            _call(node, issues)
            exempt = exempt or node.function == "format"
        case ListOf() if not exempt:
            _list(node, issues)
        case MapOf() if not exempt:
            _map(node, issues)
        case _:
            pass
    for child in children(node):
        _walk(child, issues, exempt=exempt)


def _call(node: Call, issues: list[Issue]) -> None:
    first = node.args[0] if node.args else None
    if isinstance(first, Literal):
        if node.function in _CONVERTED and not _works(node.function, first):
            issues.append(Issue(first.at, f"invalid {node.function} argument"))
        if node.function == "matches" and isinstance(first.value, str) and expression_problem(first.value):
            issues.append(Issue(first.at, "invalid matches argument"))
    if node.function == "format" and isinstance(node.target, Literal) and isinstance(first, ListOf):
        _format(node, node.target, first, issues)


def _works(function: str, argument: Literal) -> bool:
    try:
        FUNCTIONS[function](argument.value)
    except CelError:
        return False
    return True


def _format(node: Call, text: Literal, args: ListOf, issues: list[Issue]) -> None:
    kinds = [arg.type.kind for arg in args.elements]
    names = [arg.type.name for arg in args.elements]
    found = format_issue(text.value, kinds, names)
    if found is not None:
        at, said = found
        issues.append(Issue(args.elements[at].at if at >= 0 else node.at, said))


def _list(node: ListOf, issues: list[Issue]) -> None:
    first: Type | None = None
    for at, element in enumerate(node.elements):
        kind = unwrapped(element.type)[0] if at in node.optional else element.type
        if first is None:
            first = kind
        elif kind != first:
            issues.append(Issue(element.at, f"expected type '{first}' but found '{kind}'"))
            return


def _map(node: MapOf, issues: list[Issue]) -> None:
    keys: Type | None = None
    values: Type | None = None
    for key, value, optional in node.entries:
        kind = unwrapped(value.type)[0] if optional else value.type
        if keys is None or values is None:
            keys, values = key.type, kind
            continue
        if key.type != keys:
            issues.append(Issue(key.at, f"expected type '{keys}' but found '{key.type}'"))
        if kind != values:
            issues.append(Issue(value.at, f"expected type '{values}' but found '{kind}'"))
