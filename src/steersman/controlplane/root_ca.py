"""root-ca-certificate-publisher-controller: keeps the ConfigMap ``kube-root-ca.crt`` in every namespace.

Guarantees
- It contains the certificate of the authority that signed the server's own; changes and deletions are reverted.
- Nothing is created in a terminating namespace.
"""

from __future__ import annotations

from steersman.controller import Context, Done, Reconciler, Request
from steersman.controlplane.namespace_watcher import NamespaceWatcher
from steersman.controlplane.object_changes import ObjectChange
from steersman.errors import Forbidden, NotFound
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.objects import ObjectMeta

NAME = "kube-root-ca.crt"
ANNOTATION = "kubernetes.io/description"
DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal"
    " service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)


class RootCertificates(NamespaceWatcher, Reconciler[Namespace]):
    """Publishes the CA certificate."""

    def __init__(self, certificate: str) -> None:
        super().__init__()
        self._data = {"ca.crt": certificate}

    def seen(self, change: ObjectChange) -> None:
        """Queue an active namespace that changed, or whose ConfigMap changed."""
        if change.definition.prefix != "core/configmaps/":
            super().seen(change)
        elif change.metadata.name == NAME and change.metadata.namespace not in self.terminating:
            self.add(change.metadata.namespace, f"its ConfigMap {NAME} changed")

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Create or repair the ConfigMap of one namespace."""
        namespace = request.key.name
        found = await ctx.client.find(ConfigMap, (namespace, NAME))
        if found is None:
            metadata = ObjectMeta(name=NAME, namespace=namespace, annotations={ANNOTATION: DESCRIPTION})
            try:
                await ctx.client.create(ConfigMap(metadata=metadata, data=dict(self._data)))
            except NotFound:
                pass
            except Forbidden as refused:
                if not refused.namespace_terminating:
                    raise
            return Done()
        annotations = found.metadata.annotations or {}
        if found.data != self._data or not annotations.get(ANNOTATION):
            found.data = dict(self._data)
            found.metadata.annotations = {**annotations, ANNOTATION: DESCRIPTION}
            await ctx.client.update(found)
        return Done()
