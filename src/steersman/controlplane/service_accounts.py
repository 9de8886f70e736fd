"""serviceaccount-controller: every active namespace has the ServiceAccount ``default``.

Guarantees
- It is there soon after the namespace, and again soon after somebody deleted it.
- In a namespace that is going nothing is created.
"""

from __future__ import annotations

from steersman.controller import Context, Done, Reconciler, Request
from steersman.controlplane.namespaced import NamespaceWatcher
from steersman.controlplane.sightings import Sighting
from steersman.kinds.core_v1 import Namespace, ServiceAccount
from steersman.objects import ObjectMeta
from steersman.objects.errors import AlreadyExists, Forbidden, NotFound

NAME = "default"


class ServiceAccounts(NamespaceWatcher, Reconciler[Namespace]):
    """Creates what is missing."""

    def seen(self, sighting: Sighting) -> None:
        """A namespace changed, or an account went."""
        if sighting.definition.prefix == "core/serviceaccounts/":
            if sighting.gone and sighting.metadata.name == NAME:
                self.add(sighting.metadata.namespace, "its ServiceAccount went")
        else:
            super().seen(sighting)

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Create the account of one namespace."""
        name = request.key.name
        namespace = await ctx.client.find(Namespace, name)
        if namespace is None or namespace.status is None or namespace.status.phase != "Active":
            return Done()
        if await ctx.client.find(ServiceAccount, (name, NAME)) is not None:
            return Done()
        try:
            await ctx.client.create(ServiceAccount(metadata=ObjectMeta(name=NAME, namespace=name)))
        except (AlreadyExists, NotFound):
            pass
        except Forbidden as refused:
            if not is_terminating(refused):
                raise
        return Done()


def is_terminating(refused: Forbidden) -> bool:
    """Whether something could not be created because its namespace is going."""
    return any(cause.reason == "NamespaceTerminating" for cause in refused.causes)
