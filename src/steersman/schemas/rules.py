"""CEL rules (``x-kubernetes-validations``) from markers: written by hand, for immutable fields, for groups of fields."""

from __future__ import annotations

import re
from typing import Any, Final

from steersman.cel import escape
from steersman.markers import AtLeastOneOf, AtMostOneOf, ExactlyOneOf, Immutable, Rule

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def cel_name(wire: str) -> str:
    """A field name in CEL's spelling. Raises ValueError if it has none."""
    spelled = escape(wire)
    if spelled is None:
        raise ValueError(f"a CEL rule cannot name the field {wire!r}")
    return spelled


def field_path(wire: str) -> str:
    """The path of a field, in a rule of the object that holds it."""
    return f".{wire}" if _IDENTIFIER.fullmatch(wire) else f"['{wire}']"


def written_rule(rule: Rule) -> dict[str, Any]:
    """A rule as in a schema. Raises ValueError if the server would reject its form."""
    if not rule.rule.strip():
        raise ValueError("a Rule needs a CEL expression")
    if "\n" in rule.message or "\r" in rule.message:
        raise ValueError(f"the message of a Rule must be one line: {rule.message!r}")
    if "\n" in rule.rule.strip() and not rule.message:
        raise ValueError("a Rule of several lines needs message=, because the server would show the rule itself")
    if rule.optional_old_self is not None and not uses_old_self(rule):
        raise ValueError("optional_old_self=True needs a Rule that uses oldSelf")
    entries = {
        "rule": rule.rule,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason,
        "fieldPath": rule.field_path,
        "optionalOldSelf": rule.optional_old_self,
    }
    return {name: value for name, value in entries.items() if value is not None and value != ""}


def uses_old_self(rule: Rule) -> bool:
    """Whether a rule compares with the old object, so that it applies to updates."""
    return re.search(r"\boldSelf\b", rule.rule) is not None


def immutable_value(marker: Immutable, wire: str) -> dict[str, Any]:
    """The rule on a field that may not change."""
    return {"rule": "self == oldSelf", "message": marker.message or f"{wire} is immutable"}


def immutable_presence(marker: Immutable, wire: str) -> dict[str, Any]:
    """The rule on the object that holds an optional immutable field: a rule on an absent field does not run."""
    before, after = f"has(oldSelf.{cel_name(wire)})", f"has(self.{cel_name(wire)})"
    if marker.from_creation:
        rule, said = f"{before} == {after}", f"{wire} is immutable: it can be neither set nor removed after creation"
    else:
        rule, said = f"!{before} || {after}", f"{wire} is immutable: once set it cannot be removed"
    return {"rule": rule, "message": marker.message or said, "fieldPath": field_path(wire)}


def group_rule(marker: ExactlyOneOf) -> dict[str, Any]:
    """The rule for a group of fields of which a number must, or may, be set."""
    present = [f"has(self.{cel_name(wire)})" for wire in marker.fields]
    names = ", ".join(marker.fields)
    if isinstance(marker, AtLeastOneOf):
        return {"rule": " || ".join(present), "message": f"at least one of {names} must be set"}
    count = " + ".join(f"({has} ? 1 : 0)" for has in present)
    if isinstance(marker, AtMostOneOf):
        return {"rule": f"{count} <= 1", "message": f"at most one of {names} may be set"}
    return {"rule": f"{count} == 1", "message": f"exactly one of {names} must be set"}
