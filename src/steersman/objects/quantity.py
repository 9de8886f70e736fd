"""Quantities: Kubernetes' fixed-point numbers ("500m", "1Gi", "2e3").

Guarantees:

- A quantity keeps the text it was made from: it is written as it was read.
- Text is parsed on first use of the number. Garbage does no harm until then, and then raises ``ValueError`` naming it.
- Arithmetic is exact, in whole nano-units, without floats. Parsing rounds as Kubernetes does: away from zero to a
  nano-unit.
- `Quantity.canonical` is Kubernetes' canonical form, with one exception: Kubernetes drops the suffix of numbers too
  large for its suffixes (it prints ``1000E`` as ``1``). Here such a number keeps the largest suffix, so that printing
  never changes a value.
- A quantity is immutable, hashable by value, and compares with quantities and integers.
"""

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, Self, TypeAlias, overload

QuantityFormat: TypeAlias = Literal["BinarySI", "DecimalSI", "DecimalExponent"]
"""How a quantity prints: 1Gi, 1G or 1e9."""

_NANO: Final = 10**9
_MAX_BINARY: Final = (2**63 - 1) * _NANO

# Bounds on the number of digits: far beyond real values, small enough to keep hostile text cheap.
_MAX_DIGITS: Final = 1000
_MAX_EXPONENT: Final = 1000

_DECIMAL_EXPONENTS: Final[dict[str, int]] = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_EXPONENTS: Final[dict[str, int]] = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES: Final = ("", *_BINARY_EXPONENTS)

# No two adjacent parts match the same character, so a failed match takes linear time.
_SHAPE: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?P<suffix>(?:[a-zA-Z]+[+-]?[0-9]*|[+-][0-9]*)?)"
)
_EXPONENT: Final = re.compile(r"[eE](?P<exponent>[+-]?[0-9]+)")

# Kubernetes prints a text unchanged if a quick check finds it canonical enough; these are the limits of that check.
_QUICK_DIGITS: Final = 18
_QUICK_BINARY_DIGITS: Final = 15


class _Number:
    """A parsed quantity: whole nano-units, the format, and whether Kubernetes reuses the text when printing."""

    __slots__ = ("format", "nanos", "reuses_text")

    def __init__(self, nanos: int, format_: QuantityFormat, *, reuses_text: bool = False) -> None:
        self.nanos = nanos
        self.format: QuantityFormat = format_
        self.reuses_text = reuses_text


class Quantity:
    """A Kubernetes quantity: ``Quantity("500m") * 3 == Quantity("1.5")``, ``Quantity("1Gi") > Quantity("1G")``.

    ``str(q)`` is the text as given (results of arithmetic print canonically), `canonical` the canonical form, and
    `printed` the form in which an API server returns the text. ``q + r``, ``q - r``, ``q * 3`` are exact. ``q / 3`` is
    rounded away from zero to a nano-unit; ``q // 3`` and ``q % 3`` count whole units, as for any Python number.
    ``q / r`` is the exact ratio.

    As in Kubernetes, a result has the format of the left operand, unless that is zero.
    """

    __slots__ = ("_number", "_text")

    _text: str | None
    _number: _Number | None

    def __init__(self, value: "str | int | Decimal | Quantity" = 0) -> None:
        if isinstance(value, str):
            self._text = value
            self._number = None
        elif isinstance(value, Quantity):
            self._text, self._number = value._text, value._number  # noqa: SLF001 - the class's own
        elif isinstance(value, Decimal):
            self._text = _decimal_text(value)
            self._number = None
        elif isinstance(value, int) and not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            self._text = None
            self._number = _Number(value * _NANO, "DecimalSI")
        else:
            raise TypeError(f"a quantity needs a str, int or Decimal (got {type(value).__name__} {value!r})")

    @classmethod
    def exact(cls, value: "int | Decimal | Fraction", *, format: QuantityFormat = "DecimalSI") -> Self:  # noqa: A002 - Kubernetes' noun
        """Make a quantity from a number, to print in the given format; rounded away from zero to a nano-unit."""
        if isinstance(value, float):
            raise TypeError(f"a quantity needs an exact number; write Decimal({str(value)!r}) instead of a float")
        ratio = Fraction(_decimal_text(value)) if isinstance(value, Decimal) else Fraction(value)
        return cls._made(_divide_away(ratio.numerator * _NANO, ratio.denominator), format)

    @classmethod
    def _made(cls, nanos: int, format_: QuantityFormat) -> Self:
        made = cls.__new__(cls)
        made._text, made._number = None, _Number(nanos, format_)  # noqa: SLF001 - the class's own
        return made

    @property
    def _parsed(self) -> _Number:
        number = self._number
        if number is None:
            # A quantity always has a text or a number.
            number = self._number = _parse(self._text or "")
        return number

    @property
    def format(self) -> QuantityFormat:
        """The suffix family that results are printed in."""
        return self._parsed.format

    @property
    def text(self) -> str:
        """The text as given; the canonical form for a number or a result of arithmetic."""
        return self.canonical() if self._text is None else self._text

    def is_valid(self) -> bool:
        """Whether the text is a quantity."""
        try:
            _ = self._parsed
        except ValueError:
            return False
        return True

    def canonical(self) -> str:
        """Return Kubernetes' canonical form: no fraction, the largest suffix that keeps the number whole."""
        return _canonical(self._parsed.nanos, self._parsed.format)

    def printed(self) -> str:
        """Return the text that Kubernetes prints for this quantity.

        That is the canonical form, except for some almost canonical texts that Kubernetes keeps ("1.234", "+5",
        "01Mi").
        """
        if self._text is not None and self._parsed.reuses_text:
            return self._text.strip()
        return self.canonical()

    def value(self) -> int:
        """Return the number, rounded away from zero to a whole unit (Go's ``Value``)."""
        return _divide_away(self._parsed.nanos, _NANO)

    def milli_value(self) -> int:
        """Return the number in thousandths, rounded away from zero (Go's ``MilliValue``)."""
        return _divide_away(self._parsed.nanos, 10**6)

    def as_fraction(self) -> Fraction:
        """Return the exact number."""
        return Fraction(self._parsed.nanos, _NANO)

    def as_decimal(self) -> Decimal:
        """Return the exact number."""
        sign, digits, _ = Decimal(self._parsed.nanos).as_tuple()
        return Decimal((sign, digits, -9))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        if self._text is not None:
            return (type(self), (self._text,))
        return (_remake, (type(self), self._parsed.nanos, self._parsed.format))

    def __hash__(self) -> int:
        return hash(self.as_fraction())

    def __bool__(self) -> bool:
        return self._parsed.nanos != 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity) and self._text is not None and self._text == other._text:
            # Equal texts are equal quantities, garbage included: an object that contains it equals its copy.
            return True
        nanos = _nanos(other)
        return NotImplemented if nanos is None else self._parsed.nanos == nanos

    def __lt__(self, other: "Quantity | int") -> bool:
        nanos = _nanos(other)
        return NotImplemented if nanos is None else self._parsed.nanos < nanos

    def __le__(self, other: "Quantity | int") -> bool:
        nanos = _nanos(other)
        return NotImplemented if nanos is None else self._parsed.nanos <= nanos

    def __gt__(self, other: "Quantity | int") -> bool:
        nanos = _nanos(other)
        return NotImplemented if nanos is None else self._parsed.nanos > nanos

    def __ge__(self, other: "Quantity | int") -> bool:
        nanos = _nanos(other)
        return NotImplemented if nanos is None else self._parsed.nanos >= nanos

    def __add__(self, other: "Quantity | int") -> "Quantity":
        right = _operand(other)
        return NotImplemented if right is None else self._joined(right, self._parsed.nanos + right.nanos)

    def __radd__(self, other: int) -> "Quantity":
        left = _operand(other)
        return NotImplemented if left is None else Quantity._made(left.nanos, left.format) + self

    def __sub__(self, other: "Quantity | int") -> "Quantity":
        right = _operand(other)
        return NotImplemented if right is None else self._joined(right, self._parsed.nanos - right.nanos)

    def __rsub__(self, other: int) -> "Quantity":
        left = _operand(other)
        return NotImplemented if left is None else Quantity._made(left.nanos, left.format) - self

    def __mul__(self, other: int) -> "Quantity":
        if not _is_int(other):
            return NotImplemented
        return self._scaled(self._parsed.nanos * other)

    __rmul__ = __mul__

    @overload
    def __truediv__(self, other: int) -> "Quantity": ...
    @overload
    def __truediv__(self, other: "Quantity") -> Fraction: ...
    def __truediv__(self, other: "int | Quantity") -> "Quantity | Fraction":
        if isinstance(other, Quantity):
            return Fraction(self._parsed.nanos, other._parsed.nanos)
        if not _is_int(other):
            return NotImplemented
        return self._scaled(_divide_away(self._parsed.nanos, other))

    @overload
    def __floordiv__(self, other: int) -> "Quantity": ...
    @overload
    def __floordiv__(self, other: "Quantity") -> int: ...
    def __floordiv__(self, other: "int | Quantity") -> "Quantity | int":
        if isinstance(other, Quantity):
            return self._parsed.nanos // other._parsed.nanos
        if not _is_int(other):
            return NotImplemented
        return self._scaled(self._parsed.nanos // (other * _NANO) * _NANO)

    def __mod__(self, other: "int | Quantity") -> "Quantity":
        nanos = _nanos(other)
        return NotImplemented if nanos is None else self._scaled(self._parsed.nanos % nanos)

    def __neg__(self) -> "Quantity":
        return self._scaled(-self._parsed.nanos)

    def __pos__(self) -> "Quantity":
        return self

    def __abs__(self) -> "Quantity":
        return self if self._parsed.nanos >= 0 else -self

    def _joined(self, right: _Number, nanos: int) -> "Quantity":
        return Quantity._made(nanos, self._parsed.format if self._parsed.nanos else right.format)

    def _scaled(self, nanos: int) -> "Quantity":
        return Quantity._made(nanos, self._parsed.format)


def _remake(cls: type[Quantity], nanos: int, format_: QuantityFormat) -> Quantity:
    return cls._made(nanos, format_)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _operand(value: object) -> _Number | None:
    if isinstance(value, Quantity):
        return value._parsed  # noqa: SLF001 - the module's own
    if isinstance(value, int) and not isinstance(value, bool):
        return _Number(value * _NANO, "DecimalSI")
    return None


def _nanos(value: object) -> int | None:
    operand = _operand(value)
    return None if operand is None else operand.nanos


def _divide_away(dividend: int, divisor: int) -> int:
    """Divide, rounding away from zero: a small amount never becomes zero."""
    if divisor < 0:
        dividend, divisor = -dividend, -divisor
    return -(-dividend // divisor) if dividend > 0 else dividend // divisor


def _decimal_text(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueError(f"a quantity must be a finite number (got {value})")
    _, digits, exponent = value.as_tuple()
    if len(digits) > _MAX_DIGITS or abs(int(exponent)) > _MAX_EXPONENT:
        raise ValueError(
            f"a quantity has at most {_MAX_DIGITS} digits and an exponent of at most {_MAX_EXPONENT} (got {value:.20E})"
        )
    return f"{value:f}"


def _invalid(text: str, why: str) -> ValueError:
    shown = text if len(text) <= 80 else f"{text[:80]}..."
    return ValueError(f"not a quantity: {shown!r}: {why}")


# Programs parse the same few quantities again and again.
@lru_cache(maxsize=1024)
def _parse(text: str) -> _Number:
    stripped = text.strip(" \t\n\v\f\r")
    if len(stripped) > _MAX_DIGITS:
        raise _invalid(text, f"longer than {_MAX_DIGITS} characters")
    match = _SHAPE.fullmatch(stripped)
    if match is None or not stripped:
        raise _invalid(text, "write a number and an optional suffix, such as 500m, 1.5, 2Gi or 1e3")
    sign, whole, part, suffix = match["sign"], match["whole"].lstrip("0") or "0", match["part"] or "", match["suffix"]
    format_, exponent = _suffix(text, suffix)
    digits = int(whole + part)
    if format_ == "BinarySI":
        quick = not part and _QUICK_BINARY_DIGITS - len(whole) - exponent * 3 // 10 - 1 >= 0
        reuses = quick and digits & 7 != 0
        # Python's shift keeps the fraction exact until rounding.
        nanos = _divide_away((digits << exponent) * _NANO, 10 ** len(part))
        nanos = min(nanos, _MAX_BINARY)
        if not quick and 0 < nanos < _NANO:
            format_ = "DecimalSI"
    else:
        scale = exponent - len(part)
        quick = len(whole) + len(part) <= _QUICK_DIGITS and scale >= -9
        reuses = quick and scale % 3 == 0 and not (whole + part).endswith("000") and (whole + part)[0] != "0"
        nanos = digits * 10 ** (scale + 9) if scale >= -9 else _divide_away(digits, 10 ** -(scale + 9))
    if not quick and not (match["whole"] or part):
        # Kubernetes accepts "" and "." as zero, but only for numbers that fit its quick path.
        raise _invalid(text, "it has no digits")
    return _Number(-nanos if sign == "-" else nanos, format_, reuses_text=reuses)


def _suffix(text: str, suffix: str) -> tuple[QuantityFormat, int]:
    exponent = _DECIMAL_EXPONENTS.get(suffix)
    if exponent is not None:
        return "DecimalSI", exponent
    exponent = _BINARY_EXPONENTS.get(suffix)
    if exponent is not None:
        return "BinarySI", exponent
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        known = ", ".join([*filter(None, _DECIMAL_EXPONENTS), *_BINARY_EXPONENTS])
        raise _invalid(text, f"unknown suffix {suffix!r}; the suffixes are {known} and exponents such as e3")
    exponent = int(match["exponent"])
    if abs(exponent) > _MAX_EXPONENT:
        raise _invalid(text, f"the exponent must be between -{_MAX_EXPONENT} and {_MAX_EXPONENT}")
    return "DecimalExponent", exponent


def _canonical(nanos: int, format_: QuantityFormat) -> str:
    if nanos == 0:
        return "0"
    if format_ == "BinarySI" and abs(nanos) >= 1024 * _NANO and nanos % _NANO == 0:
        amount, times = nanos // _NANO, 0
        while amount % 1024 == 0 and times < len(_BINARY_SUFFIXES) - 1:
            amount //= 1024
            times += 1
        return f"{amount}{_BINARY_SUFFIXES[times]}"
    amount, exponent = nanos, -9
    while amount % 10 == 0:
        amount //= 10
        exponent += 1
    # Suffixes step by thousands, and the largest decimal suffix is E.
    target = exponent - exponent % 3
    if format_ != "DecimalExponent":
        target = min(target, 18)
    amount *= 10 ** (exponent - target)
    if format_ != "DecimalExponent":
        return f"{amount}{_DECIMAL_SUFFIXES[target]}"
    return f"{amount}e{target}" if target else f"{amount}"
