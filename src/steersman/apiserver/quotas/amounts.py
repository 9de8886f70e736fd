"""Amounts by resource name, such as ``pods`` or ``requests.cpu``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from steersman.objects import Quantity

Amounts: TypeAlias = dict[str, Quantity]


def read_amounts(tree: Mapping[str, str]) -> Amounts:
    """The amounts of a resource list."""
    return {name: Quantity(amount) for name, amount in tree.items()}


def added(left: Amounts, right: Amounts) -> Amounts:
    """The sums, by name."""
    return left | {name: left[name] + amount if name in left else amount for name, amount in right.items()}


def increase(before: Amounts, after: Amounts) -> Amounts:
    """The amounts by which ``after`` exceeds ``before``, without names that did not grow."""
    grown = {name: amount - before[name] if name in before else amount for name, amount in after.items()}
    return {name: amount for name, amount in grown.items() if amount > 0}


def highest(several: Iterable[Amounts]) -> Amounts:
    """The highest amount of each name."""
    found: Amounts = {}
    for amounts in several:
        for name, amount in amounts.items():
            if name not in found or amount > found[name]:
                found[name] = amount
    return found


def chosen(amounts: Amounts, names: Iterable[str]) -> Amounts:
    """The amounts with the given names, sorted by name."""
    return {name: amounts[name] for name in sorted(names) if name in amounts}


def printed(amounts: Amounts) -> str:
    """Amounts as text for messages: ``cpu=1,pods=2``."""
    return ",".join(f"{name}={amounts[name].printed()}" for name in sorted(amounts))
