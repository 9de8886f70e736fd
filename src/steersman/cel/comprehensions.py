"""Compiles a `Fold`, which is what a comprehension becomes, into a closure that runs it.

Guarantees
- A variable hides an outer one of its name, and each has its own slot in the frame.
- ``all`` and ``exists`` end at the first element that decides. An error counts only if no element decides.
- A value that fails raises its error where the expression reads it, so an operator such as ``||`` can still ignore it.
- Costs are kube-apiserver's. A loop that exceeds the limit raises `CostExceeded` before it ends.

``Fold.macro`` selects one of three closures:

- ``bind``: ``self.?name.optMap(n, n + "!")`` gives a value the name ``n``.
- ``all`` and ``exists``: ``self.ports.all(p, p > 0)`` tests each element.
- ``gather`` and ``exists_one``: ``self.ports.map(p, p + 1)`` accumulates a list, a map or a count.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, cast

from steersman.cel.execution import EXPRESSION_MAX, Frame, Step
from steersman.cel.syntax.nodes import Call, Fold, ListOf, Literal, MapOf, Node
from steersman.cel.values import CelError, CostExceeded, Growing, Listing, Mapped, map_find, map_keys, no_overload

#: Compiles a node below the fold.
Compile: TypeAlias = Callable[[Node], Step]

#: The server's names for values that cannot be iterated.
_KINDS: Final[dict[type, str]] = {
    str: "String",
    int: "Int",
    float: "Double",
    bool: "Bool",
    bytes: "Bytes",
    type(None): "Null",
}
#: Stands for the second variable of a macro with one; no expression can contain this name.
_UNNAMED: Final = "#"
#: The cost of reading the accumulator, as each step and the result do.
_READ: Final = 1
#: The cost of ``@not_strictly_false(@result)`` or ``@not_strictly_false(!@result)``, which precedes each step.
_CONDITION: Final = {"all": 2, "exists": 3}
#: The first value of an accumulator, by its node. Steps change it in place, so each run has its own.
_BEGINNINGS: Final[dict[type[Node], Callable[[], Any]]] = {ListOf: Growing, MapOf: dict, Literal: int}


class Variables:
    """The variables in scope while an expression is compiled, and their slots in the frame."""

    def __init__(self, names: Sequence[str]) -> None:
        #: How many slots a frame needs.
        self.slots = len(names)
        self._scopes = [{name: slot for slot, name in enumerate(names)}]

    def slot_of(self, name: str) -> int | None:
        """The slot of the innermost variable with this name; None if there is none.

        With a dot first, the name is that of a variable which no macro declares.
        """
        if name.startswith("."):
            return self._scopes[0].get(name[1:])
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    @contextmanager
    def scope(self, *names: str) -> Generator[range]:
        """Declare variables for the length of a block, which gets their slots."""
        slots = range(self.slots, self.slots + len(names))
        self.slots = slots.stop
        self._scopes.append(dict(zip(names, slots, strict=True)))
        yield slots
        self._scopes.pop()


def compile_fold(node: Fold, variables: Variables, compile_node: Compile) -> Step:
    """The closure of a fold."""
    made = {"bind": _bind, "all": _quantifier, "exists": _quantifier}.get(node.macro, _gather)
    return made(node, variables, compile_node)


def _bind(node: Fold, variables: Variables, compile_node: Compile) -> Step:
    value = compile_node(node.init)
    with variables.scope(node.accumulator) as (slot,):
        result = compile_node(node.result)

    def bind(frame: Frame) -> Any:
        try:
            frame.slots[slot] = value(frame)
        except CelError as error:
            frame.slots[slot] = error
        return result(frame)

    return bind


def _quantifier(node: Fold, variables: Variables, compile_node: Compile) -> Step:
    pairs = _pairs(node, compile_node)
    _, tested = cast("Call", node.step).args  # @result && tested, @result || tested
    with variables.scope(node.first, node.second or _UNNAMED) as (first, second):
        predicate = compile_node(tested)
    decisive = node.macro == "exists"
    condition = _CONDITION[node.macro]

    def quantifier(frame: Frame) -> Any:
        error: CelError | None = None
        items = pairs(frame)
        slots = frame.slots
        last = len(items) - 1
        for at, (one, two) in enumerate(items):
            slots[first] = one
            slots[second] = two
            frame.cost += condition + _READ
            try:
                held = predicate(frame)
            except CelError as raised:
                error = error or raised
                held = not decisive  # undecided; the cost is checked below
            if held is decisive:
                # If an element follows, the server evaluates the condition once more.
                frame.cost += _READ + (condition if at != last else 0)
                return decisive
            if not isinstance(held, bool):
                error = error or no_overload()
            if frame.cost > EXPRESSION_MAX:
                raise CostExceeded(frame.cost)
        frame.cost += _READ
        if error is not None:
            raise error
        return not decisive

    return quantifier


def _gather(node: Fold, variables: Variables, compile_node: Compile) -> Step:
    pairs = _pairs(node, compile_node)
    beginning = _BEGINNINGS[type(node.init)]
    with variables.scope(node.accumulator) as (gathered,):
        with variables.scope(node.first, node.second or _UNNAMED) as (first, second):
            step = compile_node(node.step)
        result = compile_node(node.result)

    def gather(frame: Frame) -> Any:
        slots = frame.slots
        items = pairs(frame)
        slots[gathered] = beginning()
        for one, two in items:
            slots[first] = one
            slots[second] = two
            try:
                slots[gathered] = step(frame)
            except CelError as error:
                slots[gathered] = error
            if frame.cost > EXPRESSION_MAX:
                raise CostExceeded(frame.cost)
        made = result(frame)
        return list(cast("list[Any]", made)) if isinstance(made, Growing) else made

    return gather


def _pairs(node: Fold, compile_node: Compile) -> Callable[[Frame], list[tuple[Any, Any]]]:
    """The values of both variables, element by element: a macro with one variable sees items or keys."""
    range_ = compile_node(node.range)
    double = bool(node.second)

    def pairs(frame: Frame) -> list[tuple[Any, Any]]:
        value = range_(frame)
        if isinstance(value, list | Listing):
            items = cast("list[Any]", value)
            return list(enumerate(items)) if double else [(item, None) for item in items]
        if isinstance(value, dict | Mapped):
            if not double:
                return [(key, None) for key in map_keys(value)]
            return [(key, map_find(value, key).get()) for key in map_keys(value)]
        kind = f"types.{_KINDS.get(value.__class__, value.__class__.__name__)}"
        if double:
            raise CelError(f"unsupported comprehension range type: {kind}")
        raise CelError(f"got '{kind}', expected iterable type")

    return pairs
