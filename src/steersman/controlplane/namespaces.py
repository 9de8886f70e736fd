"""namespace-controller: empties a deleted namespace and then releases it.

Guarantees
- Pods are deleted first; while one is left, nothing else is touched.
- The objects of all kinds served at that time are deleted. The namespace's conditions say what is left and why.
- It is driven by events: remaining objects are checked again when something in the namespace changes. Timers are needed
  only for Pods that exceed their grace period.
- The namespace is released (the finalizer ``kubernetes`` is removed from its spec) when nothing is left.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from steersman.aio import utc_now
from steersman.apiserver import Definition
from steersman.controller import Context, Done, Outcome, ReconcileClient, Reconciler, Request, RequeueAfter
from steersman.controlplane.conditions import content_problems, set_conditions
from steersman.controlplane.namespace_watcher import NAMESPACES, NamespaceWatcher
from steersman.controlplane.object_changes import ObjectChange, ObjectChanges
from steersman.errors import ApiError, NotFound
from steersman.kinds.core_v1 import Namespace, NamespaceStatus, Pod
from steersman.objects import Kind

#: The finalizer in a namespace's spec that this controller removes.
OURS = "kubernetes"
_PODS = "core/pods/"


class ContentFailed(Exception):
    """A request about the content of a namespace failed."""


@dataclass
class _Content:
    """What is left in a namespace, and what failed."""

    remaining: dict[str, int] = field(default_factory=dict[str, int])
    finalizers: Counter[str] = field(default_factory=Counter[str])
    #: Failed requests, and objects that should be gone and are not.
    failures: list[str] = field(default_factory=list[str])
    failed: bool = False
    #: Whether Pods are left, so that nothing else was touched; and how many seconds they may still take.
    pods: bool = False
    patience: float = 0.0


class Namespaces(NamespaceWatcher, Reconciler[Namespace]):
    """Empties and releases namespaces."""

    def __init__(self, changes: ObjectChanges) -> None:
        super().__init__()
        self._changes = changes

    def seen(self, change: ObjectChange) -> None:
        """Queue a namespace that is terminating, or in which something changed."""
        metadata = change.metadata
        if change.definition.prefix != NAMESPACES:
            # Also for late creations; and a removed finalizer changes the conditions.
            if metadata.namespace in self.terminating:
                self.add(metadata.namespace, f"{change.definition.gvk.kind} {metadata.name} changed")
        elif metadata.deletion_timestamp is not None and not change.gone:
            self.terminating[metadata.name] = None
            self.add(metadata.name, "the namespace is terminating")
        else:
            self.terminating.pop(metadata.name, None)

    def kinds_changed(self) -> None:
        """Check again: objects of a new kind may be deletable now."""
        for name in self.terminating:
            self.add(name, "the served kinds changed")

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Empty one namespace, report what is left, and release it if it is empty."""
        if request.key.name not in self.terminating:
            # It was released while this request waited.
            return Done()
        client = ctx.client
        namespace = await client.find(Namespace, request.key.name)
        if namespace is None or namespace.metadata.deletion_timestamp is None:
            return Done()
        try:
            return await self._let_go(client, namespace)
        except NotFound:
            # It was released meanwhile.
            return Done()

    async def _let_go(self, client: ReconcileClient, namespace: Namespace) -> Outcome:
        status = namespace.status = namespace.status or NamespaceStatus()
        if status.phase != "Terminating":
            status.phase = "Terminating"
            namespace = await client.update(namespace, subresource="status")
        if namespace.spec is None or not namespace.spec.finalizers:
            return Done()
        content = await self._empty(client, namespace)
        # While Pods are left, the other kinds have not been checked.
        left = _Content(failures=content.failures) if content.pods else content
        problems = content_problems(left.failures, left.remaining, left.finalizers)
        if set_conditions(namespace, problems, utc_now().replace(microsecond=0)):
            namespace = await client.update(namespace, subresource="status")
        if content.failed:
            raise ContentFailed(f"namespace {namespace.key.name}: {'; '.join(content.failures)}")
        if content.remaining:
            return RequeueAfter(content.patience) if content.patience else Done()
        if namespace.spec is not None:
            kept = {each for each in namespace.spec.finalizers or () if each != OURS}
            namespace.spec.finalizers = sorted(kept) or None
        await client.update(namespace, subresource="finalize")
        return Done()

    async def _empty(self, client: ReconcileClient, namespace: Namespace) -> _Content:
        """Delete all content, Pods first; returns what is left."""
        content, name = _Content(), namespace.key.name
        served = {each.prefix: each for each in self._changes.definitions() if each.namespaced}
        if _PODS in served and not self._changes.is_empty(served[_PODS], name):
            patience = await self._patience(client, namespace)
            await self._delete_all(client, served[_PODS], name, content, patience=patience)
            if content.remaining:
                content.pods, content.patience = True, patience
                return content
        for definition in served.values():
            if definition.prefix != _PODS and not self._changes.is_empty(definition, name):
                await self._delete_all(client, definition, name, content)
        return content

    async def _delete_all(
        self,
        client: ReconcileClient,
        definition: Definition,
        namespace: str,
        content: _Content,
        *,
        patience: float = 0.0,
    ) -> None:
        """Delete all objects of one kind, and record what is left."""
        gvk = definition.gvk
        kind = Kind(gvk.api_version, gvk.kind)
        try:
            if "deletecollection" in definition.verbs:
                await client.delete_collection(kind, namespace=namespace, propagation="Background")
            else:
                for each in await client.metadata.list(kind, namespace=namespace):
                    await client.delete(kind, each.key, propagation="Background", missing_ok=True)
            left = list(await client.metadata.list(kind, namespace=namespace))
        except ApiError as error:
            content.failures.append(str(error))
            content.failed = True
            return
        if not left:
            return
        finalizers = Counter(name for each in left for name in each.metadata.finalizers or ())
        content.remaining[f"{definition.resource}.{gvk.group}"] = len(left)
        content.finalizers.update(finalizers)
        if not finalizers and not patience:
            resource = f"{gvk.group}/{gvk.version}, Resource={definition.resource}"
            content.failures.append(f"unexpected items still remain in namespace: {namespace} for gvr: {resource}")

    @staticmethod
    async def _patience(client: ReconcileClient, namespace: Namespace) -> float:
        """How many more seconds the Pods of a namespace may take to end."""
        pods = await client.list(Pod, namespace=namespace.key.name)
        graces = [
            pod.spec.termination_grace_period_seconds or 0
            for pod in pods
            if pod.status is None or pod.status.phase not in {"Succeeded", "Failed"}
        ]
        began = namespace.metadata.deletion_timestamp
        assert began is not None
        return max(0.0, max(graces, default=0) - (utc_now() - began).total_seconds())
