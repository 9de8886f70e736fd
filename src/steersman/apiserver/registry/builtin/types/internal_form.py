"""Values in kube-apiserver's messages, which use the field names of its internal types.

Guarantee: `printed` returns the JSON of a value in the server's message, and `difference` the lines for two values.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec

from steersman.apiserver.registry.builtin.types.canonical_form import META, canonical
from steersman.apiserver.registry.builtin.types.trees import Tree, count_values, inner
from steersman.golang import escape_html
from steersman.objects.field_problems import Printed

_ZEROS: dict[str, Any] = {"string": "", "int": 0, "bool": False, "quantity": "0", "intstr": 0}
#: The maximum total number of lines of two compared values.
_COMPARED_MAX = 4_000
_TOO_LONG = "the difference is too long to be shown"


@cache
def _document() -> dict[str, list[tuple[str, str, str]]]:
    raw = (Path(__file__).parents[1] / "data" / "internal.json").read_bytes()
    rows = msgspec.json.decode(raw, type=dict[str, list[str]])
    return {name: [cast("tuple[str, str, str]", tuple(row.split(" ")[:3])) for row in of] for name, of in rows.items()}


def internal(tree: Tree, definition: str) -> Tree:
    """A tree with the field names and all the zero values of the server's internal type (``core.PodSpec``)."""
    made: Tree = {}
    for name, type_, field in _document()[definition]:
        if name == "-":
            shared = canonical(inner(tree, field), META)
            for key in ("labels", "annotations"):
                if key in shared:
                    shared[key] = dict(sorted(shared[key].items()))
            made |= shared
        else:
            key = field if field != "-" else f"-{name[0].lower()}{name[1:]}"
            made[name] = _value(tree.get(key), type_)
    return made


def _value(value: Any, type_: str) -> Any:
    if type_.startswith("*"):
        return None if value is None else _value(value, type_[1:])
    if type_.startswith("[]"):
        return None if value is None else [_value(item, type_[2:]) for item in value]
    if type_.startswith("{}"):
        return None if value is None else {key: _value(value[key], type_[2:]) for key in sorted(value)}
    if value is None:
        return internal({}, type_) if "." in type_ else _ZEROS.get(type_)
    if "." in type_:
        return internal(value, type_)
    return canonical(value, f"meta.v1.{type_}") if type_ in {"LabelSelector", "ObjectMeta"} else value


def printed(value: Any, definition: str) -> Printed:
    """A value as a message prints it; None and an empty list print as null."""
    shown = _value(
        None if value == [] else value, definition if definition.startswith(("*", "[]", "{}")) else f"*{definition}"
    )
    return Printed(escape_html(msgspec.json.encode(shown).decode()))


def difference(old: Tree, new: Tree, definition: str) -> str:
    """The difference of two values, as the server prints it."""
    if count_values(old) + count_values(new) > _COMPARED_MAX:
        # Each value is a line at least: the lines of a large object would take far more memory than the object.
        return _TOO_LONG
    before, after = (
        escape_html(json.dumps(internal(one, definition), indent=1, ensure_ascii=False)) for one in (old, new)
    )
    if before.count("\n") + after.count("\n") > _COMPARED_MAX:
        # The cost of a comparison grows with the square.
        return _TOO_LONG
    import difflib  # noqa: PLC0415 - for a message that few requests get

    lines = difflib.unified_diff(_lines(before), _lines(after), "", "", n=3)
    return "".join(list(lines)[2:])


def _lines(text: str) -> list[str]:
    # The server splits after each newline and appends one to the last line too.
    return [f"{line}\n" for line in text.split("\n")]
