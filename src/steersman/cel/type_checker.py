"""The type checker of expressions.

Guarantees
- In a checked tree, every node has a type and every call has its possible overloads. A mismatch is an issue with
  kube-apiserver's message and position.
- Literals are checked as by the server: durations, timestamps, regular expressions, format strings, homogeneous lists
  and maps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from steersman.cel import types as t
from steersman.cel.declarations import TYPE_NAMES, Overload, functions
from steersman.cel.syntax.nodes import (
    Call,
    Fold,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
    Struct,
    children,
    qualified_name,
)
from steersman.cel.syntax.source import Issue
from steersman.cel.types import Bindings, Type
from steersman.cel.values import Uint


class Structs(Protocol):
    """The struct types that an expression can use."""

    def field_type(self, struct: str, field: str) -> Type | None:
        """The type of a field; None if the struct has no such field."""
        ...

    def literal_fields(self, name: str) -> Mapping[str, Type] | None:
        """The fields of a type that ``Name{field: value}`` makes; empty for any, None if it makes no such type."""
        ...


#: The prefix of functions for expressions that make patches.
_PATCHES = "jsonpatch"
_LITERALS: dict[type, Type] = {
    bool: t.BOOL,
    int: t.INT,
    Uint: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    type(None): t.NULL,
}


def check(root: Node, variables: Mapping[str, Type], structs: Structs) -> list[Issue]:
    """Give every node its type. Returns the issues in the order of discovery."""
    checker = _Checker(variables, structs)
    checker.check(root)
    checker.finish(root)
    return checker.issues


class _Checker:
    def __init__(self, variables: Mapping[str, Type], structs: Structs) -> None:
        self.issues: list[Issue] = []
        self._structs = structs
        self._bindings = Bindings()
        self._scopes: list[dict[str, Type]] = [dict(variables)]

    def report(self, node: Node, said: str) -> None:
        self.issues.append(Issue(node.at, said))

    def finish(self, root: Node) -> None:
        """Replace the remaining type variables."""
        pending = [root]
        while pending:
            node = pending.pop()
            node.type = self._bindings.resolved(node.type, to_dyn=True)
            pending += children(node)

    def check(self, node: Node) -> None:
        match node:
            case Literal():
                node.type = _LITERALS[type(node.value)]
            case Ident():
                self._ident(node)
            case Select():
                self._select(node)
            case Call():
                self._call(node)
            case ListOf():
                self._list(node)
            case MapOf():
                self._map(node)
            case Struct():
                self._struct(node)
            case Fold():
                self._fold(node)
            case _:
                node.type = t.ERROR

    def _variable(self, name: str) -> Type | None:
        """The type of the innermost variable; with a dot first, of one that no macro declares."""
        scopes, name = (self._scopes[:1], name[1:]) if name.startswith(".") else (self._scopes, name)
        for scope in reversed(scopes):
            if name in scope:
                return scope[name]
        return None

    def _undeclared(self, node: Node, name: str) -> None:
        node.type = t.ERROR
        self.report(node, f"undeclared reference to '{name}' (in container '')")

    def _ident(self, node: Ident) -> None:
        known = self._variable(node.name)
        if known is not None:
            node.type = known
            return
        named = TYPE_NAMES.get(node.name.removeprefix("."))
        if named is None:
            self._undeclared(node, node.name)
            return
        node.names_type = named
        node.type = t.type_of(named)

    def _select(self, node: Select) -> None:
        named = TYPE_NAMES.get(qualified_name(node) or "")
        if named is not None:
            node.names_type = named
            node.type = t.type_of(named)
            return
        kind = self._field(node, node.operand, node.field, optional=False)
        node.type = t.BOOL if node.test else self._bindings.resolved(kind)

    def _field(self, node: Node, operand: Node, field: str, *, optional: bool) -> Type:
        self.check(operand)
        target, wrapped = t.unwrapped(self._bindings.resolved(operand.type))
        match target.kind:
            case "map":
                kind = target.of[1]
            case "struct":
                found = self._structs.field_type(target.name, field)
                if found is None:
                    self.report(node, f"undefined field '{field}'")
                kind = found or t.ERROR
            case "param":
                self._bindings.fits(t.DYN, target)
                kind = t.DYN
            case _:
                if target.kind not in {"dyn", "error"}:
                    self.report(node, f"type '{target}' does not support field selection")
                kind = t.DYN
        return t.optional_of(kind) if wrapped or optional else kind

    def _call(self, node: Call) -> None:
        if node.function == "_?._":
            operand, field = node.args
            self.check(field)
            name: Any = field.value if isinstance(field, Literal) else ""
            node.type = self._bindings.resolved(self._field(node, operand, name, optional=True))
            node.overloads = ("select_optional_field",)
            return
        for arg in node.args:
            self.check(arg)
        if node.target is not None:
            prefix = qualified_name(node.target)
            full = functions().get(f"{prefix}.{node.function}") if prefix is not None else None
            if full is not None and (prefix != _PATCHES or self._structs.literal_fields("JSONPatch") is not None):
                node.function, node.target = f"{prefix}.{node.function}", None
                self._resolve(node, full)
                return
            self.check(node.target)
        overloads = functions().get(node.function.removeprefix("."))
        if overloads is None:
            self._undeclared(node, node.function)
            return
        self._resolve(node, overloads)

    def _resolve(self, node: Call, overloads: Sequence[Overload]) -> None:
        if node.function in {"_&&_", "_||_"}:
            self._logical(node, overloads[0])
            return
        member = node.target is not None
        args = [arg.type for arg in node.args]
        if node.target is not None:
            args.insert(0, node.target.type)
        meant: list[str] = []
        result: Type | None = None
        for overload in overloads:
            if overload.member != member:
                continue
            fresh = {name: self._bindings.fresh() for name in sorted(overload.params)}
            wanted = [t.substituted(kind, fresh) for kind in overload.args] if fresh else overload.args
            if not self._bindings.assignable(args, wanted):
                continue
            meant.append(overload.id)
            kind = self._bindings.resolved(t.substituted(overload.result, fresh))
            if result is None:
                result = kind
            elif result.kind != "dyn" and kind != result:
                result = t.DYN
        if result is None:
            self._mismatched(node, args)
            return
        node.type = result
        node.overloads = tuple(meant)

    def _mismatched(self, node: Call, args: list[Type]) -> None:
        shown = [str(self._bindings.resolved(kind, to_dyn=True)) for kind in args]
        target = f"{shown.pop(0)}." if node.target is not None else ""
        node.type = t.ERROR
        self.report(node, f"found no matching overload for '{node.function}' applied to '{target}({', '.join(shown)})'")

    def _logical(self, node: Call, overload: Overload) -> None:
        node.type = t.BOOL
        node.overloads = (overload.id,)
        for arg in node.args:
            if not self._bindings.fits(arg.type, t.BOOL):
                self.report(arg, f"expected type 'bool' but found '{arg.type}'")
                node.type = t.ERROR

    def _joined(self, before: Type | None, kind: Type) -> Type:
        if before is None:
            return kind
        return t.most_general(before, kind) if self._bindings.fits(before, kind) else t.DYN

    def _held(self, node: Node, kind: Type) -> Type:
        """The content type of an optional element."""
        inner, optional = t.unwrapped(kind)
        if not optional and inner.kind != "dyn":
            self.report(node, f"expected type '{t.optional_of(inner)}' but found '{inner}'")
        return inner

    def _list(self, node: ListOf) -> None:
        kind: Type | None = None
        for at, element in enumerate(node.elements):
            self.check(element)
            found = self._held(element, element.type) if at in node.optional else element.type
            kind = self._joined(kind, found)
        node.type = t.list_of(kind or self._bindings.fresh())

    def _map(self, node: MapOf) -> None:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            self.check(key)
            keys = self._joined(keys, key.type)
            self.check(value)
            values = self._joined(values, self._held(value, value.type) if optional else value.type)
        node.type = t.map_of(keys or self._bindings.fresh(), values or self._bindings.fresh())

    def _struct(self, node: Struct) -> None:
        fields = self._structs.literal_fields(node.name)
        if fields is not None:
            self._literal(node, fields)
            return
        named = TYPE_NAMES.get(node.name)
        if named is None:
            self._undeclared(node, node.name)
            return
        self.report(node, f"'{named.name}' is not a message type")
        node.type = t.ERROR

    def _literal(self, node: Struct, fields: Mapping[str, Type]) -> None:
        for at, name, value, optional in node.fields:
            self.check(value)
            kind = self._held(value, value.type) if optional else value.type
            wanted = fields.get(name) if fields else t.DYN
            # As in kube-apiserver, an unknown field has a type without a name.
            if wanted is None or not self._bindings.fits(wanted, kind):
                self.issues.append(
                    Issue(at, f"expected type of field '{name}' is '{wanted or ''}' but provided type is '{kind}'")
                )
        node.type = Type("struct", node.name)

    def _fold(self, node: Fold) -> None:
        self.check(node.range)
        self.check(node.init)
        over = self._bindings.resolved(node.range.type)
        gathered = node.init.type
        first, second = self._elements(node, over)
        self._scopes.append({node.accumulator: gathered})
        self._scopes.append({node.first: first} | ({node.second: second} if node.second else {}))
        self.check(node.condition)
        self._assert(node.condition, t.BOOL)
        self.check(node.step)
        self._assert(node.step, gathered)
        self._scopes.pop()
        self.check(node.result)
        self._scopes.pop()
        node.type = self._bindings.resolved(node.result.type)

    def _elements(self, node: Fold, over: Type) -> tuple[Type, Type]:
        """The types of a fold's variables."""
        match over.kind:
            case "list":
                return (t.INT, over.of[0]) if node.second else (over.of[0], t.DYN)
            case "map":
                return over.of[0], over.of[1]
            case "dyn" | "error" | "param":
                self._bindings.fits(t.DYN, over)
                return t.DYN, t.DYN
            case _:
                self.report(
                    node.range,
                    f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)",
                )
                return t.ERROR, t.ERROR

    def _assert(self, node: Node, kind: Type) -> None:
        if not self._bindings.fits(kind, node.type):
            self.report(node, f"expected type '{kind}' but found '{node.type}'")
