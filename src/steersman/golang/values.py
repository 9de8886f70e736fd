"""JSON values as Go distinguishes and prints them, for kube-apiserver's messages."""

from typing import Any, Final, cast

from steersman.golang.numbers import printed_number

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


def deeply_equal(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal by Go's ``reflect.DeepEqual``: an integer and a float differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        ours, theirs = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return ours.keys() == theirs.keys() and all(deeply_equal(ours[name], theirs[name]) for name in ours)
    if isinstance(one, list):
        items, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(items) == len(others) and all(map(deeply_equal, items, others))
    return one == other


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
