"""serviceaccount-controller: keeps the ServiceAccount ``default`` in every active namespace.

Guarantees
- It exists soon after the namespace, and again soon after a deletion.
- Nothing is created in a terminating namespace.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman.controller import Context, Done, Reconciler, Request
from steersman.controlplane.namespace_watcher import NamespaceWatcher
from steersman.controlplane.object_changes import ObjectChange
from steersman.errors import AlreadyExists, Forbidden, NotFound
from steersman.kinds.core_v1 import Namespace, ServiceAccount
from steersman.objects import ObjectMeta

NAME = "default"
_ACCOUNTS = "core/serviceaccounts/"


class ServiceAccounts(NamespaceWatcher, Reconciler[Namespace]):
    """Creates missing service accounts."""

    def __init__(self) -> None:
        super().__init__()
        #: The namespaces that have theirs.
        self._supplied: set[str] = set()

    def seen_all(self, changes: Sequence[ObjectChange]) -> None:
        self._supplied.clear()
        for change in changes:
            if change.definition.prefix == _ACCOUNTS:
                self.seen(change)
        super().seen_all(changes)

    def seen(self, change: ObjectChange) -> None:
        """Queue an active namespace that changed, or whose account was deleted."""
        if change.definition.prefix != _ACCOUNTS:
            super().seen(change)
            return
        namespace = change.metadata.namespace
        if change.metadata.name != NAME:
            return
        if not change.gone:
            self._supplied.add(namespace)
            return
        self._supplied.discard(namespace)
        if namespace not in self.terminating:
            self.add(namespace, "its ServiceAccount was deleted")

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Create the account of one namespace."""
        name = request.key.name
        if name in self._supplied or name in self.terminating:
            return Done()
        try:
            # The server decides: it rejects a second account, and any in a namespace that is terminating or gone.
            await ctx.client.create(ServiceAccount(metadata=ObjectMeta(name=NAME, namespace=name)))
        except (AlreadyExists, NotFound):
            pass
        except Forbidden as refused:
            if not refused.namespace_terminating:
                raise
        return Done()
