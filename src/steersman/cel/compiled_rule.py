"""One compiled rule of a schema, with its problems and its estimated cost.

Guarantees
- Messages are kube-apiserver's.
- A compiled rule is independent of any object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from steersman.cel import types as t
from steersman.cel.costs.estimator import estimated
from steersman.cel.evaluator import program
from steersman.cel.execution import Program
from steersman.cel.field_paths import normalized_path
from steersman.cel.literals import literal_issues
from steersman.cel.model import Declared, Shape, Structs
from steersman.cel.syntax.nodes import Ident, Node, children
from steersman.cel.syntax.parser import parse
from steersman.cel.syntax.source import TOO_DEEP, Issue, Source
from steersman.cel.type_checker import check
from steersman.cel.types import Type
from steersman.cel.values import CelError

_OBJECT: Final = re.compile(r"object@\d+")
#: The server numbers the type of ``self`` anew each time; the number has no meaning.
_SELF_TYPE: Final = "selfType0"


class Expression:
    """A compiled expression, or the reason why compilation failed."""

    __slots__ = ("cost", "error", "program", "uses_old")

    def __init__(self) -> None:
        self.error = ""
        self.program: Program | None = None
        self.cost = 0
        self.uses_old = False


class CompiledRule:
    """A rule with its expressions."""

    __slots__ = ("expression", "field_path", "message", "optional_old", "rule")

    def __init__(self, rule: Mapping[str, Any], shape: Shape, declared: Declared, structs: Structs) -> None:
        self.rule = rule
        self.optional_old = bool(rule.get("optionalOldSelf"))
        self.message: Expression | None = None
        self.field_path = ""
        text: str = rule.get("rule") or ""
        self.expression = Expression()
        if not text.strip():
            return
        compiler = _Compiler(declared, structs, optional_old=self.optional_old)
        self.expression = compiler.compiled(text, t.BOOL, "", "cel expression must evaluate to a bool")
        if self.expression.error:
            return
        if rule.get("messageExpression"):
            self.message = compiler.compiled(
                rule["messageExpression"], t.STRING, "messageExpression ", "messageExpression must evaluate to a string"
            )
            if self.message.error:
                return
        if rule.get("fieldPath"):
            self.field_path = normalized_path(rule["fieldPath"], shape) or ""

    @property
    def said(self) -> str:
        """The rule as a message names it."""
        return (self.rule.get("message") or self.rule.get("rule") or "").strip()


class _Compiler:
    def __init__(self, declared: Declared, structs: Structs, *, optional_old: bool) -> None:
        self._declared = declared
        self._structs = structs
        old = t.optional_of(declared.type) if optional_old else declared.type
        self._variables = {"self": declared.type, "oldSelf": old}

    def compiled(self, text: str, wanted: Type, prefix: str, otherwise: str) -> Expression:
        """Compile an expression whose value must have a type."""
        made = Expression()
        try:
            self._compile(made, text, wanted, prefix, otherwise)
        except RecursionError:
            made.error = f"{prefix}compilation failed: {Source(text).printed([TOO_DEEP])}"
        return made

    def _compile(self, made: Expression, text: str, wanted: Type, prefix: str, otherwise: str) -> None:
        root, issues = self._checked(text)
        if root is None or issues:
            printed = Source(text).printed(issues)
            made.error = f"{prefix}compilation failed: {self._named(printed)}"
            return
        if root.type != wanted:
            made.error = otherwise
            return
        made.uses_old = _uses_old(root)
        try:
            compiled = program(root)
        except CelError as error:
            made.error = f"{prefix or 'program '}instantiation failed: {error}"
            return
        made.cost = estimated(root, self._declared)
        made.program = compiled

    def _checked(self, text: str) -> tuple[Node | None, list[Issue]]:
        root, issues = parse(text)
        if root is None:
            return None, issues
        issues = check(root, self._variables, self._structs)
        return root, issues or literal_issues(root)

    def _named(self, printed: str) -> str:
        """A message with the object types named relative to this rule."""
        if "object@" not in printed:
            return printed
        names = self._structs.names_from(self._declared, _SELF_TYPE)
        return _OBJECT.sub(lambda found: names.get(found[0], found[0]), printed)


def _uses_old(root: Node) -> bool:
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Ident) and node.name.removeprefix(".") == "oldSelf":
            return True
        pending += children(node)
    return False
