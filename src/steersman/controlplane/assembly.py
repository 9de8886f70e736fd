"""Makes running controllers from their names.

Guarantees
- Each acts as its own user, named as in kube-controller-manager, with all permissions.
- A failed request fails one key, which is retried with growing delays.
- Whether work is left is known exactly, and described in text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from steersman.apiserver import ApiServer, User
from steersman.client import Client, RetryPolicy
from steersman.controller import Controller, ControllerOptions, KeyRecord, ReconcileClient, reconcile_pipeline
from steersman.controlplane import reconcilers
from steersman.controlplane.definitions import EndingDefinitions
from steersman.controlplane.object_changes import ObjectChanges
from steersman.objects import nearest
from steersman.transport import InProcessTransport

GARBAGE = "garbage-collector-controller"
NAMESPACE = "namespace-controller"
SERVICE_ACCOUNT = "serviceaccount-controller"
ROOT_CA = "root-ca-certificate-publisher-controller"
ROLES = "clusterrole-aggregation-controller"
QUOTA = "resourcequota-controller"
CLAIM = "persistentvolumeclaim-protection-controller"

#: All controllers, each with the service account in kube-system that it acts as.
CONTROLLERS = {
    GARBAGE: "generic-garbage-collector",
    NAMESPACE: "namespace-controller",
    SERVICE_ACCOUNT: "service-account-controller",
    ROOT_CA: "root-ca-cert-publisher",
    ROLES: "clusterrole-aggregation-controller",
    QUOTA: "resourcequota-controller",
    CLAIM: "pvc-protection-controller",
}
#: The concurrency of each: that of kube-controller-manager, or enough.
_CONCURRENCY = {GARBAGE: 20, NAMESPACE: 10, SERVICE_ACCOUNT: 1, ROOT_CA: 1, ROLES: 1, QUOTA: 1, CLAIM: 1}
_ACCOUNTS = "system:serviceaccount:kube-system:"

if TYPE_CHECKING:
    _Part: TypeAlias = (
        reconcilers.GarbageCollector
        | reconcilers.Namespaces
        | reconcilers.ServiceAccounts
        | reconcilers.RootCertificates
        | reconcilers.AggregatedRoles
        | reconcilers.QuotaUsage
        | reconcilers.ClaimProtection
    )


def chosen(controllers: Iterable[str] | None) -> tuple[str, ...]:
    """The selected controllers; all of them by default."""
    if controllers is None:
        return tuple(CONTROLLERS)
    if isinstance(controllers, str):
        raise TypeError(f"controllers must be a list of names: write controllers=[{controllers!r}]")
    names = tuple(dict.fromkeys(controllers))
    for name in names:
        if name not in CONTROLLERS:
            near = nearest(name, CONTROLLERS)
            hint = f"did you mean {near}?" if near else f"the controllers are {', '.join(CONTROLLERS)}"
            raise ValueError(f"controllers: unknown controller {name!r}; {hint}")
    return names


def user_of(controller: str) -> User:
    """The user that a controller acts as."""
    name = f"{_ACCOUNTS}{CONTROLLERS[controller]}"
    groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated", "system:masters")
    return User(name=name, groups=groups)


def is_controller(user: str) -> bool:
    """Whether a user name belongs to a controller."""
    return user.startswith(_ACCOUNTS) and user.removeprefix(_ACCOUNTS) in CONTROLLERS.values()


class Assembled:
    """The controllers of a control plane, and what they need."""

    def __init__(
        self,
        server: ApiServer,
        names: Iterable[str],
        *,
        authority: bytes | None,
        on_news: Callable[[], None],
        on_record: Callable[[str, KeyRecord], None] = lambda _controller, _record: None,
    ) -> None:
        self.changes = ObjectChanges(server, on_news)
        self.transports: list[InProcessTransport] = []
        self.controllers: list[Controller] = []
        self._server = server
        self._on_news = on_news
        self._on_record = on_record
        self._definitions = EndingDefinitions(server)
        self.changes.add(self._definitions)
        for name in names:
            part = self._part(name, authority)
            if part is not None:
                self._assemble(name, part)

    def _part(self, name: str, authority: bytes | None) -> _Part | None:
        """The reconciler of a controller; None if the server does not serve what it needs."""
        served = {each.resource for each in self._server.registry if not each.gvk.group}
        roles = self._server.registry.any_version("rbac.authorization.k8s.io", "clusterroles")
        part: _Part | None = None
        if name == GARBAGE:
            part = reconcilers.GarbageCollector(self.changes)
        elif name == NAMESPACE and "namespaces" in served:
            part = reconcilers.Namespaces(self.changes)
        elif name == SERVICE_ACCOUNT and {"namespaces", "serviceaccounts"} <= served:
            part = reconcilers.ServiceAccounts()
        # Without a port, there is no certificate to verify.
        elif name == ROOT_CA and {"namespaces", "configmaps"} <= served and authority is not None:
            part = reconcilers.RootCertificates(authority.decode())
        elif name == ROLES and roles is not None:
            part = reconcilers.AggregatedRoles()
        elif name == QUOTA and "resourcequotas" in served:
            part = reconcilers.QuotaUsage(self.changes)
        elif name == CLAIM and {"persistentvolumeclaims", "pods"} <= served:
            part = reconcilers.ClaimProtection()
        return part

    def _assemble(self, name: str, part: _Part) -> None:
        clients = _Clients(self._server, user_of(name))
        controller = Controller(
            name,
            (),
            part,
            client=lambda log: ReconcileClient(reconcile_pipeline(clients.current(), (log,))),
            options=ControllerOptions(concurrency=_CONCURRENCY[name]),
            on_record=lambda record: self._recorded(name, record),
        )
        part.feeds(controller.add)
        self.changes.add(part)
        self.transports.append(clients.transport)
        self.controllers.append(controller)

    def _recorded(self, name: str, record: KeyRecord) -> None:
        self._on_record(name, record)
        self._on_news()

    async def is_busy(self) -> bool:
        """Whether any key is ready, running or being retried; keys that wait for their own time do not count."""
        return any(controller.busy for controller in self.controllers) or bool(await self._definitions.busy())

    async def left(self) -> str:
        """What keeps it busy, as text."""
        found: list[str] = []
        for controller in self.controllers:
            queue = controller.statistics(keys=0).queue
            if controller.busy:
                again = queue.failing + queue.requeued
                words = f"{queue.ready} waiting, {queue.running} running, {again} to be retried"
                found.append(f"{controller.name} ({words})")
        found += [f"the deletion of {name}" for name in await self._definitions.busy()]
        return "; ".join(found)


class _Clients:
    """The client of one controller; replaced when the served kinds change, to drop its discovery cache."""

    def __init__(self, server: ApiServer, user: User) -> None:
        self.transport = server.transport(user)
        self._registry = server.registry
        self._client: Client | None = None
        self._made_at = -1

    def current(self) -> Client:
        if self._client is None or self._made_at != self._registry.revision:
            self._made_at = self._registry.revision
            self._client = Client(
                self.transport,
                user_agent="kube-controller-manager",
                validate=False,
                # The queue retries, with its own delays.
                retry=RetryPolicy(attempts=1),
                on_warning=_ignored,
            )
        return self._client


def _ignored(_: object) -> None:
    """Ignore warnings: they are for people who write manifests."""
