"""The RBAC rules that a manager's controllers need, derived from their blueprints. Pure.

Guarantees
- A watched kind gets ``get``, ``list`` and ``watch``. The reconciled kind also gets writes to itself, its status and
  its finalizers. An owned kind, or one that the blueprint declares as written, gets create, update, patch and delete. Leader
  election and events are included.
- Rules for objects whose names are known (the Lease, Secrets with certificates, webhook configurations, CRDs) name
  them. Only ``create``, which RBAC cannot restrict by name, has a rule of its own.
- The result depends only on the manager, so a generated file changes only when the manager does.

Pass what a reconcile reads or writes beyond that with ``also``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from steersman.controller import Blueprint, Owners
from steersman.manager.endpoints import HttpEndpoints
from steersman.manager.manager import Manager
from steersman.objects import Kind, Object, plural_of
from steersman.webhooks import WebhookEndpoint, WebhookRegistration

#: Group and resource, or group, resource and name.
PlaceT = TypeVar("PlaceT", bound=tuple[str, ...])

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "patch", "update")
#: The customary order of verbs.
_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete")


class PermissionRule(msgspec.Struct, frozen=True, order=True):
    """Verbs on resources of one group, as in a Role."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    #: The objects that the rule is about; empty means all.
    names: tuple[str, ...] = ()

    def tree(self) -> dict[str, list[str]]:
        """The rule as in a Role's manifest."""
        named = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.group], "resources": list(self.resources), **named, "verbs": list(self.verbs)}


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that a manager needs, by where they apply."""

    #: Where namespaced kinds are watched; empty means everywhere.
    namespaces: tuple[str, ...]
    #: Rules for these namespaces.
    rules: tuple[PermissionRule, ...]
    #: Rules for cluster-scoped kinds; part of ``rules`` if those apply everywhere.
    cluster_rules: tuple[PermissionRule, ...]
    #: Rules for the manager's own namespace: the Lease, and the Secrets with the certificates of its ports.
    own_rules: tuple[PermissionRule, ...]


class _Needs:
    """Verbs by group, resource and name."""

    def __init__(self) -> None:
        self._verbs: dict[tuple[str, str, str], set[str]] = {}

    def add(self, group: str, resource: str, verbs: Iterable[str], *, name: str = "") -> None:
        """Add verbs on a resource, or on one object of it."""
        self._verbs.setdefault((group, resource, name), set()).update(verbs)

    def add_named(self, group: str, resource: str, verbs: Iterable[str], name: str) -> None:
        """Add verbs on one object; ``create`` applies to all, because it cannot be restricted by name."""
        wanted = set(verbs)
        self.add(group, resource, wanted - {"create"}, name=name)
        if "create" in wanted:
            self.add(group, resource, ("create",))

    def rules(self) -> tuple[PermissionRule, ...]:
        """One rule for each distinct set of verbs and names in a group."""
        named: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for (group, resource, name), verbs in sorted(self._verbs.items()):
            everywhere = self._verbs.get((group, resource, ""), set[str]()) if name else set[str]()
            if ordered := tuple(sorted(verbs - everywhere, key=_place)):
                named.setdefault((group, resource, ordered), []).append(name)
        joined: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
        for (group, resource, verbs), names in named.items():
            for some in ([name for name in names if not name], [name for name in names if name]):
                if some:
                    joined.setdefault((group, verbs, tuple(filter(None, some))), []).append(resource)
        return tuple(
            sorted(
                PermissionRule(group, tuple(resources), verbs, names)
                for (group, verbs, names), resources in joined.items()
            )
        )


def permissions_of(
    manager: Manager,
    *,
    also: Mapping[PlaceT, Iterable[str]] | None = None,
    endpoints: HttpEndpoints | None = None,
    webhook_endpoint: WebhookEndpoint | None = None,
) -> Permissions:
    """The rules that a manager needs. ``also`` adds verbs by group and resource, or by group, resource and name.

    The endpoints override those of the manager.
    """
    endpoints = endpoints or manager.endpoints
    namespaced, cluster, own = _Needs(), _Needs(), _Needs()
    here = manager.namespaces
    for blueprint in manager.blueprints:
        _needs_of(blueprint, namespaced, cluster if here else namespaced)
    namespaced.add("events.k8s.io", "events", ("create", "patch"))
    for (group, resource, *names), verbs in (also or {}).items():
        namespaced.add(group, resource, verbs, name="".join(names))
    _needs_of_webhooks(manager, webhook_endpoint or manager.webhook_endpoint, cluster if here else namespaced, own)
    if endpoints is not None and endpoints.service:
        own.add_named("", "secrets", ("get", "create", "update"), endpoints.secret_key.name)
    if (leader := manager.statistics(keys=0).leader) is not None:
        lease = leader.lease.rpartition("/")[2]
        own.add_named("coordination.k8s.io", "leases", ("get", "watch", "create", "update"), lease)
    return Permissions(namespaces=here, rules=namespaced.rules(), cluster_rules=cluster.rules(), own_rules=own.rules())


def _needs_of(blueprint: Blueprint, namespaced: _Needs, cluster: _Needs) -> None:
    for kind in blueprint.kinds():
        (namespaced if _is_namespaced(kind) else cluster).add(*_resource(kind), _READ)
    for kind in _written(blueprint):
        (namespaced if _is_namespaced(kind) else cluster).add(*_resource(kind), _WRITE)
    group, resource = _resource(blueprint.primary)
    primary = namespaced if _is_namespaced(blueprint.primary) else cluster
    primary.add(group, resource, ("update", "patch"))
    primary.add(group, f"{resource}/status", ("get", "update", "patch"))
    # Setting blockOwnerDeletion requires permission to update the owner's finalizers.
    primary.add(group, f"{resource}/finalizers", ("update",))


def _needs_of_webhooks(manager: Manager, endpoint: WebhookEndpoint | None, cluster: _Needs, own: _Needs) -> None:
    """What the manager needs to create certificates and to register them."""
    if endpoint is None or not manager.webhooks.hooks:
        return
    if endpoint.tls is None:
        own.add_named("", "secrets", ("get", "watch", "create", "update"), endpoint.secret_name(manager.name))
    elif endpoint.ca_file is None:
        return
    verbs = ("get", "watch", "update", *(("create", "patch") if endpoint.install else ()))
    registration = WebhookRegistration(manager.webhooks.hooks, endpoint, name=manager.name)
    for tree in registration.configurations():
        resource = f"{tree['kind'].lower()}s"
        cluster.add_named("admissionregistration.k8s.io", resource, verbs, manager.name)
    for name in registration.converted_kinds().values():
        cluster.add_named("apiextensions.k8s.io", "customresourcedefinitions", ("get", "watch", "update"), name)


def written_bindings(manager: Manager) -> tuple[str, ...]:
    """The kinds of RBAC that a manager writes: the server lets it grant only what it may do or bind itself."""
    kinds = {kind for blueprint in manager.blueprints for kind in _written(blueprint)}
    resources = {_resource(kind) for kind in kinds}
    return tuple(sorted(resource for group, resource in resources if group == "rbac.authorization.k8s.io"))


def _written(blueprint: Blueprint) -> list[type[Object] | Kind]:
    owned = [watch.kind for watch in blueprint.watches if not watch.through and isinstance(watch.mapper(), Owners)]
    return [*owned, *blueprint.writes]


def _resource(kind: type[Object] | Kind) -> tuple[str, str]:
    if isinstance(kind, Kind):
        return kind.gvk().group, plural_of(kind.kind)
    return kind.__resource__.group, kind.__resource__.plural


def _is_namespaced(kind: type[Object] | Kind) -> bool:
    return isinstance(kind, Kind) or kind.__resource__.namespaced


def _place(verb: str) -> tuple[int, str]:
    return (_ORDER.index(verb) if verb in _ORDER else len(_ORDER)), verb
