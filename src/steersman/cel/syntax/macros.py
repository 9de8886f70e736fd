"""Macros: calls that expand to other expressions before anything is checked.

Guarantees
- Each macro expands to the server's tree, with all nodes at the position of the call, so that types, costs and messages
  are the same.
"""

from __future__ import annotations

from steersman.cel.syntax.nodes import RESULT, Call, Fold, Ident, ListOf, Literal, MapOf, Node, Select, copied
from steersman.cel.syntax.source import Refused

_QUANTIFIERS = {"all", "exists", "exists_one", "existsOne"}
_TRANSFORMS = {"transformList", "transformMap", "transformMapEntry"}
_SORTED_INPUT = "@__sortBy_input__"
_SORTABLE = (ListOf, Select, Ident, Fold, Call)


def expanded(at: int, function: str, args: list[Node], target: Node | None) -> Node | None:  # noqa: PLR0911 - one answer for each kind
    """The expansion of a macro; None for an ordinary call."""
    count = len(args)
    if target is None:
        return _has(at, args) if function == "has" and count == 1 else None
    if function in _QUANTIFIERS and (count == 3 or (count == 2 and function != "existsOne")):
        return _quantifier(at, function, target, args)
    if (function == "map" and count in {2, 3}) or (function == "filter" and count == 2):
        return _mapped(at, function, target, args)
    if function in _TRANSFORMS and count in {3, 4}:
        return _transformed(at, function, target, args)
    if function in {"optMap", "optFlatMap"} and count == 2:
        return _opt_map(at, function, target, args)
    if function == "sortBy" and count == 2:
        return _sort_by(at, target, args)
    return None


def _has(at: int, args: list[Node]) -> Node:
    match args[0]:
        case Select(test=False) as selected:
            return Select(at, selected.operand, selected.field, test=True)
        case other:
            raise Refused(other.at, "invalid argument to has() macro")


def _variable(node: Node, said: str = "argument must be a simple name") -> str:
    if not isinstance(node, Ident):
        raise Refused(node.at, said)
    if node.name in {RESULT, "__result__"}:
        raise Refused(node.at, "iteration variable overwrites accumulator variable")
    return node.name


def _variables(args: list[Node]) -> tuple[str, str]:
    """The variable names of a macro with two variables: key or index, and value."""
    for node in args[:2]:
        if not isinstance(node, Ident):
            raise Refused(node.at, "argument must be a simple name")
    first, second = _variable(args[0]), _variable(args[1])
    if first == second:
        raise Refused(args[1].at, f"duplicate variable name: {first}")
    return first, second


def _quantifier(at: int, function: str, target: Node, args: list[Node]) -> Node:
    first, second = _variables(args) if len(args) == 3 else (_variable(args[0]), "")
    predicate = args[-1]
    gathered = Ident(at, RESULT)
    match function:
        case "all":
            macro, init = "all", Literal(at, True)
            condition: Node = Call(at, "@not_strictly_false", [Ident(at, RESULT)])
            step: Node = Call(at, "_&&_", [Ident(at, RESULT), predicate])
            result: Node = gathered
        case "exists":
            macro, init = "exists", Literal(at, False)
            condition = Call(at, "@not_strictly_false", [Call(at, "!_", [Ident(at, RESULT)])])
            step = Call(at, "_||_", [Ident(at, RESULT), predicate])
            result = gathered
        case _:
            macro, init = "exists_one", Literal(at, 0)
            condition = Literal(at, True)
            more = Call(at, "_+_", [Ident(at, RESULT), Literal(at, 1)])
            step = Call(at, "_?_:_", [predicate, more, Ident(at, RESULT)])
            result = Call(at, "_==_", [gathered, Literal(at, 1)])
    return Fold(
        at, macro, over=target, first=first, second=second, init=init, condition=condition, step=step, result=result
    )


def _gathering(at: int, target: Node, names: tuple[str, str], init: Node, step: Node, only: Node | None) -> Node:
    """A fold that adds something for each element, or for each that `only` accepts."""
    if only is not None:
        step = Call(at, "_?_:_", [only, step, Ident(at, RESULT)])
    return Fold(
        at,
        "gather",
        over=target,
        first=names[0],
        second=names[1],
        init=init,
        condition=Literal(at, True),
        step=step,
        result=Ident(at, RESULT),
    )


def _mapped(at: int, function: str, target: Node, args: list[Node]) -> Node:
    name = _variable(args[0], "argument is not an identifier")
    added, only = (args[0], args[1]) if function == "filter" else (args[-1], args[1] if len(args) == 3 else None)
    step = Call(at, "_+_", [Ident(at, RESULT), ListOf(at, [added])])
    return _gathering(at, target, (name, ""), ListOf(at, []), step, only)


def _transformed(at: int, function: str, target: Node, args: list[Node]) -> Node:
    names = _variables(args)
    only = args[2] if len(args) == 4 else None
    made = args[-1]
    if function == "transformList":
        step = Call(at, "_+_", [Ident(at, RESULT), ListOf(at, [made])])
        return _gathering(at, target, names, ListOf(at, []), step, only)
    key = [Ident(at, names[0])] if function == "transformMap" else []
    step = Call(at, "cel.@mapInsert", [Ident(at, RESULT), *key, made])
    return _gathering(at, target, names, MapOf(at, []), step, only)


def _bound(at: int, name: str, value: Node, result: Node) -> Node:
    """A value bound to a name: a fold over nothing."""
    return Fold(
        at,
        "bind",
        over=ListOf(at, []),
        first="#unused",
        accumulator=name,
        init=value,
        condition=Literal(at, False),
        step=Ident(at, name),
        result=result,
    )


def _opt_map(at: int, function: str, target: Node, args: list[Node]) -> Node:
    if not isinstance(args[0], Ident):
        raise Refused(args[0].at, f"{function}() variable name must be a simple identifier")
    made = _bound(at, args[0].name, Call(at, "value", [], copied(target)), args[1])
    if function == "optMap":
        made = Call(at, "optional.of", [made])
    return Call(at, "_?_:_", [Call(at, "hasValue", [], target), made, Call(at, "optional.none", [])])


def _sort_by(at: int, target: Node, args: list[Node]) -> Node:
    if not isinstance(target, _SORTABLE):
        raise Refused(
            target.at, "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        )
    keys = _mapped(at, "map", Ident(at, _SORTED_INPUT), args)
    return _bound(at, _SORTED_INPUT, target, Call(at, "@sortByAssociatedKeys", [keys], Ident(at, _SORTED_INPUT)))
