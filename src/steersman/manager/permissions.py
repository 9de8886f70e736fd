"""The RBAC rules that a manager's controllers need, derived from their plans. Pure.

Guarantees
- A watched kind gets ``get``, ``list`` and ``watch``. The reconciled kind also gets writes to itself, its status and
  its finalizers. An owned kind, or one that the plan declares as written, gets create, update, patch and delete. Leader
  election and events are included.
- The result depends only on the manager, so a generated file changes only when the manager does.

Pass what a reconcile reads or writes beyond that with ``also``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from steersman.controller import ControllerPlan, Owners
from steersman.manager.manager import Manager
from steersman.objects import Kind, Object, plural_of
from steersman.webhooks import VersionConverter

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "patch", "update")
#: The customary order of verbs.
_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete")


class PermissionRule(msgspec.Struct, frozen=True, order=True):
    """Verbs on resources of one group, as in a Role."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]

    def tree(self) -> dict[str, list[str]]:
        """The rule as in a Role's manifest."""
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that a manager needs, by where they apply."""

    #: Where namespaced kinds are watched; empty means everywhere.
    namespaces: tuple[str, ...]
    #: Rules for these namespaces.
    rules: tuple[PermissionRule, ...]
    #: Rules for cluster-scoped kinds; part of ``rules`` if those apply everywhere.
    cluster_rules: tuple[PermissionRule, ...]
    #: Rules for the manager's own namespace: the Lease, and the Secret of its webhooks.
    own_rules: tuple[PermissionRule, ...]


class _Needs:
    """Verbs by group and resource."""

    def __init__(self) -> None:
        self._verbs: dict[tuple[str, str], set[str]] = {}

    def add(self, group: str, resource: str, verbs: Iterable[str]) -> None:
        """Add verbs on a resource."""
        self._verbs.setdefault((group, resource), set()).update(verbs)

    def rules(self) -> tuple[PermissionRule, ...]:
        """One rule for each distinct set of verbs in a group."""
        joined: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (group, resource), verbs in sorted(self._verbs.items()):
            ordered = tuple(sorted(verbs, key=_place))
            joined.setdefault((group, ordered), []).append(resource)
        return tuple(
            sorted(PermissionRule(group, tuple(resources), verbs) for (group, verbs), resources in joined.items())
        )


def permissions_of(manager: Manager, *, also: Mapping[tuple[str, str], Iterable[str]] | None = None) -> Permissions:
    """The rules that a manager needs. ``also`` adds verbs by group and resource."""
    namespaced, cluster, own = _Needs(), _Needs(), _Needs()
    here = manager.namespaces
    for plan in manager.plans:
        _needs_of(plan, namespaced, cluster if here else namespaced)
    namespaced.add("events.k8s.io", "events", ("create", "patch"))
    for (group, resource), verbs in (also or {}).items():
        namespaced.add(group, resource, verbs)
    _needs_of_webhooks(manager, cluster if here else namespaced, own)
    if manager.statistics(keys=0).leader is not None:
        own.add("coordination.k8s.io", "leases", ("get", "watch", "create", "update"))
    return Permissions(namespaces=here, rules=namespaced.rules(), cluster_rules=cluster.rules(), own_rules=own.rules())


def _needs_of(plan: ControllerPlan, namespaced: _Needs, cluster: _Needs) -> None:
    for kind in plan.kinds():
        (namespaced if _is_namespaced(kind) else cluster).add(*_resource(kind), _READ)
    owned = [watch.kind for watch in plan.watches if not watch.through and isinstance(watch.mapper(), Owners)]
    for kind in (*owned, *plan.writes):
        (namespaced if _is_namespaced(kind) else cluster).add(*_resource(kind), _WRITE)
    group, resource = _resource(plan.primary)
    primary = namespaced if _is_namespaced(plan.primary) else cluster
    primary.add(group, resource, ("update", "patch"))
    primary.add(group, f"{resource}/status", ("get", "update", "patch"))
    # Setting blockOwnerDeletion requires permission to update the owner's finalizers.
    primary.add(group, f"{resource}/finalizers", ("update",))


def _needs_of_webhooks(manager: Manager, cluster: _Needs, own: _Needs) -> None:
    """What the manager needs to create certificates and to register them."""
    endpoint = manager.webhook_endpoint
    if endpoint is None or not manager.webhooks.hooks:
        return
    if endpoint.tls is None:
        own.add("", "secrets", ("get", "watch", "create", "update"))
    elif endpoint.ca_file is None:
        return
    verbs = ("get", "watch", "create", "update", "patch") if endpoint.install else ("get", "watch", "update")
    for resource in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        cluster.add("admissionregistration.k8s.io", resource, verbs)
    if any(isinstance(hook, VersionConverter) for hook in manager.webhooks.hooks):
        cluster.add("apiextensions.k8s.io", "customresourcedefinitions", verbs)


def _resource(kind: type[Object] | Kind) -> tuple[str, str]:
    if isinstance(kind, Kind):
        return kind.gvk().group, plural_of(kind.kind)
    return kind.__resource__.group, kind.__resource__.plural


def _is_namespaced(kind: type[Object] | Kind) -> bool:
    return isinstance(kind, Kind) or kind.__resource__.namespaced


def _place(verb: str) -> tuple[int, str]:
    return (_ORDER.index(verb) if verb in _ORDER else len(_ORDER)), verb
