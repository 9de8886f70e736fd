"""JSON values as Go distinguishes and prints them, for kube-apiserver's messages."""

import math
from typing import Any, Final, cast

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
_EXPONENT_FROM: Final = 21
_EXPONENT_BELOW: Final = -4


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
        return _float(value)
    return "<nil>" if value is None else str(value)


def _float(value: float) -> str:
    """The shortest form, with an exponent of at least two digits for large and small numbers."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    digits, _, power = f"{value!r}".partition("e")
    exponent = math.floor(math.log10(abs(value))) if value else 0
    if _EXPONENT_BELOW <= exponent < _EXPONENT_FROM:
        if power:
            return f"{value:.0f}" if exponent > 0 else f"{value:f}"
        return digits.removesuffix(".0")
    if not power:
        digits, _, power = f"{value:e}".partition("e")
        digits = digits.rstrip("0")
    return f"{digits.removesuffix('.0').removesuffix('.')}e{int(power):+03d}"
