"""Composed writes: read, change and write in one call, sending nothing if nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from steersman.client.bindings import Attempt, Binding
from steersman.client.results import OperationResult
from steersman.client.retries import retry_on_conflict
from steersman.client.verbs.checks import check_constraints, check_whole
from steersman.client.verbs.reads import MetadataReader
from steersman.client.verbs.writes import Writer
from steersman.errors import AlreadyExists, NotFound
from steersman.objects import (
    AnyObject,
    Kind,
    Object,
    Unstructured,
    encode_any,
    has_status_subresource,
    same_json,
    tree_as_read,
)


class AnyClient(Writer):
    """Reads and writes objects of any kind: the verbs that `Client` and a reconcile's ``ctx.client`` have in common.

    ```python
    async def restart(client: AnyClient, deployment: Deployment) -> None:
        patch = MergePatch({"spec": {"template": {"metadata": {"annotations": {"restarted": str(now())}}}}})
        await client.patch(Deployment, deployment.key, patch)
    ```
    """

    #: The reading verbs, returning metadata alone.
    metadata: MetadataReader

    async def create_or_update(self, obj: AnyObject, mutate: Callable[[AnyObject], None]) -> OperationResult[AnyObject]:
        """Run ``mutate`` on the existing object and update it, or run it on ``obj`` and create that.

        Sends nothing if ``mutate`` changes nothing. Starts over after a conflict, or if another writer creates first.
        """

        async def write(current: AnyObject) -> AnyObject:
            return await self.update(current)

        return await self._create_or_write(obj, mutate, write)

    async def create_or_patch(self, obj: AnyObject, mutate: Callable[[AnyObject], None]) -> OperationResult[AnyObject]:
        """Like `create_or_update`, but an existing object gets a merge patch of the difference, without a lock."""

        async def write(current: AnyObject) -> AnyObject:
            return await self.patch_from(current, current)

        return await self._create_or_write(obj, mutate, write)

    async def _create_or_write(
        self, obj: AnyObject, mutate: Callable[[AnyObject], None], write: Callable[[AnyObject], Any]
    ) -> OperationResult[AnyObject]:
        kind: Any = Kind(obj.api_version, obj.kind) if isinstance(obj, Unstructured) else type(obj)
        mutated = False

        async def attempt() -> OperationResult[AnyObject]:
            nonlocal mutated
            try:
                current: AnyObject = await self.get(kind, obj.key)
            except NotFound:
                if not mutated:
                    mutate(obj)
                    mutated = True
                try:
                    return OperationResult("created", await self.create(obj))
                except AlreadyExists:
                    current = await self.get(kind, obj.key)
            mutate(current)
            if same_json(msgspec.json.decode(encode_any(current)), tree_as_read(current)):
                return OperationResult("unchanged", current)
            return OperationResult("updated", await write(current))

        return await retry_on_conflict(attempt)

    async def save(self, obj: AnyObject) -> OperationResult[AnyObject]:
        """Write the changes of an object that was read: the object, then its status, each only if it changed.

        The server ignores a status written with the object, and everything else written with the status; the first
        write also makes the second one's version stale. This call keeps both changes. It raises a conflict, without
        retrying.
        """
        before = tree_as_read(obj)
        if before is None:
            raise ValueError(f"{obj.kind} {obj.key} was not read from the server; call create() or apply() instead")
        wanted: dict[str, Any] = msgspec.json.decode(encode_any(obj))
        binding = await self._bind_object(obj)
        split = await self._has_status(binding, obj)
        changed = {name for name in wanted | before if not same_json(wanted.get(name), before.get(name))}
        status_changed, object_changed = "status" in changed, bool(changed - {"status"})
        saved = obj
        if object_changed or (status_changed and not split):
            key = self._key(binding, obj.key)
            tried = Attempt("update", binding.gvk, key)
            check_whole(obj, tried)
            if self._validate:
                check_constraints(obj, tried)
            saved = await self._send("update", binding, key, encode_any(obj), self._options())
        if status_changed and split:
            saved = await self._save_status(binding, saved, obj, wanted.get("status"))
        return OperationResult("updated" if object_changed or status_changed else "unchanged", saved)

    async def _has_status(self, binding: Binding[Any], obj: Object | Unstructured) -> bool:
        if isinstance(obj, Unstructured):
            described = await self.discovery.resource_of(binding.gvk)
            return any(subresource.name == "status" for subresource in described.subresources)
        return has_status_subresource(type(obj))

    async def _save_status(self, binding: Binding[Any], saved: Any, obj: Object | Unstructured, status: Any) -> Any:
        """Put the wanted status on top of the object as just saved."""
        tree: dict[str, Any] = msgspec.json.decode(encode_any(saved))
        if status is None:
            tree.pop("status", None)
        else:
            tree["status"] = status
        body, key = msgspec.json.encode(tree), self._key(binding, obj.key)
        return await self._send("update", binding, key, body, self._options(), subresource="status")
