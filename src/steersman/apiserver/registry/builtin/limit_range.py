"""LimitRanges: defaults derived from their limits, and checks that the limits are consistent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from steersman.aio import new_uid
from steersman.apiserver.registry.builtin.pods.resources import container_name, resource_name
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.resource_names import may_be_overcommitted
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree
from steersman.apiserver.registry.strategy import WHOLE
from steersman.objects import Quantity
from steersman.objects.field_problems import FieldProblem, duplicate, each, forbidden, invalid, required, until_enough
from steersman.schemas.names import qualified_name

_TYPES: Final = frozenset({"Container", "PersistentVolumeClaim", "Pod"})
_FIELDS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_DEFAULTS: Final = ("default", "defaultRequest")
#: Larger amounts are compared in whole units, others in thousandths.
_MILLI_MAX: Final = (2**63 - 1) // 1000


class LimitRangeStrategy(BuiltinStrategy):
    """How LimitRanges behave."""

    judges_metadata = False

    def fill(self, obj: Tree) -> None:
        """Default the limit of a container to its maximum, and its request to the default limit or the minimum."""
        for item in items(obj["spec"], "limits"):
            if item.get("type") == "Container":
                limits = inner(item, "max") | inner(item, "default")
                requests = inner(item, "min") | limits | inner(item, "defaultRequest")
                for field, filled in zip(_DEFAULTS, (limits, requests), strict=True):
                    if filled:
                        item[field] = filled

    def default(self, obj: Tree) -> None:
        """Keep an empty list of limits until the object is stored, because its field manager owns the list."""
        is_empty = subtree(obj, "spec").get("limits") == []
        super().default(obj)
        if is_empty:
            obj["spec"]["limits"] = []

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        super().prepare_update(obj, old)
        obj["spec"]["limits"] = obj["spec"].get("limits") or None

    def prepare_create(self, obj: Tree) -> None:
        """Generate a name if there is none."""
        obj["spec"]["limits"] = obj["spec"].get("limits") or None
        if not metadata(obj).get("name"):
            metadata(obj)["name"] = new_uid()

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        problems: list[FieldProblem] = []
        types: set[str] = set()
        for index, item in until_enough(items(subtree(obj, "spec"), "limits"), problems):
            path, type_ = f"spec.limits[{index}]", item.get("type", "")
            problems += _type(f"{path}.type", type_)
            if type_ in types:
                problems.append(duplicate(f"{path}.type", type_))
            types.add(type_)
            problems += _item(path, type_, item)
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        del old
        return [WHOLE, *self.validate_create(obj)]


def _type(path: str, type_: str) -> list[FieldProblem]:
    problems = each(path, type_, qualified_name(type_))
    if not problems and "/" not in type_ and type_ not in _TYPES:
        problems.append(invalid(path, type_, "must be a standard limit type or fully qualified"))
    return problems


def _item(path: str, type_: str, item: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    name_problems: Callable[[str, str], list[FieldProblem]] = (
        container_name if type_ in {"Pod", "Container"} else resource_name
    )
    amounts: dict[str, dict[str, Quantity]] = {field: {} for field in _FIELDS}
    for field in _FIELDS:
        given = inner(item, field)
        if field == "maxLimitRequestRatio" and type_ == "PersistentVolumeClaim" and not _has_storage(item):
            why = "either minimum or maximum storage value is required, but neither was provided"
            problems.append(required(f"{path}.limits", why))
        if type_ == "Pod" and field in _DEFAULTS:
            if given:
                problems.append(forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
            continue
        for name in sorted(given):
            problems += name_problems(f"{path}.{field}[{name}]", name)
            amounts[field][name] = Quantity(given[name])
    for name in sorted({name for given in amounts.values() for name in given}):
        problems += _inconsistent(path, name, {field: given.get(name) for field, given in amounts.items()})
    return problems


def _has_storage(item: Tree) -> bool:
    return any("storage" in inner(item, bound) for bound in ("min", "max"))


def _inconsistent(path: str, name: str, amounts: dict[str, Quantity | None]) -> Iterator[FieldProblem]:
    """Check that all limits on one resource are consistent."""
    least, most, ratio = amounts["min"], amounts["max"], amounts["maxLimitRequestRatio"]
    default, request = amounts["default"], amounts["defaultRequest"]

    def greater(
        left: Quantity | None,
        left_words: str,
        right: Quantity | None,
        right_words: str,
        field: str,
        *,
        shows_right: bool,
    ) -> Iterator[FieldProblem]:
        if left is not None and right is not None and left > right:
            why = f"{left_words} {left.printed()} is greater than {right_words} {right.printed()}"
            yield invalid(f"{path}.{field}[{name}]", (right if shows_right else left).printed(), why)

    yield from greater(least, "min value", most, "max value", "min", shows_right=False)
    yield from greater(least, "min value", request, "default request value", "defaultRequest", shows_right=True)
    yield from greater(request, "default request value", most, "max value", "defaultRequest", shows_right=False)
    yield from greater(
        request, "default request value", default, "default limit value", "defaultRequest", shows_right=False
    )
    yield from greater(least, "min value", default, "default value", "default", shows_right=False)
    yield from greater(default, "default value", most, "max value", "default", shows_right=True)
    if ratio is not None:
        yield from _ratio(f"{path}.maxLimitRequestRatio[{name}]", ratio, least, most)
    if default is not None and request is not None and default != request and not may_be_overcommitted(name):
        why = f"default value {default.printed()} must equal to defaultRequest value {request.printed()} in {name}"
        yield invalid(f"{path}.defaultRequest[{name}]", request.printed(), why)


def _ratio(path: str, ratio: Quantity, least: Quantity | None, most: Quantity | None) -> Iterator[FieldProblem]:
    if ratio < 1:
        yield invalid(path, ratio.printed(), f"ratio {ratio.printed()} is less than 1")
    if least is None or most is None:
        return
    known = (ratio, least, most)
    exact = all(amount.value() < _MILLI_MAX for amount in known)
    low, high = ((one.milli_value() if exact else one.value()) for one in (least, most))
    highest = ratio.milli_value() / 1000 if exact else float(ratio.value())
    # Nothing is greater than a multiple of zero.
    if low and highest > high / low:
        why = f"ratio {ratio.printed()} is greater than max/min = {high / low:f}"
        yield invalid(path, ratio.printed(), why)
