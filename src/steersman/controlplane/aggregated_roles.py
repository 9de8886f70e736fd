"""clusterrole-aggregation-controller: a ClusterRole with an aggregation rule gets the rules of all roles it selects.

Guarantees
- The rules are those of the selected roles, in the order of their names, without duplicates; its own are replaced.
- A role that already has these rules is not written.
- A role that cannot be written does not keep the others from being written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from steersman.controller import Cause, Context, Done, Reconciler, Request
from steersman.controlplane.object_changes import ObjectChange, Watcher
from steersman.errors import ApiError
from steersman.objects import Key, Kind, Selector, Unstructured

NAME = "clusterrole-aggregation-controller"
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io/v1", "ClusterRole")
CLUSTER_ROLES = "rbac.authorization.k8s.io/clusterroles/"
#: Any role may select any other, so all are reconciled together.
_ALL = Request(Key("", "all"))

Tree = dict[str, Any]


class AggregatedRoles(Watcher, Reconciler[Unstructured]):
    """Aggregates roles."""

    def seen(self, change: ObjectChange) -> None:
        if change.definition.prefix == CLUSTER_ROLES:
            assert self._add is not None
            self._add(_ALL, Cause(what="external", note=f"ClusterRole {change.metadata.name} changed"))

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Update every aggregated role; a change to one triggers another reconcile."""
        del request
        roles = sorted((each.tree for each in await ctx.client.list(CLUSTER_ROLE)), key=_name)
        failures: list[ApiError] = []
        for role in roles:
            if not role.get("aggregationRule"):
                continue
            selectors = _selectors(role)
            rules = _joined(other for other in roles if other is not role and _is_selected(selectors, other))
            if rules != (role.get("rules") or []):
                tree = {name: role[name] for name in ("apiVersion", "kind")}
                tree |= {"metadata": {"name": _name(role)}, "rules": rules}
                try:
                    await ctx.client.apply(Unstructured(tree), field_manager=NAME, force=True)
                except ApiError as error:
                    failures.append(error)
        if failures:
            raise failures[0]
        return Done()


def _name(role: Tree) -> str:
    return role["metadata"]["name"]


def _selectors(role: Tree) -> list[Selector]:
    selectors: list[Tree] = role["aggregationRule"].get("clusterRoleSelectors") or []
    return [Selector.from_label_selector(each) for each in selectors]


def _is_selected(selectors: list[Selector], other: Tree) -> bool:
    labels: dict[str, str] = other["metadata"].get("labels") or {}
    return any(each.matches(labels) for each in selectors)


def _joined(roles: Iterable[Tree]) -> list[Tree]:
    # By their texts: there may be many thousand rules.
    joined: dict[bytes, Tree] = {}
    for role in roles:
        rules: list[Tree] = role.get("rules") or []
        for rule in rules:
            joined.setdefault(msgspec.json.encode(rule, order="deterministic"), rule)
    return list(joined.values())
