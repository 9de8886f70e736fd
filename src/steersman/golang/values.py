"""JSON values as Go distinguishes and prints them, for kube-apiserver's messages."""

from typing import Any, Final, cast

from steersman.golang.numbers import printed_number

__all__ = ["printed_value", "same_scalar", "type_name"]

_TYPES: Final[dict[Any, str]] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "<nil>",
}


def type_name(value: Any) -> str:
    """The Go type of a JSON value decoded into an interface."""
    return _TYPES[type(value)]


def same_scalar(left: Any, right: Any) -> bool:
    """Whether two scalars are equal in Go, where types count."""
    return type(left) is type(right) and left == right


def printed_value(value: Any) -> str:
    """A JSON value as ``%v`` prints it: ``map[a:1 b:[x y]]``, with sorted keys."""
    if isinstance(value, dict):
        members = sorted(cast("dict[str, Any]", value).items())
        return f"map[{' '.join(f'{name}:{printed_value(inner)}' for name, inner in members)}]"
    if isinstance(value, list):
        return f"[{' '.join(printed_value(item) for item in cast('list[Any]', value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return printed_number(value)
    return "<nil>" if value is None else str(value)
