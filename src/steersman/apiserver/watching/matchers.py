"""Selectors prepared for matching many objects.

Guarantee: matching one object costs at most its number of labels, however many requirements or ranges a selector has.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from steersman.objects import FieldSelector, LabelRequirement, Selector
from steersman.wire import ShardSelector


class LabelMatcher:
    """All requirements of a label selector, by key."""

    __slots__ = ("_by_key", "_needed")

    def __init__(self, selector: Selector) -> None:
        by_key: dict[str, list[LabelRequirement]] = {}
        for each in dict.fromkeys(selector.requirements):
            by_key.setdefault(each.key, []).append(each)
        self._by_key = {key: _Key(requirements) for key, requirements in by_key.items()}
        #: Labels that an object must have.
        self._needed = [key for key, each in self._by_key.items() if each.is_needed]

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether the selector matches an object with these labels."""
        if len(self._needed) > len(labels) or not all(key in labels for key in self._needed):
            return False
        if len(self._by_key) < len(labels):
            return all(each.takes(labels[key]) for key, each in self._by_key.items() if key in labels)
        by_key = self._by_key
        return all(by_key[key].takes(value) for key, value in labels.items() if key in by_key)


class _Key:
    """All requirements on one label."""

    __slots__ = ("_allowed", "_compared", "_denied", "_is_forbidden", "is_needed")

    def __init__(self, requirements: list[LabelRequirement]) -> None:
        self.is_needed = False
        self._is_forbidden = False
        self._allowed: set[str] | None = None
        self._denied: set[str] = set()
        compared: dict[str, LabelRequirement] = {}
        for each in requirements:
            match each.operator:
                case "NotEquals" | "NotIn":
                    self._denied.update(each.values)
                    continue
                case "DoesNotExist":
                    self._is_forbidden = True
                    continue
                case "Equals" | "DoubleEquals" | "In":
                    self._allowed = set(each.values) if self._allowed is None else self._allowed & set(each.values)
                case "Gt" | "Lt":
                    strictest = compared.get(each.operator)
                    if strictest is None or _is_stricter(each, strictest):
                        compared[each.operator] = each
                case "Exists":
                    pass
            self.is_needed = True
        self._compared = list(compared.items())

    def takes(self, value: str) -> bool:
        """Whether an existing label may have this value."""
        if self._is_forbidden or value in self._denied or (self._allowed is not None and value not in self._allowed):
            return False
        return all(each.matches({each.key: value}) for _, each in self._compared)


def _is_stricter(one: LabelRequirement, other: LabelRequirement) -> bool:
    ours, theirs = int(one.values[0]), int(other.values[0])
    return ours > theirs if one.operator == "Gt" else ours < theirs


class FieldMatcher:
    """All requirements of a field selector, by field."""

    __slots__ = ("_denied", "_required")

    def __init__(self, selector: FieldSelector) -> None:
        self._required: dict[str, set[str]] = {}
        self._denied: dict[str, set[str]] = {}
        for each in selector.requirements:
            kept = self._required if each.operator == "=" else self._denied
            kept.setdefault(each.field, set()).add(each.value)

    def matches(self, read: Callable[[str], str]) -> bool:
        """Whether the selector matches an object whose fields a function reads, each once."""
        for field in dict.fromkeys((*self._required, *self._denied)):
            value = read(field)
            if value in self._denied.get(field, ()) or not self._required.get(field, {value}) <= {value}:
                return False
        return True


class ShardMatcher:
    """All ranges of a shard selector, joined and sorted."""

    __slots__ = ("_ends", "_starts", "by_namespace")

    def __init__(self, selector: ShardSelector) -> None:
        #: Whether the hashes are those of namespaces, and not of uids.
        self.by_namespace = selector.field == "namespace"
        self._starts: list[int] = []
        self._ends: list[int] = []
        for each in sorted(selector.ranges):
            if self._ends and each.start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], each.end)
            else:
                self._starts.append(each.start)
                self._ends.append(each.end)

    def takes(self, hash_: int) -> bool:
        """Whether a range contains a hash."""
        at = bisect_right(self._starts, hash_)
        return at > 0 and hash_ < self._ends[at - 1]
