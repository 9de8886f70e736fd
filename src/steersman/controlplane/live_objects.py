"""Objects of any kind in their current state on the server, and the garbage collector's requests about them.

Guarantees
- Only the object with the given uid is changed or deleted.
- An unserved kind raises `NotServed`; an object that is gone meanwhile is not a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, Literal

from steersman.apiserver import Definition
from steersman.client import MergePatch, StrategicPatch, retry_on_conflict
from steersman.controller import ReconcileClient
from steersman.controlplane.graph import Node
from steersman.controlplane.object_changes import ObjectChanges
from steersman.errors import Conflict, KindNotServed, NotFound
from steersman.objects import GroupVersionKind, Key, Kind, OwnerReference, PartialObjectMetadata
from steersman.wire import is_segment

Propagation = Literal["Background", "Foreground", "Orphan"]


class NotServed(Exception):
    """A kind is currently not served."""


class LiveObjects:
    """Reads and writes metadata, for one reconcile."""

    def __init__(self, client: ReconcileClient, changes: ObjectChanges) -> None:
        self._client = client
        self._changes = changes

    # reading

    async def of(self, node: Node) -> PartialObjectMetadata | None:
        """The current state of a node; None if it is gone."""
        current = await self._find(self._definition(node), _key(node))
        return current if current is not None and current.uid == node.metadata.uid else None

    def kind(self, reference: OwnerReference) -> Definition:
        """The definition that serves the kind of an owner."""
        definition = self._changes.of_kind(GroupVersionKind.of(reference.api_version, reference.kind))
        if definition is None:
            raise NotServed(f"{reference.api_version} {reference.kind} is not served")
        return definition

    async def owner(self, reference: OwnerReference, namespace: str) -> PartialObjectMetadata | None:
        """The current state of an owner; None if it is gone, or another object has its name."""
        if not is_segment(reference.name):
            # No request can name it, so no answer can show that it is gone.
            raise NotServed(
                f"{reference.api_version} {reference.kind} {reference.name!r} has a name that no object can have"
            )
        owner = await self._find(self.kind(reference), Key(namespace, reference.name))
        return owner if owner is not None and owner.uid == reference.uid else None

    # writing

    async def delete(self, node: Node, seen: PartialObjectMetadata, propagation: Propagation) -> None:
        """Delete an object as it was read.

        If it has changed since, it is still deleted as long as its owners are the same: otherwise an object that
        changes all the time would never be deleted.
        """
        kind, key, uid = _kind(self._definition(node)), _key(node), node.metadata.uid
        version = seen.metadata.resource_version
        try:
            await self._client.delete(kind, key, uid=uid, resource_version=version, propagation=propagation)
        except NotFound:
            return
        except Conflict:
            current = await self.of(node)
            if current is None:
                return
            if current.metadata.owner_references != seen.metadata.owner_references:
                raise
            await self._client.delete(kind, key, uid=uid, propagation=propagation, missing_ok=True)

    async def remove_owners(self, node: Node, owners: Collection[str]) -> None:
        """Remove references to these uids."""
        removed = [{"$patch": "delete", "uid": uid} for uid in owners]

        def without_owners(reference: OwnerReference) -> dict[str, Any]:
            return {} if reference.uid in owners else reference_tree(reference)

        await self._patch_references(node, removed, without_owners)

    async def unblock(self, node: Node, seen: PartialObjectMetadata) -> None:
        """Stop owners from waiting for this object."""

        def unblocked(reference: OwnerReference) -> dict[str, Any]:
            return {**reference_tree(reference), "blockOwnerDeletion": False}

        references = seen.metadata.owner_references or ()
        changes = [unblocked(reference) for reference in references if reference.block_owner_deletion]
        await self._patch_references(node, changes, unblocked)

    async def _patch_references(
        self, node: Node, strategic: list[dict[str, Any]], changed: Callable[[OwnerReference], dict[str, Any]]
    ) -> None:
        """Change references: with a strategic merge patch if the kind supports it, otherwise by replacing the list.

        ``changed`` returns what a reference becomes; empty to remove it.
        """
        definition, key = self._definition(node), _key(node)
        try:
            if not definition.custom:
                metadata = {"uid": node.metadata.uid, "ownerReferences": strategic}
                await self._client.patch(_kind(definition), key, StrategicPatch({"metadata": metadata}))
                return
            current = await self.of(node)
            if current is None:
                return
            references = current.metadata.owner_references or ()
            kept = [tree for reference in references if (tree := changed(reference))]
            metadata = {"resourceVersion": current.metadata.resource_version, "ownerReferences": kept or None}
            await self._client.patch(_kind(definition), key, MergePatch({"metadata": metadata}))
        except NotFound:
            return

    async def remove_finalizer(self, node: Node, finalizer: str) -> None:
        """Remove a finalizer from an object."""
        definition = self._definition(node)

        async def write() -> None:
            current = await self.of(node)
            if current is None or not current.metadata.finalizers or finalizer not in current.metadata.finalizers:
                return
            kept = [name for name in current.metadata.finalizers if name != finalizer]
            metadata = {"resourceVersion": current.metadata.resource_version, "finalizers": kept or None}
            with suppress(NotFound):
                await self._client.patch(_kind(definition), _key(node), MergePatch({"metadata": metadata}))

        await retry_on_conflict(write)

    def _definition(self, node: Node) -> Definition:
        definition = self._changes.definition(node.prefix)
        if definition is None:
            raise NotServed(f"{node.gvk} is no longer served")
        return definition

    async def _find(self, definition: Definition, key: Key) -> PartialObjectMetadata | None:
        key = key if definition.namespaced else Key("", key.name)
        try:
            return await self._client.metadata.find(_kind(definition), key)
        except KindNotServed as error:
            raise NotServed(str(error)) from error


def reference_tree(reference: OwnerReference) -> dict[str, Any]:
    """A reference as JSON."""
    tree: dict[str, Any] = {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "name": reference.name,
        "uid": reference.uid,
    }
    if reference.controller is not None:
        tree["controller"] = reference.controller
    if reference.block_owner_deletion is not None:
        tree["blockOwnerDeletion"] = reference.block_owner_deletion
    return tree


def _kind(definition: Definition) -> Kind:
    return Kind(definition.gvk.api_version, definition.gvk.kind)


def _key(node: Node) -> Key:
    return Key(node.metadata.namespace, node.metadata.name)
