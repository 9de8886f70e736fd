"""The RBAC rules that a manager's controllers need, derived from their blueprints. Pure.

Guarantees
- A watched kind gets ``get``, ``list`` and ``watch``. The reconciled kind also gets writes to itself, its status and
  its finalizers. An owned kind, or one that the blueprint declares as written, gets create, update, patch and delete. Leader
  election and events are included.
- The rules of a kind apply where the manager caches it: in ``namespaces``, or where the options of the kind say.
- Children in other namespaces than their owner's get ``list`` everywhere: it comes before the removal of a finalizer.
- Events get their rules where the server wants them: in the object's namespace, or in ``default``.
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
from steersman.manager.shards.settings import assignment_name
from steersman.objects import Kind, Object, plural_of
from steersman.webhooks import WebhookEndpoint, WebhookRegistration

#: Group and resource, or group, resource and name.
PlaceT = TypeVar("PlaceT", bound=tuple[str, ...])

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "patch", "update")
_EVENTS = ("events.k8s.io", "events")
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
    #: Rules for what is everywhere or in no namespace; part of ``rules`` if those apply everywhere.
    cluster_rules: tuple[PermissionRule, ...]
    #: Rules for single namespaces, in addition to ``rules``.
    local_rules: tuple[tuple[str, tuple[PermissionRule, ...]], ...]
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
    places, own = _Places(manager), _Needs()
    for blueprint in manager.blueprints:
        _needs_of(blueprint, places)
    places.usual.add(*_EVENTS, ("create", "patch"))
    for (group, resource, *names), verbs in (also or {}).items():
        places.usual.add(group, resource, verbs, name="".join(names))
    _needs_of_webhooks(manager, webhook_endpoint or manager.webhook_endpoint, places.everywhere, own)
    if endpoints is not None and endpoints.service:
        own.add_named("", "secrets", ("get", "create", "update"), endpoints.secret_key.name)
    if (leader := manager.statistics(keys=0).leader) is not None:
        lease = leader.lease.rpartition("/")[2]
        if manager.shards is not None:
            # One Lease for each replica, whose names are not known before.
            own.add("coordination.k8s.io", "leases", ("get", "list", "watch", "create", "update", "delete"))
            own.add_named("", "configmaps", ("get", "watch", "create", "update"), assignment_name(manager.shards.name))
        own.add_named("coordination.k8s.io", "leases", ("get", "watch", "create", "update"), lease)
    return Permissions(
        namespaces=manager.namespaces,
        rules=places.usual.rules(),
        cluster_rules=places.everywhere.rules() if manager.namespaces else (),
        local_rules=tuple((namespace, needs.rules()) for namespace, needs in sorted(places.local.items())),
        own_rules=own.rules(),
    )


class _Places:
    """What a manager needs, by where it needs it."""

    def __init__(self, manager: Manager) -> None:
        self._namespaces = manager.namespaces
        self._options = {kind.gvk(): options for kind, options in manager.kinds.items()}
        #: In the namespaces of the manager, or everywhere if it has none.
        self.usual = _Needs()
        #: Everywhere, and for what is in no namespace.
        self.everywhere = _Needs() if manager.namespaces else self.usual
        #: In single namespaces.
        self.local: dict[str, _Needs] = {}

    def of(self, kind: type[Object] | Kind) -> list[_Needs]:
        """Where the manager works with objects of a kind."""
        options = self._options.get(kind.gvk())
        if not _is_namespaced(kind) or (options is not None and not options.namespaces):
            return [self.everywhere]
        if options is None or not self._namespaces:
            return [self.usual]
        return [self._in(namespace) for namespace in options.namespaces]

    def of_events(self, kind: type[Object] | Kind) -> list[_Needs]:
        """Where the events of objects of a kind are created."""
        return self.of(kind) if not self._namespaces or _is_namespaced(kind) else [self._in("default")]

    def _in(self, namespace: str) -> _Needs:
        return self.local.setdefault(namespace, _Needs())


def _needs_of(blueprint: Blueprint, places: _Places) -> None:
    group, resource = _resource(blueprint.primary)
    for kind in blueprint.kinds():
        for needs in places.of(kind):
            needs.add(*_resource(kind), _READ)
    for kind in _written(blueprint):
        for needs in places.of(kind):
            needs.add(*_resource(kind), _WRITE)
    for needs in places.of(blueprint.primary):
        needs.add(group, resource, ("update", "patch"))
        needs.add(group, f"{resource}/status", ("get", "update", "patch"))
        # Setting blockOwnerDeletion requires permission to update the owner's finalizers.
        needs.add(group, f"{resource}/finalizers", ("update",))
    for needs in places.of_events(blueprint.primary):
        needs.add(*_EVENTS, ("create", "patch"))
    if _is_namespaced(blueprint.primary):
        for kind in blueprint.across_namespaces:
            places.everywhere.add(*_resource(kind), ("list",))


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
