"""Estimate the maximum cost of an expression, from the sizes that its schema allows.

Guarantees
- `estimated` returns the number that kube-apiserver 1.37 compares with its limits when a CRD is created.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from steersman.cel.costs.call_estimates import Estimate, Part, estimate_call
from steersman.cel.costs.sizes import MOST, UNKNOWN, Size, fixed, plus, scaled, times
from steersman.cel.model import Declared
from steersman.cel.syntax.nodes import RESULT, Call, Fold, Ident, ListOf, Literal, MapOf, Node, Select, Struct
from steersman.cel.types import is_scalar

_TEXT: Final = 0.1
_PATTERN: Final = 0.25
Path = tuple[str, ...]


class _Entries(NamedTuple):
    """The sizes of the elements of a list or map."""

    kind: str
    key: Size
    value: Size

    def union(self, other: _Entries | None) -> _Entries | None:
        if other is None:
            return None
        return _Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


class _Variable(NamedTuple):
    """What is known about a variable of a fold."""

    path: Path
    size: Size | None
    entries: _Entries | None


def estimated(root: Node, declared: Declared) -> int:
    """The maximum cost of a checked expression whose ``self`` has this type."""
    return _Coster(declared).cost(root)


class _Coster:
    def __init__(self, declared: Declared) -> None:
        self._root = declared
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, _Entries] = {}
        self._variables: dict[str, list[_Variable]] = {}

    def cost(self, node: Node) -> int:  # noqa: PLR0911 - one answer for each kind
        match node:
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Struct():
                return plus(40, sum(self.cost(value) for _, _, value, _ in node.fields))
            case Fold():
                return self._bind(node) if node.macro == "bind" else self._fold(node)
            case _:
                return 0

    # -- known sizes ---------------------------------------------------------------------------------------------------

    def _variable(self, name: str) -> _Variable | None:
        known = self._variables.get(name)
        return known[-1] if known else None

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            known = self._variable(node.name)
            if known is not None:
                return known.path
        return self._paths.get(id(node), ())

    def size_at(self, path: Path) -> Size | None:
        """The size that the schema declares for a path."""
        if not path:
            return None
        here: Declared | None = self._root
        for name in path[1:]:
            if here is None:
                return None
            if name in {"@items", "@values"}:
                here = here.element
            elif name == "@keys":
                here = here.key
            else:
                here = here.fields.get(name) if here.fields is not None else None
        return None if here is None else Size(0, here.largest)

    def _size(self, node: Node) -> Size | None:
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        literal = _literal_size(node)
        if literal is not None:
            return literal
        at = self.size_at(self._path(node))
        if at is not None:
            self._sizes[id(node)] = at
            return at
        if is_scalar(node.type):
            return fixed(1)
        if isinstance(node, Ident):
            variable = self._variable(node.name)
            if variable is not None:
                return variable.size
        return None

    def _size_or_unknown(self, node: Node) -> Size:
        return self._size(node) or UNKNOWN

    def _entries_of(self, node: Node) -> _Entries | None:
        known = self._entries.get(id(node))
        if known is not None:
            return known
        if isinstance(node, Ident):
            variable = self._variable(node.name)
            if variable is not None:
                return variable.entries
        return None

    def _set_size(self, node: Node, size: Size | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size

    def _set_entries(self, node: Node, entries: _Entries | None) -> None:
        if entries is not None:
            self._entries[id(node)] = entries

    def _part(self, node: Node) -> Part:
        path = self._path(node)
        if path and path[0] in {RESULT, "__result__"}:
            path = ()
        return Part(node, path, self._size(node), self.size_at)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _ident(self, node: Ident) -> int:
        known = self._variable(node.name)
        self._paths[id(node)] = known.path if known is not None else (node.name,)
        return 1

    def _select(self, node: Select) -> int:
        if node.names_type is not None:
            self._paths[id(node)] = (node.names_type.name,)
            return 1
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if node.operand.type.kind in {"map", "struct", "param"}:
            cost = plus(cost, 1)
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return cost

    def _list(self, node: ListOf) -> int:
        total, size = 0, Size(0 if not node.elements else MOST, 0)
        for element in node.elements:
            total = plus(total, self.cost(element))
            size = size.union(self._size_or_unknown(element))
        self._entries[id(node)] = _Entries("list", fixed(1), size)
        return plus(total, 10)

    def _map(self, node: MapOf) -> int:
        least = 0 if not node.entries else MOST
        total, keys, values = 0, Size(least, 0), Size(least, 0)
        for key, value, _ in node.entries:
            total = plus(total, plus(self.cost(key), self.cost(value)))
            keys = keys.union(self._size_or_unknown(key))
            values = values.union(self._size_or_unknown(value))
        self._entries[id(node)] = _Entries("map", keys, values)
        return plus(total, 30)

    def _push(self, name: str, path: Path, size: Size | None, entries: _Entries | None) -> None:
        self._variables.setdefault(name, []).append(_Variable(path, size, entries))

    def _push_value(self, name: str, node: Node) -> None:
        self._push(name, self._path(node), self._size(node), self._entries_of(node))

    def _push_elements(self, node: Fold) -> None:
        entries = self._entries_of(node.range)
        path = self._path(node.range)
        kind = entries.kind if entries is not None else node.range.type.kind
        value = entries.value if entries is not None else None
        key = entries.key if entries is not None else None
        if not node.second:
            of_list = kind == "list"
            self._push(node.first, (*path, "@items" if of_list else "@keys"), value if of_list else key, None)
            return
        if kind == "list":
            self._push(node.first, (*path, "@indices"), key, None)
            self._push(node.second, (*path, "@items"), value, None)
        else:
            self._push(node.first, (*path, "@keys"), key, None)
            self._push(node.second, (*path, "@values"), value, None)

    def _bind(self, node: Fold) -> int:
        total = plus(self.cost(node.range), self.cost(node.init))
        self._push_value(node.accumulator, node.init)
        total = plus(total, self.cost(node.result))
        self._variables[node.accumulator].pop()
        self._set_size(node, self._size(node.result))
        self._set_entries(node, self._entries_of(node.result))
        return total

    def _fold(self, node: Fold) -> int:
        total = plus(self.cost(node.range), self.cost(node.init))
        self._push_value(node.accumulator, node.init)
        self._push_elements(node)
        each = plus(self.cost(node.condition), self.cost(node.step))
        self._variables[node.first].pop()
        if node.second:
            self._variables[node.second].pop()
        total = plus(total, self.cost(node.result))
        self._variables[node.accumulator].pop()
        count = self._size_or_unknown(node.range)
        total = plus(total, times(count.most, each))
        if isinstance(node.init, Literal):
            self._set_size(node, self._size(node.init))
        elif isinstance(node.init, ListOf | MapOf):
            self._set_size(node, count)
            self._set_entries(node, self._entries_of(node.step))
        return total

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> int:
        if node.function == "dyn":
            cost = self.cost(node.args[0])
            self._set_size(node, self._size(node.args[0]))
            self._set_entries(node, self._entries_of(node.args[0]))
            return plus(cost, 1)
        costs = [self.cost(arg) for arg in node.args]
        parts = [self._part(arg) for arg in node.args]
        if not node.overloads:
            return 0
        total = 0
        target: Part | None = None
        if node.target is not None:
            total = self.cost(node.target)
            target = self._part(node.target)
        most, result = 0, None
        for overload in node.overloads:
            estimate = self._overload(node, overload, target, parts, costs)
            most = max(most, estimate.cost)
            if estimate.result is not None:
                result = estimate.result if result is None else result.union(estimate.result)
            if overload in {"index_list", "index_map"}:
                entries = self._entries_of(node.args[0])
                result = entries.value if entries is not None else None
                step = "@items" if overload == "index_list" else "@values"
                self._paths[id(node)] = (*self._path(node.args[0]), step)
            if result is None:
                result = self._size(node)
        self._set_size(node, result)
        return plus(total, most)

    def _overload(
        self, node: Call, overload: str, target: Part | None, parts: list[Part], costs: list[int]
    ) -> Estimate:
        argued = min(sum(costs), MOST)
        known = estimate_call(node.function, overload, target, parts)
        if known is not None:
            return Estimate(plus(known.cost, argued), known.result)
        match overload:
            case "logical_or" | "logical_and":
                return Estimate(argued)
            case "conditional":
                return self._conditional(node, parts, costs)
            case "add_string" | "add_bytes" | "add_list":
                return self._joined(node, overload, parts, argued)
            case _:
                return _own(overload, target, parts, argued)

    def _conditional(self, node: Call, parts: list[Part], costs: list[int]) -> Estimate:
        then, otherwise = (self._entries_of(arg) for arg in node.args[1:])
        self._set_entries(node, then.union(otherwise) if then is not None else None)
        size = parts[1].known_or_unknown.union(parts[2].known_or_unknown)
        return Estimate(plus(costs[0], max(costs[1], costs[2])), size)

    def _joined(self, node: Call, overload: str, parts: list[Part], argued: int) -> Estimate:
        size = parts[0].known_or_unknown.plus(parts[1].known_or_unknown)
        left, right = (self._entries_of(arg) for arg in node.args)
        self._set_entries(node, left.union(right) if left is not None else None)
        cost = 1 if overload == "add_list" else scaled(size.most, _TEXT)
        return Estimate(plus(cost, argued), size)


def _own(overload: str, target: Part | None, parts: list[Part], argued: int) -> Estimate:  # noqa: C901, PLR0911 - one answer for each kind
    """CEL's own estimates, without those of the extensions."""
    sizes = [part.known_or_unknown for part in parts]
    of_target = target.known_or_unknown if target is not None else UNKNOWN
    match overload:
        case "string_format":
            return Estimate(plus(scaled(of_target.most, _TEXT), argued))
        case "string_to_bytes":
            size = Size(sizes[0].least, sizes[0].most * 4 & MOST)
            return Estimate(plus(scaled(sizes[0].most, _TEXT), argued), size)
        case "bytes_to_string":
            size = Size(sizes[0].least // 4, sizes[0].most)
            return Estimate(plus(scaled(sizes[0].most, _TEXT), argued), size)
        case "strings_quote":
            size = Size(sizes[0].least + 2, sizes[0].most * 2 + 2 & MOST)
            return Estimate(plus(scaled(sizes[0].most, _TEXT), argued), size)
        case "starts_with_string" | "ends_with_string":
            return Estimate(plus(scaled(sizes[0].most, _TEXT), argued))
        case "in_list":
            return Estimate(plus(sizes[1].most, argued))
        case "matches" | "matches_string":
            text, pattern = (of_target, sizes[0]) if target is not None else sizes
            cost = times(scaled(plus(text.most, 1), _TEXT), scaled(pattern.most, _PATTERN))
            return Estimate(plus(cost, argued))
        case "contains_string":
            return Estimate(plus(times(scaled(of_target.most, _TEXT), scaled(sizes[0].most, _TEXT)), argued))
        case "equals" | "not_equals":
            return Estimate(plus(scaled(min(sizes[0].most, sizes[1].most), _TEXT), argued))
        case _ if overload.startswith(("less_", "greater_")) and overload.endswith(("_string", "_bytes")):
            return Estimate(plus(scaled(min(sizes[0].most, sizes[1].most), _TEXT), argued))
        case _:
            return Estimate(plus(1, argued))


def _literal_size(node: Node) -> Size | None:
    match node:
        case Literal():
            return fixed(len(node.value)) if isinstance(node.value, str | bytes) else fixed(1)
        case ListOf():
            return fixed(len(node.elements))
        case MapOf():
            return fixed(len(node.entries))
        case _:
            return None
