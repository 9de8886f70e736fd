"""Check a JSON tree against a structural schema, as kube-apiserver checks a custom resource, without CEL rules.

Guarantees
- `validate_tree` finds what the server would find, with the server's messages: types, required fields, enums, bounds,
  lengths in Unicode characters, patterns, formats, unique items of sets and keys of maps, embedded objects.
- It checks the tree as given: pruning and defaulting come before it, see `schemas.admission`.
- It is pure, and bounded: a schema nested too deep raises `SchemaTooDeep`, at most `PROBLEMS_MAX` problems are kept,
  and all patterns share one budget.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from steersman.cel import UNCORRELATED, ItemsBefore, before_of, enforced_format, is_same, matches_format
from steersman.golang import cut, quoted
from steersman.golang.regexp import BudgetSpent, expression, one_budget
from steersman.objects.field_problems import PROBLEMS_MAX, FieldProblem, Printed, Reason, problem, shown, unsupported
from steersman.schemas.embedded_objects import embedded_problems
from steersman.schemas.list_types import list_type_problems
from steersman.schemas.numbers import as_read, is_whole, number_problems

Schema = Mapping[str, Any]
DEPTH_MAX = 128
#: The maximum total length of messages: each may name all choices of a long enum.
_LENGTH_MAX = 4 * 1024 * 1024

#: Excluded from comparison: both trees have the requested version, whatever they had before.
_TYPE = frozenset({"apiVersion", "kind"})
_JSON_KINDS: dict[type, str] = {str: "string", list: "array", dict: "object", int: "integer", float: "number"}


class SchemaTooDeep(ValueError):
    """A schema nests deeper than any real one."""

    def __init__(self, path: str) -> None:
        at = f" at {path if len(path) <= 80 else f'{path[:80]}...'}" if path else ""
        super().__init__(
            f"the schema{at} nests more than {DEPTH_MAX} levels deep; end it with x-kubernetes-preserve-unknown-fields"
        )


def validate_tree(schema: Schema, tree: Any, *, path: str = "") -> list[FieldProblem]:
    """All problems of a tree; empty if it is valid."""
    found = _Check()
    with one_budget():
        found.value(schema, tree, path, 0)
    found.add(*embedded_problems(schema, tree, path))
    found.add(*list_type_problems(schema, tree, path))
    return _bounded(found, path)


def schema_problems(
    schema: Schema, tree: Any, *, old: Any = UNCORRELATED, path: str = "", every_format: bool = False
) -> list[FieldProblem]:
    """The problems that the schema alone finds in a tree, without embedded objects and duplicates in lists.

    With ``old``, the object being replaced, unchanged parts are tolerated. ``every_format`` also enforces formats that
    the server does not know, as it does for defaults.
    """
    found = _Check(every_format=every_format)
    with one_budget():
        found.value(schema, tree, path, 0, old)
    return _bounded(found, path)


def _bounded(found: _Check, path: str) -> list[FieldProblem]:
    if found.is_full:
        del found.problems[PROBLEMS_MAX:]
        found.problems.append(
            FieldProblem(path, f"there are more than {len(found.problems)} problems; the first of them are listed")
        )
    return found.problems


def json_kind(value: Any) -> str:
    """The JSON type of a value, with integers distinct from other numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    kind = _JSON_KINDS.get(value.__class__)
    if kind is None:
        raise TypeError(f"{type(value).__name__} is not JSON; validate the result of to_json()")
    return kind


def _pattern_problem(pattern: str, value: str) -> str:
    """Why a text does not match a pattern; empty if it does, or if the pattern is invalid (rejected earlier)."""
    try:
        return "" if expression(pattern).matches(value) else f"should match '{pattern}'"
    except BudgetSpent:
        return f"is too long to be matched with '{pattern}': shorten it, or simplify the patterns of the schema"
    except ValueError:
        return ""


def _types_of(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    kind = schema.get("type")
    return (kind,) if kind else ()


class _Check:
    """Collects the problems of one tree."""

    def __init__(self, *, every_format: bool = False) -> None:
        self._every_format = every_format
        self.problems: list[FieldProblem] = []
        self._seen: set[FieldProblem] = set()
        self._length = 0
        #: The strings of enums, by their place in the schema: a long enum may be checked for every item of a list.
        self._texts: dict[int, frozenset[str]] = {}

    @property
    def is_full(self) -> bool:
        """Whether the limit of problems is reached."""
        return len(self.problems) > PROBLEMS_MAX or self._length > _LENGTH_MAX

    def add(self, *problems: FieldProblem) -> None:
        """Add problems, each once."""
        for found in problems:
            if found not in self._seen and not self.is_full:
                self._seen.add(found)
                self.problems.append(found)
                self._length += len(found.message)

    def report(self, path: str, reason: Reason, value: Any, detail: str) -> None:
        """Add a problem about ``path``."""
        self.add(problem(path, reason, value, f"{path} in body {detail}"))

    def value(self, schema: Schema, value: Any, path: str, depth: int, old: Any = UNCORRELATED) -> None:
        """Check one value and everything inside it. Unchanged problems are tolerated."""
        before = len(self.problems)
        self._value(schema, value, path, depth, old)
        if old is not UNCORRELATED and len(self.problems) > before and is_same(schema, value, old):
            self._seen.difference_update(self.problems[before:])
            del self.problems[before:]

    def _value(self, schema: Schema, value: Any, path: str, depth: int, old: Any) -> None:
        if depth > DEPTH_MAX:
            raise SchemaTooDeep(path)
        if self.is_full:
            return
        value = as_read(value)
        kind = json_kind(value)
        types = _types_of(schema)
        format_: str = schema.get("format", "")
        format_ = format_ if self._every_format else enforced_format(types, format_)
        self._type(schema, types, format_, kind, value, path)
        if kind != "null":
            self._junctors(schema, value, path, depth)
            if kind == "string":
                self._string(schema, format_, value, path)
            elif kind in {"integer", "number"}:
                self.add(*number_problems(schema, types, format_, value, path))
            elif kind == "array":
                self._array(schema, value, path, depth, old)
        if schema.get("enum"):
            self._enum(schema["enum"], value, path)
        if kind == "object":
            self._object(schema, value, path, depth, old)

    def _type(self, schema: Schema, types: tuple[str, ...], format_: str, kind: str, value: Any, path: str) -> None:
        if not types and not format_:
            return
        if kind == "null":
            if types and not schema.get("nullable"):
                self._wrong_type(path, ",".join(types), "null")
            return
        fits = (
            kind in types
            or (kind == "integer" and "number" in types)
            or (kind == "number" and "integer" in types and is_whole(value))
        )
        textual = kind in {"string", "array"}
        if format_ and not textual and not fits:
            self._wrong_type(path, format_, {"integer": "int64", "number": "float64"}.get(kind, ""))
        elif format_ and textual and "integer" not in types and "number" not in types:
            return  # the format decides; where it says nothing (about a list), the server takes the value
        elif not fits:
            self._wrong_type(path, ",".join(types), kind)

    def _wrong_type(self, path: str, expected: str, actual: str) -> None:
        self.report(path, "FieldValueTypeInvalid", actual, f"must be of type {expected}: {quoted(actual)}")

    def _string(self, schema: Schema, format_: str, value: str, path: str) -> None:
        longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
        if longest is not None and len(value) > longest:
            unit = "byte" if longest == 1 else "bytes"  # the server counts characters and says bytes
            self.add(problem(path, "FieldValueTooLong", value, f"may not be more than {longest} {unit}"))
        elif shortest is not None and len(value) < shortest:
            self.report(path, "FieldValueInvalid", value, f"should be at least {shortest} chars long")
        elif pattern and (said := _pattern_problem(pattern, value)):
            self.report(path, "FieldValueInvalid", value, said)
        if format_ and not matches_format(format_, value):
            self.report(path, "FieldValueTypeInvalid", value, f"must be of type {format_}: {quoted(value)}")

    def _array(self, schema: Schema, value: list[Any], path: str, depth: int, old: Any) -> None:
        items = schema.get("items")
        if items is not None:
            before = ItemsBefore(schema, old)
            for index, item in enumerate(value):
                self.value(items, item, f"{path}[{index}]", depth + 1, before.of(item))
        fewest, most = schema.get("minItems"), schema.get("maxItems")
        if fewest is not None and len(value) < fewest:
            self.report(path, "FieldValueInvalid", len(value), f"should have at least {fewest} items")
        if most is not None and len(value) > most:
            self._too_many(path, len(value), most)

    def _too_many(self, path: str, count: int, most: int) -> None:
        unit = "item" if most == 1 else "items"
        self.add(problem(path, "FieldValueTooMany", count, f"must have at most {most} {unit}"))

    def _object(self, schema: Schema, value: dict[str, Any], path: str, depth: int, old: Any) -> None:
        fewest, most = schema.get("minProperties"), schema.get("maxProperties")
        if fewest is not None and len(value) < fewest:
            self.report(path, "FieldValueInvalid", len(value), f"should have at least {fewest} properties")
        if most is not None and len(value) > most:
            self._too_many(path, len(value), most)
        self._additional(schema, value, path, depth, old)
        properties: Schema = schema.get("properties") or {}
        for name, inner in properties.items():
            if name in value:
                before = UNCORRELATED if not path and name in _TYPE else before_of(schema, value, old, name)
                self.value(inner, value[name], f"{path}.{name}" if path else name, depth + 1, before)
        for name in schema.get("required") or ():
            if name not in value:
                self.add(problem(f"{path}.{name}" if path else name, "FieldValueRequired"))

    def _additional(self, schema: Schema, value: dict[str, Any], path: str, depth: int, old: Any) -> None:
        """Check the entries of a map."""
        additional = schema.get("additionalProperties")
        if additional is None or additional is True:
            return
        for name in [name for name in value if name not in (schema.get("properties") or {})]:
            if additional is False:
                self.add(problem(path, "FieldValueInvalid", name, f"{path}.{name} in body is a forbidden property"))
            else:
                self.value(additional, value[name], f"{path}.{name}", depth + 1, before_of(schema, value, old, name))

    def _enum(self, allowed: Collection[Any], value: Any, path: str) -> None:
        texts = self._texts.get(id(allowed))
        if texts is None:
            texts = self._texts[id(allowed)] = frozenset(choice for choice in allowed if isinstance(choice, str))
        if value in texts if isinstance(value, str) else any(_same(choice, value) for choice in allowed):
            return
        if not self.is_full:
            choices = (cut(choice if isinstance(choice, str) else shown(choice)) for choice in allowed)
            self.add(unsupported(path, Printed(shown(value)), choices))

    def _junctors(self, schema: Schema, value: Any, path: str, depth: int) -> None:
        any_of, one_of = schema.get("anyOf"), schema.get("oneOf")
        if any_of:
            failures = [self._alone(choice, value, path, depth) for choice in any_of]
            if all(failures):
                self._mismatch(path, "must validate at least one schema (anyOf)", failures)
        if one_of:
            failures = [self._alone(choice, value, path, depth) for choice in one_of]
            valid = failures.count([])
            if valid != 1:
                said = "Found none valid" if valid == 0 else f"Found {valid} valid alternatives"
                self._mismatch(
                    path, f"must validate one and only one schema (oneOf). {said}", [] if valid else failures
                )
        if schema.get("allOf"):
            failures = [self._alone(choice, value, path, depth) for choice in schema["allOf"]]
            for failure in failures:
                self.add(*failure)
            if any(failures):
                none = ". None validated" if all(failures) else ""
                self._mismatch(path, f"must validate all the schemas (allOf){none}", [])
        negated = schema.get("not")
        if negated is not None and not self._alone(negated, value, path, depth):
            self._mismatch(path, "must not validate the schema (not)", [])

    def _alone(self, schema: Schema, value: Any, path: str, depth: int) -> list[FieldProblem]:
        """The problems that a value has with one alternative."""
        alternative = _Check(every_format=self._every_format)
        alternative.value(schema, value, path, depth + 1)
        return alternative.problems

    def _mismatch(self, path: str, said: str, failures: list[list[FieldProblem]]) -> None:
        """Report that no alternative matches, and the problems of the first."""
        self.add(problem(path, "FieldValueInvalid", "", f"{quoted(path)} {said}"))
        if failures:
            self.add(*failures[0])


def _same(choice: Any, value: Any) -> bool:
    """Whether a value equals a choice of an enum; null never does."""
    if choice is None or value is None or isinstance(choice, bool) or isinstance(value, bool):
        return choice is value and value is not None
    if isinstance(choice, int) and isinstance(value, float):
        return is_whole(value) and int(value) == choice
    return type(choice) is type(value) and choice == value
