"""Numbers as Go prints them."""

import math
from decimal import Decimal

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def printed_number(value: float) -> str:
    """A number as ``%v`` prints it: an int64 in full, any other as a float64 in the fewest digits that keep it."""
    if isinstance(value, int) and _INT64_MIN <= value <= _INT64_MAX:
        return str(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return _printed(float(value), exponent_below=-4, exponent_from=6, exponent_digits=2)


def json_float(value: float) -> str:
    """A finite float as ``json.Marshal`` prints it."""
    return _printed(value, exponent_below=-6, exponent_from=21, exponent_digits=1)


def _printed(value: float, *, exponent_below: int, exponent_from: int, exponent_digits: int) -> str:
    exact = Decimal(repr(value)).normalize()
    power = exact.adjusted() if exact else 0
    if exponent_below <= power < exponent_from:
        return f"{exact:f}"
    sign, digits, _ = exact.as_tuple()
    mantissa = "".join(map(str, digits))
    point = "." if len(mantissa) > 1 else ""
    exponent = f"{'-' if power < 0 else '+'}{abs(power):0{exponent_digits}d}"
    return f"{'-' * sign}{mantissa[0]}{point}{mantissa[1:]}e{exponent}"
