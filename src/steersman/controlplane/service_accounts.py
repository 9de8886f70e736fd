"""serviceaccount-controller: keeps the ServiceAccount ``default`` in every active namespace.

Guarantees
- It exists soon after the namespace, and again soon after a deletion.
- Nothing is created in a terminating namespace.
"""

from __future__ import annotations

from steersman.controller import Context, Done, Reconciler, Request
from steersman.controlplane.namespace_watcher import NamespaceWatcher
from steersman.controlplane.object_changes import ObjectChange
from steersman.errors import AlreadyExists, Forbidden, NotFound
from steersman.kinds.core_v1 import Namespace, ServiceAccount
from steersman.objects import ObjectMeta

NAME = "default"


class ServiceAccounts(NamespaceWatcher, Reconciler[Namespace]):
    """Creates missing service accounts."""

    def seen(self, change: ObjectChange) -> None:
        """Queue the namespace that changed, or whose account was deleted."""
        if change.definition.prefix == "core/serviceaccounts/":
            if change.gone and change.metadata.name == NAME:
                self.add(change.metadata.namespace, "its ServiceAccount was deleted")
        else:
            super().seen(change)

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
            if not refused.namespace_terminating:
                raise
        return Done()
