"""persistentvolumeclaim-protection-controller: releases a deleted claim when no scheduled Pod uses it.

Guarantees
- A deleted claim stays while a Pod on a node mounts it, also one that has ended, and is removed after that.
- Finalizers of other programs stay.
- A claim that is not being deleted is not written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from steersman.controller import Cause, Context, Done, Reconciler, Request
from steersman.controlplane.object_changes import ObjectChange, Watcher
from steersman.errors import NotFound
from steersman.objects import Key, Kind, Unstructured

FINALIZER: Final = "kubernetes.io/pvc-protection"
CLAIM: Final = Kind("v1", "PersistentVolumeClaim")
POD: Final = Kind("v1", "Pod")
_CLAIMS: Final = "core/persistentvolumeclaims/"
_PODS: Final = "core/pods/"

Tree = dict[str, Any]


class ClaimProtection(Watcher, Reconciler[Unstructured]):
    """Releases claims that were deleted."""

    def __init__(self) -> None:
        #: The names of the claims in each namespace that are being deleted.
        self._ending: dict[str, dict[str, None]] = {}

    def seen_all(self, changes: Sequence[ObjectChange]) -> None:
        self._ending.clear()
        super().seen_all(changes)

    def seen(self, change: ObjectChange) -> None:
        """Queue a claim whose deletion has begun, or all of them in the namespace of a Pod that changed."""
        namespace, name, prefix = change.metadata.namespace, change.metadata.name, change.definition.prefix
        if prefix == _CLAIMS:
            self._seen_claim(change)
        elif prefix == _PODS:
            for claim in self._ending.get(namespace, ()):
                self._queue(Key(namespace, claim), f"Pod {name} changed")

    def _seen_claim(self, change: ObjectChange) -> None:
        metadata = change.metadata
        if not change.gone and metadata.deletion_timestamp is not None and FINALIZER in metadata.finalizers:
            self._ending.setdefault(metadata.namespace, {})[metadata.name] = None
            self._queue(Key(metadata.namespace, metadata.name), "its deletion has begun")
            return
        ending = self._ending.get(metadata.namespace, {})
        ending.pop(metadata.name, None)
        if not ending:
            self._ending.pop(metadata.namespace, None)

    def _queue(self, key: Key, note: str) -> None:
        assert self._add is not None
        self._add(Request(key), Cause(what="external", note=note))

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Remove the finalizer of a deleted claim that no Pod uses."""
        claim = await ctx.client.find(CLAIM, request.key)
        metadata: Tree = claim.tree["metadata"] if claim is not None else {}
        finalizers: list[str] = metadata.get("finalizers") or []
        if claim is None or "deletionTimestamp" not in metadata or FINALIZER not in finalizers:
            return Done()
        pods = await ctx.client.list(POD, namespace=request.key.namespace)
        if any(_uses(pod.tree, claim.tree) for pod in pods):
            return Done()
        metadata["finalizers"] = [each for each in finalizers if each != FINALIZER]
        with contextlib.suppress(NotFound):
            await ctx.client.update(claim)
        return Done()


def _uses(pod: Tree, claim: Tree) -> bool:
    """Whether a Pod uses a claim: one without a node does not, because the kubelet starts none with a deleted claim."""
    spec: Tree = pod.get("spec") or {}
    return bool(spec.get("nodeName")) and claim["metadata"]["name"] in _claims_of(pod, spec, claim)


def _claims_of(pod: Tree, spec: Tree, claim: Tree) -> Iterator[str]:
    owners: list[Tree] = claim["metadata"].get("ownerReferences") or []
    is_made_for_it = any(each.get("controller") and each["uid"] == pod["metadata"]["uid"] for each in owners)
    for volume in spec.get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume and is_made_for_it and not _is_shut_down(pod):
            yield f"{pod['metadata']['name']}-{volume['name']}"


def _is_shut_down(pod: Tree) -> bool:
    """Whether the kubelet is done with a Pod, or it was deleted by force."""
    metadata: Tree = pod["metadata"]
    return "deletionTimestamp" in metadata and metadata.get("deletionGracePeriodSeconds") == 0
