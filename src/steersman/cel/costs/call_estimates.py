"""Estimates of the maximum cost and result size of calls to the extensions and Kubernetes' libraries.

Guarantees
- `estimate_call` returns what the server's estimators return, quirks included; None leaves the estimate to CEL itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from steersman.cel.costs.sizes import MOST, UNKNOWN, Size, fixed, plus, scaled, times
from steersman.cel.syntax.nodes import Literal, Node
from steersman.cel.types import Type

_TEXT: Final = 0.1
_PATTERN: Final = 0.25
_UINT: Final = MOST


class Estimate(NamedTuple):
    """The maximum cost of a call, and the size of its result if known."""

    cost: int
    result: Size | None = None


class Part(NamedTuple):
    """A target or an argument of a call, as far as known before it runs."""

    node: Node
    path: tuple[str, ...]
    known: Size | None
    size_at: Callable[[tuple[str, ...]], Size | None]

    @property
    def known_or_unknown(self) -> Size:
        """Its size as far as the expression shows it."""
        return self.known if self.known is not None else UNKNOWN

    @property
    def size(self) -> Size:
        """Its size from the expression or the schema."""
        if self.known is not None:
            return self.known
        return self.size_at(self.path) or UNKNOWN

    @property
    def type(self) -> Type:
        """Its type."""
        return self.node.type

    def elements(self) -> Size | None:
        """The size of its elements; None if it has none."""
        if not self.type.of:
            return None
        return (self.size_at((*self.path, "@items")) if self.path else None) or UNKNOWN

    def number(self, otherwise: int) -> int:
        """Its value, if it is a number literal."""
        if isinstance(self.node, Literal) and type(self.node.value) is int:
            return max(self.node.value, 0)
        return otherwise


_ONE: Final = Estimate(1)
_CHEAP: Final = frozenset(
    (  # noqa: SIM905 - a list of names
        "masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast "
        "format.named sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor "
        "patch getScheme getHostname getHost getPort getEscapedPath getQuery "
        # Names from other libraries, charged wherever they are used.
        "serviceAccount path group resource subresource namespace name allowed reason error errored"
    ).split()
)
_READ: Final = frozenset({"cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"})
_THROUGH: Final = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})
_SAME_SIZE: Final = frozenset({"lowerAscii", "upperAscii", "substring", "trim"})


def estimate_call(function: str, overload: str, target: Part | None, args: list[Part]) -> Estimate | None:  # noqa: PLR0911 - one answer for each kind
    """The estimate of a call; None if only CEL itself has one."""
    listed = _of_lists(overload, target, args)
    if listed is not None:
        return listed
    if function in _CHEAP:
        return _ONE
    if function in _THROUGH and target is not None:
        return _through(target)
    if function in {"url", "jsonpatch.escapeKey"} and len(args) == 1:
        return Estimate(scaled(args[0].size.most, _TEXT), args[0].size)
    if function in _SAME_SIZE and target is not None:
        return Estimate(scaled(target.size.most, _TEXT), target.size)
    if function in _READ and args:
        return Estimate(scaled(args[0].size.most, _TEXT))
    if function == "_==_":
        return _equality(args)
    special = _SPECIAL.get(function)
    return None if special is None else special(overload, target, args)


def _through(target: Part) -> Estimate:
    elements = target.elements()
    if elements is None:
        return Estimate(scaled(target.size.most, _TEXT))
    each = 1
    if target.type.of[0].kind in {"string", "bytes"}:
        each = plus(1, scaled(elements.most, _TEXT))
    return Estimate(times(target.size.most, each))


def _replace(overload: str, target: Part | None, args: list[Part]) -> Estimate | None:  # noqa: ARG001 - one signature
    if target is None or len(args) < 2:
        return None
    size, old, new = target.size, args[0].size, args[1].size
    most, least, kept_most, kept_least = 0, 0, 0, 0
    if old.least == 0:
        most, kept_most = min(size.most + 1, MOST), size.most
    elif new.most <= old.least:
        kept_most = size.most
    else:
        most = math.ceil(float(size.most) / float(old.least))
    if old.most == 0:
        least, kept_least = min(size.least + 1, MOST), size.least
    elif old.most <= new.least:
        kept_least = size.least
    else:
        least = math.ceil(float(size.least) / float(old.most))
    result = Size(least, min(most, MOST)).times(new).plus(Size(kept_least, kept_most))
    return Estimate(scaled(size.most, 2 * _TEXT), result)


def _split(overload: str, target: Part | None, args: list[Part]) -> Estimate | None:  # noqa: ARG001
    if target is None:
        return None
    most = target.size.most
    if len(args) > 1 and isinstance(args[1].node, Literal) and type(args[1].node.value) is int:
        most = args[1].node.value & MOST
    return Estimate(scaled(target.size.most, 2 * _TEXT), Size(0, most))


def _join(overload: str, target: Part | None, args: list[Part]) -> Estimate | None:  # noqa: ARG001
    if target is None:
        return None
    count = target.size
    elements = target.elements()
    size = count.times(elements) if elements is not None else Size(0, 0)
    if args:
        size = size.plus(args[0].size.times(Size(max(count.least - 1, 0), max(count.most - 1, 0))))
    return Estimate(scaled(size.most, _TEXT), size)


def _find(overload: str, target: Part | None, args: list[Part]) -> Estimate | None:  # noqa: ARG001
    if target is None or not args:
        return None
    size = target.size
    cost = times(scaled(plus(size.most, 1), _TEXT), scaled(args[0].size.most, _PATTERN))
    return Estimate(cost, Size(0, size.most))


def _ip(overload: str, target: Part | None, args: list[Part]) -> Estimate | None:  # noqa: ARG001
    if overload == "cidr_ip":
        return _ONE
    return Estimate(scaled(args[0].size.most, _TEXT)) if args else None


def _canonical(overload: str, target: Part | None, args: list[Part]) -> Estimate | None:  # noqa: ARG001
    return Estimate(scaled(args[0].size.most, 2 * _TEXT)) if args else None


def _contains(overload: str, target: Part | None, args: list[Part]) -> Estimate | None:  # noqa: ARG001
    if not args:
        return None
    cost = scaled(32, _TEXT)
    if overload.startswith("cidr_contains_cidr"):
        cost += scaled(16, _TEXT) + 1
    if overload.endswith("_string"):
        cost = plus(cost, scaled(args[0].size.most, _TEXT))
    return Estimate(cost)


def _validate(overload: str, target: Part | None, args: list[Part]) -> Estimate | None:  # noqa: ARG001
    return Estimate(scaled(scaled(args[0].size.most, _TEXT), 128 * _PATTERN)) if args else None


_SPECIAL: Final[dict[str, Callable[[str, Part | None, list[Part]], Estimate | None]]] = {
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    "ip": _ip,
    "ip.isCanonical": _canonical,
    "containsIP": _contains,
    "containsCIDR": _contains,
    "validate": _validate,
}


def _equality(args: list[Part]) -> Estimate | None:
    one, two = args[0].type, args[1].type
    if one != two:
        return None
    match one.name:
        case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
            return _ONE
        case "kubernetes.NamedFormat":
            return Estimate(scaled(64, _TEXT))
        case "kubernetes.URL":
            return Estimate(scaled(args[1].known.most if args[1].known is not None else 1, _TEXT))
        case _:
            return None


def _made(factor: float, size: Size) -> Estimate:
    return Estimate(plus(scaled(size.most, factor), 11), size)


def _of_lists(overload: str, target: Part | None, args: list[Part]) -> Estimate | None:  # noqa: PLR0911 - one answer for each kind
    """Estimates of the extensions for lists and sets."""
    if overload.startswith("list_sets_") and len(args) == 2:
        size = args[0].size.times(args[1].size)
        return Estimate(plus(scaled(size.most, 2 if "equivalent" in overload else 1), 1))
    if overload == "lists_range":
        return _made(1, fixed(args[0].number(_UINT)))
    if target is None:
        return None
    size = target.size
    if overload == "list_slice":
        return _made(1, fixed((args[1].number(size.most) - args[0].number(0)) & MOST))
    if overload == "list_reverse":
        return _made(1, size)
    if overload in {"list_flatten", "list_flatten_int"}:
        return _made(float(args[0].number(_UINT)) if args else 1.0, size)
    if overload == "list_distinct":
        return _made(2.0, size.times(size))
    if overload.endswith(("_sort", "_sortByAssociatedKeys")):
        size = args[0].size if args else size
        texts = overload.startswith(("list_string_", "list_bytes_"))
        return _made(2.1 if texts else 2.0, size.times(size))
    return None
