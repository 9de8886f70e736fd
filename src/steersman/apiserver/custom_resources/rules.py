"""Validation of custom resources: by their schema, and of their number of replicas.

Guarantee: messages and order are kube-apiserver's; unchanged problems of an update are tolerated where kube-apiserver
does so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from steersman.apiserver.registry.definition import ScalePaths, Tree
from steersman.apiserver.registry.nested_values import nested_value
from steersman.cel import UNCORRELATED
from steersman.objects.field_problems import FieldProblem, problem
from steersman.schemas import (
    constraint_check,
    embedded_problems,
    form_of,
    list_type_problems,
    quick_check,
    schema_problems,
)

if TYPE_CHECKING:
    from steersman.cel import Rules

#: Problems that prevent the evaluation of rules.
_BLOCKING: Final = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_INT32_MAX: Final = 2**31 - 1
#: Prefixes of problems without a path in kube-apiserver: those of several schemas at once, and of number formats.
_PLACELESS: Final = ('Invalid value: "": "', 'Invalid value: "": Checked value')


class Judge:
    """The validation rules of one version of a kind."""

    def __init__(self, schema: Tree, scale: ScalePaths | None) -> None:
        self._schema = schema
        self._scale = scale
        properties: Mapping[str, Tree] = schema.get("properties") or {}
        self._status = properties.get("status")
        #: Warnings of validated updates that were not retrieved yet, by the identity of the new object: threads
        #: validate concurrently.
        self._judged: dict[int, tuple[Tree, Tree, list[str]]] = {}

    def object(self, obj: Tree, old: Tree | None) -> list[FieldProblem]:
        """The problems of an object; with ``old``, the object it replaces, only new ones."""
        if self._is_valid(obj):
            problems: list[FieldProblem] = []
            if self._scale is not None:
                problems += _replicas(obj, self._scale.spec_replicas) + self._scaled_status(obj)
            return problems + self._cel_problems(obj, old, problems)
        schema = self._schema
        problems = [
            _placed(violation) for violation in schema_problems(schema, obj, old=UNCORRELATED if old is None else old)
        ]
        if self._scale is not None:
            problems += _replicas(obj, self._scale.spec_replicas) + self._scaled_status(obj)
        return self.beyond_schema(obj, old, problems)

    def beyond_schema(self, obj: Tree, old: Tree | None, problems: list[FieldProblem]) -> list[FieldProblem]:
        """The given problems, plus those of embedded objects, lists and CEL rules."""
        problems += embedded_problems(self._schema, obj, "")
        problems += self._duplicates(obj, old)
        return problems + self._cel_problems(obj, old, problems)

    def status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The problems of an object's status; paths are relative to it."""
        problems: list[FieldProblem] = []
        is_valid = self._is_valid(obj)
        if self._status is not None and "status" in obj and not is_valid:
            for violation in schema_problems(self._status, obj["status"], old=old.get("status")):
                joint = "" if not violation.path or violation.path.startswith("[") else "."
                problems.append(_placed(replace(violation, path=f"status{joint}{violation.path}"), "status"))
        if self._scale is not None:
            problems += self._scaled_status(obj)
        if not is_valid:
            problems += self._duplicates(obj, old)
        return problems + self._cel_problems(obj, old, problems)

    def _scaled_status(self, obj: Tree) -> list[FieldProblem]:
        assert self._scale is not None
        return _replicas(obj, self._scale.status_replicas) + _selector(obj, self._scale.selector)

    def _duplicates(self, obj: Tree, old: Tree | None) -> list[FieldProblem]:
        """Duplicates in lists; none if there were some before."""
        problems = list(list_type_problems(self._schema, obj, ""))
        if problems and old is not None and any(True for _ in list_type_problems(self._schema, old, "")):
            return []
        return problems

    def warnings(self, obj: Tree, old: Tree) -> list[str]:
        """The tolerated CEL problems of the last validated update."""
        judged = self._judged.pop(id(obj), None)
        return judged[2] if judged is not None and judged[0] is obj and judged[1] is old else []

    def _cel_problems(self, obj: Tree, old: Tree | None, problems: list[FieldProblem]) -> list[FieldProblem]:
        """The problems that CEL rules find, or the problems that prevent their evaluation."""
        rules = self._rules
        self._judged.pop(id(obj), None)
        if not rules:
            return []
        if any(earlier.reason in _BLOCKING for earlier in problems):
            return [problem("<nil>", "FieldValueInvalid", None, _NOT_CHECKED)]
        if old is None:
            return rules.problems(obj)
        verdict = rules.verdict(obj, old)
        # The caller asks for them next, for the same objects.
        if verdict.warnings:
            self._judged[id(obj)] = (obj, old, verdict.warnings)
        return verdict.problems

    @cached_property
    def _is_valid(self) -> Callable[[Any], bool]:
        """Accepts most objects that the schema finds no problem in, their lists and embedded objects included."""
        form, constraints, whole = form_of(self._schema), constraint_check(self._schema), quick_check(self._schema)
        if constraints is None:
            return lambda obj: form.has_form(obj) or whole(obj)
        return lambda obj: (form.has_form(obj) and constraints(obj)) or whole(obj)

    @cached_property
    def _rules(self) -> Rules | None:
        """The rules, compiled on first use; None if there are none."""
        if b'"x-kubernetes-validations"' not in msgspec.json.encode(self._schema):
            return None
        from steersman.cel import rules_of  # noqa: PLC0415 - only needed for schemas with rules

        return rules_of(self._schema)


def _placed(violation: FieldProblem, where: str = "<nil>") -> FieldProblem:
    return replace(violation, path=where) if violation.message.startswith(_PLACELESS) else violation


def _replicas(obj: Tree, path: tuple[str, ...]) -> list[FieldProblem]:
    where = f".{'.'.join(path)}"
    value, wrong = nested_value(obj, path, int, "int64")
    if wrong:
        return [problem(where, "FieldValueInvalid", 0, wrong)]
    if value is not None and value < 0:
        return [problem(where, "FieldValueInvalid", value, "should be a non-negative integer")]
    if value is not None and value > _INT32_MAX:
        return [problem(where, "FieldValueInvalid", value, f"should be less than or equal to {_INT32_MAX}")]
    return []


def _selector(obj: Tree, path: tuple[str, ...] | None) -> list[FieldProblem]:
    if path is None:
        return []
    _, wrong = nested_value(obj, path, str, "string")
    return [problem(f".{'.'.join(path)}", "FieldValueInvalid", "", wrong)] if wrong else []
