"""Expressions over several variables, such as the match conditions of webhooks and the rules of admission policies.

Guarantees
- `Environment.compiled` reports what kube-apiserver reports about an expression: syntax, types, and the type of its value.
- An expression runs within a `Budget`, which the expressions of one evaluation share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from steersman.cel import types as t
from steersman.cel.evaluator import program
from steersman.cel.execution import Program
from steersman.cel.field_names import RESERVED
from steersman.cel.literals import literal_issues
from steersman.cel.syntax.nodes import Node
from steersman.cel.syntax.parser import parse
from steersman.cel.syntax.source import TOO_DEEP, Issue, Source
from steersman.cel.type_checker import check
from steersman.cel.types import Type, read_type
from steersman.cel.values import CelError, CostExceeded, Mapped, Maybe
from steersman.golang.regexp import one_budget

#: The fields of types that expressions can make: an Object may have any.
_OBJECT_FIELDS: Final[Mapping[str, Type]] = {}
_PATCH_FIELDS: Final[Mapping[str, Type]] = {"op": t.STRING, "path": t.STRING, "from": t.STRING, "value": t.DYN}
#: Types that these messages name differently.
_NAMES: Final = {"null": "null_type"}
_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"


class CompiledExpression:
    """An expression that can run, or the reason why it cannot."""

    __slots__ = ("error", "program", "text", "type")

    def __init__(self, text: str) -> None:
        self.text = text
        self.error = ""
        self.program: Program | None = None
        self.type: Type = t.DYN


class Budget:
    """The cost that expressions may have together."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class BudgetExceeded(Exception):
    """No further expression may run."""


class LazyFields(Mapped):
    """The value of a struct variable whose fields are computed on first use, each once; an error is a value too."""

    __slots__ = ("_compute", "_names", "_values")

    def __init__(self, names: Sequence[str], compute: Callable[[str], Any]) -> None:
        self._names = list(names)
        self._compute = compute
        self._values: dict[str, Any] = {}

    def find(self, key: Any) -> Maybe:
        """The value of a field. Raises its error."""
        if key not in self._values:
            self._values[key] = self._compute(key)
        value = self._values[key]
        if isinstance(value, CelError):
            raise value
        return Maybe(value)

    def size(self) -> int:
        """The number of fields."""
        return len(self._names)

    def keys(self) -> list[Any]:
        """The names of the fields."""
        return list(self._names)

    def equals(self, other: Any) -> bool:
        """Whether it is the same struct."""
        return self is other


class Environment:
    """The variables of expressions, by name and type: ``{"object": "dyn", "request": "kubernetes.AdmissionRequest"}``.

    ``structs`` are the types of the fields of struct types. ``patches`` lets expressions make objects:
    ``Object{spec: Object.spec{...}}`` and ``JSONPatch{op: "add", ...}``.
    """

    def __init__(
        self,
        variables: Mapping[str, str | Type],
        structs: Mapping[str, Mapping[str, str | Type]],
        *,
        patches: bool = False,
    ) -> None:
        self._patches = patches
        self._structs = {name: _read(fields, structs) for name, fields in structs.items()}
        self._variables = _read(variables, structs)
        self._names = tuple(self._variables)

    def field_type(self, struct: str, field: str) -> Type | None:
        """The type of a field; None if the struct has no such field."""
        fields = self._structs.get(struct, {})
        plain = field.removeprefix("__").removesuffix("__")
        return fields.get(field) or (fields.get(plain) if plain in RESERVED else None)

    def literal_fields(self, name: str) -> Mapping[str, Type] | None:
        """The fields of a type that ``Name{field: value}`` makes."""
        if not self._patches:
            return None
        if name == "Object" or name.startswith("Object."):
            return _OBJECT_FIELDS
        return _PATCH_FIELDS if name == "JSONPatch" else None

    def declare_field(self, struct: str, field: str, kind: Type) -> None:
        """Declare one more field of a struct."""
        self._structs.setdefault(struct, {})[field] = kind

    def compiled(self, text: str, *wanted: str) -> CompiledExpression:
        """Compile an expression whose value must have one of these types; any type without them."""
        expression = CompiledExpression(text)
        try:
            self._compile(expression, wanted)
        except RecursionError:
            expression.error = f"compilation failed: {Source(text).printed([TOO_DEEP])}"
        return expression

    def _compile(self, expression: CompiledExpression, wanted: tuple[str, ...]) -> None:
        text = expression.text
        root, issues = self._checked(text)
        if root is None or issues:
            expression.error = f"compilation failed: {Source(text).printed(issues)}"
            return
        expression.type = root.type
        actual = _NAMES.get(str(root.type), str(root.type))
        if wanted and actual not in wanted:
            expected = wanted[0] if len(wanted) == 1 else f"one of [{' '.join(wanted)}]"
            expression.error = f"must evaluate to {expected} but got {actual}"
            return
        try:
            expression.program = program(root, self._names)
        except CelError as error:
            expression.error = f"program instantiation failed: {error}"

    def run(self, expression: CompiledExpression, values: Mapping[str, Any], budget: Budget) -> Any:
        """The value of an expression, or its error as a `CelError`. Raises `BudgetExceeded`."""
        if expression.program is None:
            return CelError(expression.error)
        try:
            with one_budget():
                value, cost = expression.program.run_with([values.get(name) for name in self._names])
        except CostExceeded as exceeded:
            budget.left -= exceeded.args[0]
            if budget.left < 0:
                raise BudgetExceeded from None
            return CelError(_EXCEEDED)
        budget.left -= cost
        if budget.left < 0:
            raise BudgetExceeded
        return value

    def _checked(self, text: str) -> tuple[Node | None, list[Issue]]:
        """The tree of an expression, with the types of its parts, and what is wrong with it."""
        root, issues = parse(text)
        if root is None:
            return None, issues
        issues = check(root, self._variables, self)
        return root, issues or literal_issues(root)


def _read(fields: Mapping[str, str | Type], structs: Mapping[str, Any]) -> dict[str, Type]:
    return {
        name: kind if isinstance(kind, Type) else Type("struct", kind) if kind in structs else read_type(kind)
        for name, kind in fields.items()
    }
