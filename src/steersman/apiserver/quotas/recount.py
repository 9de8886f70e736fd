"""Counts the usage of a quota from the existing objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from steersman.apiserver.quotas.amounts import Amounts
from steersman.apiserver.quotas.rules import usage_rules
from steersman.apiserver.quotas.scopes import quota_scopes
from steersman.apiserver.registry.builtin.types.trees import Tree, inner
from steersman.objects import Quantity


def recounted(
    spec: Tree, objects: Mapping[tuple[str, str], Iterable[Tree]], classes: Sequence[Tree] = ()
) -> dict[str, str]:
    """The usage of objects, for the limits in a quota's spec.

    ``objects`` are those of the quota's namespace, by the group and name of their resource. The result omits limits
    on other resources. ``classes`` are the stored DeviceClasses.
    """
    hard, scopes = inner(spec, "hard"), quota_scopes(spec)
    used: Amounts = {}
    for name, trees in objects.items():
        rules = usage_rules(name, classes)
        used = {limit: Quantity(0) for limit in rules.tracked(hard)} | used
        for tree in trees:
            if all(rules.is_in_scope(scope, tree) for scope in scopes):
                for limit, amount in rules.usage(tree).items():
                    if limit in used:
                        used[limit] += amount
    return {limit: used[limit].printed() for limit in sorted(used)}
