"""Type problems of an applied object, with kube-apiserver's messages.

Guarantees
- An object without problems can be merged; one with problems cannot.
- If an object has several problems, all that kube-apiserver reports are reported, in the order of its fields: the first
  `PROBLEMS_MAX`, if there are more.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import msgspec

from steersman.golang import printed_value, quoted, type_name
from steersman.objects.field_problems import PROBLEMS_MAX
from steersman.patches import MAX_DEPTH, MergeSchema, PathElement, item_text

_TWICE = "duplicate entries for key "
#: The longest value that a message shows, in bytes of JSON; kube-apiserver shows all.
_SHOWN_MAX = 16 * 1024


def typed_problems(tree: dict[str, Any], schema: MergeSchema, *, duplicates: bool = False) -> str:
    """The problems as one text; empty if there are none. With ``duplicates``, list items may repeat."""
    counted = (problem for problem in _problems(tree, schema, 0) if not duplicates or not problem[1].startswith(_TWICE))
    found = list(islice(counted, PROBLEMS_MAX))
    if not found:
        return ""
    lines = [f"{path}: {words}" if path else words for path, words in found]
    return lines[0] if len(lines) == 1 else "\n  ".join(("errors:", *lines))


def _problems(value: Any, schema: MergeSchema, depth: int) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    if depth > MAX_DEPTH:
        yield "", f"the value nests more than {MAX_DEPTH} levels deep"
    elif isinstance(value, dict) and schema.allows_map:
        yield from _of_map(cast("dict[str, Any]", value), schema, depth)
    elif isinstance(value, list) and schema.allows_list:
        yield from _of_list(cast("list[Any]", value), schema, depth)
    elif isinstance(value, dict | list) or not schema.allows_scalar:
        yield "", _mismatch(value, schema)
    elif not _is_scalar(value, schema):
        yield "", _scalar_mismatch(value, schema)


def _of_map(members: dict[str, Any], schema: MergeSchema, depth: int) -> Iterator[tuple[str, str]]:
    for name, inner in members.items():
        place = schema.field(name)
        if place is None:
            yield f".{name}", "field not declared in schema"
            # Like kube-apiserver, which stops here.
            return
        for path, words in _problems(inner, place, depth + 1):
            yield f".{name}{path}", words


def _of_list(items: list[Any], schema: MergeSchema, depth: int) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if schema.list_type == "atomic":
            element = f"[{index}]"
        else:
            text = item_text(item, schema)
            if text is None:
                yield "", f"element {index}: {_no_element(item, schema)}"
                return
            element = str(PathElement(text))
            if text in seen:
                yield "", f"{_TWICE}{element}"
            seen.add(text)
        for path, words in _problems(item, schema.items, depth + 1):
            yield f"{element}{path}", words


def _no_element(item: Any, schema: MergeSchema) -> str:
    """Why an item has no identity in its list."""
    if schema.list_type == "set":
        if item is None:
            return "associative list without keys has an element that's an explicit null"
        if isinstance(item, dict):
            return "associative list without keys has an element that's a map type"
        return "not supported: associative list with lists as elements"
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    keys = " ".join(quoted(name) for name in schema.map_keys)
    return (
        f"associative list with keys has an element that omits all key fields [{keys}] (and doesn't have default values "
        "for any key fields)"
    )


def _is_scalar(value: Any, schema: MergeSchema) -> bool:
    match schema.scalar_type:
        case "string":
            return isinstance(value, str)
        case "numeric":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "untyped":
            return True


def _mismatch(value: Any, schema: MergeSchema) -> str:
    """The message about a value whose form its schema does not allow."""
    if schema.allows_map:
        return f"expected map, got &{{{_shown(value)}}}"
    return _scalar_mismatch(value, schema) if schema.allows_scalar else f"expected list, got &{{{_shown(value)}}}"


def _scalar_mismatch(value: Any, schema: MergeSchema) -> str:
    match schema.scalar_type:
        case "string":
            shown = "..." if _is_long(value) else _source(value)
            return f"expected string, got &value.valueUnstructured{{Value:{shown}}}"
        case "numeric":
            return f"expected numeric (int or float), got {type_name(value)}"
        case "boolean":
            return f"expected boolean, got &{{{_shown(value)}}}"
        case "untyped":
            return f"expected any scalar, got &{{{_shown(value)}}}"


def _shown(value: Any) -> str:
    """As ``%v`` prints it."""
    return "..." if _is_long(value) else printed_value(_as_decoded(value))


def _is_long(value: Any) -> bool:
    """Whether a value is too long for a message: printed, it takes far more memory than as JSON."""
    return isinstance(value, (dict, list)) and len(msgspec.json.encode(value)) > _SHOWN_MAX


def _as_decoded(value: Any) -> Any:
    """A value with its numbers as kube-apiserver decodes YAML: whole numbers are int64 if they fit, however written."""
    if isinstance(value, dict):
        return {name: _as_decoded(inner) for name, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_as_decoded(item) for item in cast("list[Any]", value)]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return int(value) if value == value // 1 and -(2**63) <= value < 2**63 else float(value)


def _source(value: Any) -> str:
    """As ``%#v`` prints it: in Go's source form."""
    if isinstance(value, dict):
        members = sorted(cast("dict[str, Any]", value).items())
        return (
            f"map[string]interface {{}}{{{', '.join(f'{quoted(name)}:{_source(inner)}' for name, inner in members)}}}"
        )
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(_source(item) for item in cast('list[Any]', value))}}}"
    if value is None:
        return "interface {}(nil)"
    return quoted(value) if isinstance(value, str) else _shown(value)
