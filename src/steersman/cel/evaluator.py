"""Compile a checked tree into closures that count their cost.

Guarantees
- `program` returns a function from (self, oldSelf) to a value, with kube-apiserver's cost. An expression that exceeds
  its limit raises `CostExceeded`; one that fails raises `CelError` with the server's message.
- ``&&``, ``||``, ``all`` and ``exists`` ignore an error if the other terms decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from steersman.cel.access import element_of, field_of, holds, optional_field_of, shown_key
from steersman.cel.comprehensions import Variables, compile_fold
from steersman.cel.costs.runtime import charge_of
from steersman.cel.data.schema_data import ObjectData
from steersman.cel.execution import Frame, Program, Step
from steersman.cel.field_names import unescape
from steersman.cel.library.functions import CONVERSIONS, FUNCTIONS, guarded
from steersman.cel.syntax.nodes import Call, Fold, Ident, ListOf, Literal, MapOf, Node, Select, Struct
from steersman.cel.types import Type
from steersman.cel.values import (
    ARITHMETIC,
    NOTHING,
    Aborted,
    CelError,
    Duration,
    Listing,
    MadeObject,
    Maybe,
    Opaque,
    TypeName,
    Uint,
    compare,
    cost_size,
    equal,
    is_ordered,
    no_overload,
    type_name,
    unfit,
)
from steersman.golang.regexp import expression_problem

_COMPARISONS: Final[dict[str, Callable[[int], bool]]] = {
    "_<_": lambda order: order < 0,
    "_<=_": lambda order: order <= 0,
    "_>_": lambda order: order > 0,
    "_>=_": lambda order: order >= 0,
}
_ZEROS: Final[dict[str, Any]] = {"double": 0.0, "uint": Uint(0), "duration": Duration(0)}
#: Functions whose cost the server cannot compute if their list is an error.
_STUMBLING: Final = frozenset({"distinct", "sort", "@sortByAssociatedKeys"})
#: Valid map keys. On others the server's own code fails, or never finds the key.
_KEYS: Final = (str, int, float, bool, type(None))
_SIMPLE: Final = frozenset({"int", "bool", "double", "uint", "timestamp", "duration"})


def _is_open(kind: Type) -> bool:
    """Whether a type, or part of it, is known only at run time."""
    return kind.kind in {"dyn", "error"} or any(map(_is_open, kind.of))


def _stumbling(step: Step) -> Step:
    def run(frame: Frame) -> Any:
        try:
            return step(frame)
        except CelError:
            said = "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"
            raise Aborted(said) from None

    return run


def program(root: Node, variables: Sequence[str] = ()) -> Program:
    """Compile a checked tree. Raises CelError if a constant in it has no value.

    Without ``variables``, those are self and oldSelf.
    """
    declared = Variables(variables)
    step = _Compiler(declared).compile(root)
    return Program(step, declared.slots)


class _Compiler:
    def __init__(self, variables: Variables) -> None:
        self._variables = variables

    def compile(self, node: Node) -> Step:  # noqa: PLR0911 - one answer for each kind
        known, value = self.constant(node)
        if known:
            return lambda _: value
        match node:
            case Ident():
                return self._ident(node)
            case Select():
                return self._has(node) if node.test else self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Fold():
                return compile_fold(node, self._variables, self.compile)
            case Struct():
                return self._struct(node)
            case _:
                raise CelError("unsupported expr")

    def constant(self, node: Node) -> tuple[bool, Any]:  # noqa: PLR0911 - one answer for each kind
        """Whether a node is constant, and its value."""
        match node:
            case Literal():
                return True, node.value
            case Ident() | Select() if node.names_type is not None:
                return True, TypeName(node.names_type.name)
            case ListOf() if not node.optional:
                parts = [self.constant(element) for element in node.elements]
                return all(known for known, _ in parts), [value for _, value in parts]
            case MapOf() if not any(optional for _, _, optional in node.entries):
                pairs = [(self.constant(key), self.constant(value)) for key, value, _ in node.entries]
                if not all(key[0] and value[0] and isinstance(key[1], _KEYS) for key, value in pairs):
                    return False, None
                return True, {key[1]: value[1] for key, value in pairs}
            case Call() if node.function in CONVERSIONS and len(node.args) == 1 and node.target is None:
                known, value = self.constant(node.args[0])
                return (True, FUNCTIONS[node.function](value)) if known else (False, None)
            case _:
                return False, None

    def _struct(self, node: Struct) -> Step:
        parts = [(name, self.compile(value), optional) for _, name, value, optional in node.fields]
        kind = node.name

        def make(frame: Frame) -> Any:
            frame.cost += 40
            made = MadeObject(kind)
            for name, part, optional in parts:
                value = part(frame)
                if optional:
                    if not value.held:
                        continue
                    value = value.held[0]
                made[name] = value
            return made

        return make

    def _ident(self, node: Ident) -> Step:
        name = node.name.removeprefix(".")
        slot = self._variables.slot_of(node.name)
        if slot is not None:

            def from_slot(frame: Frame) -> Any:
                frame.cost += 1
                value = frame.slots[slot]
                if type(value) is CelError:
                    raise value
                return value

            return from_slot
        if name == "self":

            def this(frame: Frame) -> Any:
                frame.cost += 1
                if type(frame.this) is CelError:
                    raise frame.this
                return frame.this

            return this

        def old(frame: Frame) -> Any:
            frame.cost += 1
            if type(frame.old) is CelError:
                raise frame.old
            return frame.old

        return old

    def _operand(self, node: Node) -> tuple[Step, int]:
        """The operand of a selection, and the additional cost of selecting from it."""
        attribute = isinstance(node, Ident | Select) or (
            isinstance(node, Call) and node.function in {"_[_]", "_[?_]", "_?._", "_?_:_"}
        )
        return self.compile(node), 1 if attribute else 2

    def _select(self, node: Select) -> Step:
        operand, cost = self._operand(node.operand)
        field = node.field
        plain = unescape(field)

        def select(frame: Frame) -> Any:
            value = operand(frame)
            frame.cost += cost
            if type(value) is ObjectData and value.shape.properties is not None:
                found = value.field(plain)
            elif isinstance(value, Maybe):
                return optional_field_of(value, field)
            else:
                found = field_of(value, field)
            if not found.held:
                raise CelError(f"no such key: {field}")
            return found.held[0]

        return select

    def _has(self, node: Select) -> Step:
        operand, cost = self._operand(node.operand)
        field = node.field

        def has(frame: Frame) -> Any:
            value = operand(frame)
            frame.cost += cost - 1
            if isinstance(value, Maybe):
                return bool(optional_field_of(value, field).held)
            return bool(field_of(value, field).held)

        return has

    def _call(self, node: Call) -> Step:  # noqa: PLR0911 - one answer for each kind
        match node.function:
            case "_&&_":
                return self._junction([self.compile(arg) for arg in node.args], decides=False)
            case "_||_":
                return self._junction([self.compile(arg) for arg in node.args], decides=True)
            case "_?_:_":
                return self._conditional(node)
            case "_==_" | "_!=_":
                return self._equality(node)
            case "_[_]" | "_[?_]" | "_?._":
                return self._index(node)
            case "@in":
                return self._in(node)
            case "or" | "orValue" if node.target is not None:
                return self._or(node.function, self.compile(node.target), self.compile(node.args[0]))
            case function if function in _COMPARISONS:
                return self._comparison(node)
            case "_+_" | "_-_" | "_*_" | "_/_" | "_%_":
                return self._arithmetic(node)
            case _:
                return self._function(node)

    def _junction(self, terms: list[Step], *, decides: bool) -> Step:
        """``&&`` and ``||``: one deciding term is enough, even if others fail."""

        def joined(frame: Frame) -> Any:
            error: CelError | None = None
            for term in terms:
                try:
                    value = term(frame)
                except CelError as raised:
                    error = error or raised
                    continue
                if value is decides:
                    return decides
                if not isinstance(value, bool):
                    error = error or no_overload()
            if error is not None:
                raise error
            return not decides

        return joined

    def _conditional(self, node: Call) -> Step:
        condition, then, otherwise = (self.compile(arg) for arg in node.args)
        # A path as a branch belongs to the path of the conditional, which is charged once.
        less, less_otherwise = (int(isinstance(arg, Ident | Select)) for arg in node.args[1:])

        def conditional(frame: Frame) -> Any:
            held = condition(frame)
            if held is True:
                frame.cost -= less
                return then(frame)
            if held is False:
                frame.cost -= less_otherwise
                return otherwise(frame)
            raise no_overload()

        return conditional

    def _equality(self, node: Call) -> Step:
        one, two = (self.compile(arg) for arg in node.args)
        simple = all(arg.type.kind in _SIMPLE for arg in node.args)
        wanted = node.function == "_==_"

        def equality(frame: Frame) -> Any:
            left = one(frame)
            right = two(frame)
            if simple or (wanted and isinstance(left, Opaque)):
                frame.cost += 1
            else:
                frame.cost += math.ceil(min(cost_size(left), cost_size(right)) * 0.1)
            if wanted:
                return equal(left, right)
            try:
                return not equal(left, right)
            except CelError:
                return True

        return equality

    def _comparison(self, node: Call) -> Step:
        one, two = (self.compile(arg) for arg in node.args)
        decide = _COMPARISONS[node.function]
        texts = len(node.overloads) == 1 and node.overloads[0].endswith(("_string", "_bytes"))
        function = node.function

        def comparison(frame: Frame) -> Any:
            left = one(frame)
            right = two(frame)
            frame.cost += math.ceil(min(cost_size(left), cost_size(right)) * 0.1) if texts else 1
            if not is_ordered(left):
                raise unfit(function, left)
            return decide(compare(left, right))

        return comparison

    def _arithmetic(self, node: Call) -> Step:
        one, two = (self.compile(arg) for arg in node.args)
        operate = ARITHMETIC[node.function]
        charge = charge_of(node)
        if isinstance(charge, int):

            def plain(frame: Frame) -> Any:
                left = one(frame)
                right = two(frame)
                frame.cost += charge
                return operate(left, right)

            return plain

        def arithmetic(frame: Frame) -> Any:
            left = one(frame)
            right = two(frame)
            frame.cost += charge((left, right), None)
            return operate(left, right)

        return arithmetic

    def _index(self, node: Call) -> Step:
        operand, cost = self._operand(node.args[0])
        key = self.compile(node.args[1])
        named = isinstance(node.args[1], Ident)
        optional = node.function != "_[_]"

        def index(frame: Frame) -> Any:
            value = operand(frame)
            at = key(frame)
            # A variable as index is part of the path and is not charged separately.
            frame.cost += cost - named
            if isinstance(value, Maybe):
                if not value.held:
                    return NOTHING
                return element_of(value.held[0], at)
            found = element_of(value, at)
            if optional:
                return found
            if not found.held:
                if isinstance(value, list | Listing):
                    raise CelError(f"index out of bounds: {shown_key(at)}")
                raise CelError(f"no such key: {shown_key(at)}")
            return found.held[0]

        return index

    def _in(self, node: Call) -> Step:
        item = self.compile(node.args[0])
        known, held = self.constant(node.args[1])
        members = cast("list[Any]", held) if known and isinstance(held, list) else None
        if members is not None and all(is_ordered(one) and not isinstance(one, bytes) for one in members):

            def in_constants(frame: Frame) -> Any:
                value = item(frame)
                return any(equal(value, member) for member in members)

            return in_constants
        container = self.compile(node.args[1])
        sized = node.overloads == ("in_list",)

        def contains(frame: Frame) -> Any:
            value = item(frame)
            holder = container(frame)
            frame.cost += cost_size(holder) if sized else 1
            return holds(holder, value)

        return contains

    def _or(self, function: str, target: Step, other: Step) -> Step:
        def either(frame: Frame) -> Any:
            value = target(frame)
            if not isinstance(value, Maybe):
                raise no_overload()
            if value.held:
                return value.held[0] if function == "orValue" else value
            return other(frame)

        return either

    def _function(self, node: Call) -> Step:
        nodes = [node.target, *node.args] if node.target is not None else node.args
        args = [self.compile(arg) for arg in nodes]
        known = FUNCTIONS.get(node.function.removeprefix("."))
        if known is None:
            raise CelError(f"no such overload: {node.function}")
        checked = guarded(node, known)
        call = checked if any(_is_open(arg.type) for arg in nodes) else known
        charge = charge_of(node)
        if node.function in {"find", "findAll"} and isinstance(node.args[0], Literal):
            said = expression_problem(node.args[0].value)
            if said:
                raise CelError(said)
        if node.function in _STUMBLING:
            args = [_stumbling(arg) for arg in args]
        zero = _ZEROS.get(node.type.kind) if node.function == "sum" else None

        def function(frame: Frame) -> Any:
            values = tuple([arg(frame) for arg in args])
            # Null has none of the checked types.
            run = checked if None in values else call
            if isinstance(charge, int):
                frame.cost += charge
                return run(*values)
            try:
                result = run(*values)
            except CelError:
                frame.cost += charge(values, None)
                raise
            frame.cost += charge(values, result)
            return zero if zero is not None and result == 0 else result

        return function

    def _list(self, node: ListOf) -> Step:
        parts = [(self.compile(element), at in node.optional) for at, element in enumerate(node.elements)]

        def listing(frame: Frame) -> Any:
            made: list[Any] = []
            for part, optional in parts:
                value = part(frame)
                if not optional:
                    made.append(value)
                elif not isinstance(value, Maybe):
                    raise CelError(
                        f"cannot initialize optional list element from non-optional value {shown_key(value)}"
                    )
                else:
                    made.extend(value.held)
            frame.cost += 10
            return made

        return listing

    def _map(self, node: MapOf) -> Step:
        parts = [(self.compile(key), self.compile(value), optional) for key, value, optional in node.entries]

        def mapping(frame: Frame) -> Any:
            made: dict[Any, Any] = {}
            for key_of, value_of, optional in parts:
                key, value = key_of(frame), value_of(frame)
                if not isinstance(key, _KEYS):
                    raise CelError(f"unsupported key type '{type_name(key)}' in map")
                if not optional:
                    made[key] = value
                elif not isinstance(value, Maybe):
                    raise CelError(
                        f"cannot initialize optional entry '{shown_key(key)}' from non-optional value {shown_key(value)}"
                    )
                elif value.held:
                    made[key] = value.held[0]
                else:
                    made.pop(key, None)
            frame.cost += 30
            return made

        return mapping
