"""Computes what a write adds to the usage of each quota that applies to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from steersman.apiserver.admission import Attributes
from steersman.apiserver.quotas.amounts import Amounts, added, chosen, increase, printed, read_amounts
from steersman.apiserver.quotas.scopes import quota_scopes
from steersman.apiserver.quotas.usage import UsageRules
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, subtree


class Quota:
    """A stored quota. Its status holds the enforced limits and the current usage."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.name: str = tree["metadata"]["name"]
        status = subtree(tree, "status")
        self.hard = read_amounts(inner(status, "hard"))
        self.used = read_amounts(inner(status, "used"))
        self._scopes = quota_scopes(subtree(tree, "spec"))

    def applies(self, rules: UsageRules, obj: Tree) -> bool:
        """Whether the quota counts an object."""
        return bool(rules.tracked(self.hard)) and all(rules.is_in_scope(scope, obj) for scope in self._scopes)


class Charge(NamedTuple):
    """The usage of a quota after a write."""

    quota: Quota
    used: Amounts


def charges(quotas: Iterable[Quota], rules: UsageRules, attributes: Attributes) -> list[Charge]:
    """The new usage of each quota that a write changes. Raises `RequestRejected` if the write exceeds a quota."""
    obj, old = attributes.obj, attributes.old
    if obj is None:
        return []
    applicable = [quota for quota in quotas if quota.applies(rules, obj)]
    for quota in applicable:
        _check_status(quota, rules, attributes, obj)
    if not applicable:
        return []
    usage, before = rules.usage(obj), {} if old is None else rules.usage(old)
    found: list[Charge] = []
    for quota in applicable:
        was_counted = old is not None and quota.applies(rules, old)
        requested = chosen(increase(before if was_counted else {}, usage), quota.hard)
        if not requested:
            continue
        used = added(quota.used, requested)
        # Only a request for more is checked: existing usage may already exceed a limit.
        exceeded = [name for name in requested if used[name] > quota.hard[name]]
        if exceeded and attributes.subresource != "status":
            asked, has, most = (printed(chosen(one, exceeded)) for one in (requested, quota.used, quota.hard))
            why = f"exceeded quota: {quota.name}, requested: {asked}, used: {has}, limited: {most}"
            raise attributes.refused(why)
        found.append(Charge(quota, used))
    return found


def _check_status(quota: Quota, rules: UsageRules, attributes: Attributes, obj: Tree) -> None:
    """Reject an object that does not specify a limited resource, or a quota that has no usage yet."""
    tracked = rules.tracked(quota.hard)
    if missing := rules.missing(tracked, obj):
        raise attributes.refused(f"failed quota: {quota.name}: {missing}")
    if tracked - quota.used.keys():
        names = ",".join(sorted(tracked))
        raise attributes.refused(f"status unknown for quota: {quota.name}, resources: {names}")
