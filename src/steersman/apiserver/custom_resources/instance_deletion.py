"""Deletion of a definition: its instances are deleted first.

Guarantees
- Finalizers of instances are respected: the definition waits until they are removed.
- Failures are retried with the definition as it is then, and the condition reports them meanwhile.
- Once the definition is gone, or has lost its finalizer, nothing more is deleted: there may be another one with its name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from steersman.apiserver.admission import Admission
from steersman.apiserver.context import Backend, VerbContext
from steersman.apiserver.custom_resources.definitions import stored_definition
from steersman.apiserver.custom_resources.extensions import Extension
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.registry.crd.conditions import FINALIZER, is_true, set_condition
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import StorageError
from steersman.apiserver.verbs.delete import delete_object
from steersman.apiserver.verbs.options import DeleteOptions
from steersman.apiserver.webhooks import WebhookCaller
from steersman.wire import HttpRequest

_log = logging.getLogger("steersman.apiserver")

#: Seconds after which the condition reports remaining instances.
_PATIENCE: Final = 60.0
_RETRY: Final = 1.0

_WriteStatus = Callable[[Callable[[Tree], bool]], Awaitable[None]]


class InstanceDeletion:
    """The deletion of one definition's instances.

    ``current`` returns the definition as it is now; None once it does not wait any more.
    """

    def __init__(
        self,
        backend: Backend,
        current: Callable[[], Tree | None],
        write_status: _WriteStatus,
        extension: Extension,
        caller: WebhookCaller | None,
    ) -> None:
        self._backend = backend
        self._current = current
        self._write_status = write_status
        self._extension = extension
        self._caller = caller

    async def run(self) -> None:
        """Delete all instances, then the definition."""
        while (crd := self._current()) is not None:
            name: str = crd["metadata"]["name"]
            try:
                await self._tell("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
                if self._is_builtin(crd):
                    await self._release(
                        "OverlappingBuiltInResource", "instances overlap with built-in resources in storage"
                    )
                    return
                if not is_true(crd, "Established"):
                    await self._release("NeverEstablished", "resource was never established")
                    return
                if await self._delete_instances(crd):
                    await self._release("InstanceDeletionCompleted", "removed all instances")
                    return
                why = "could not confirm zero CustomResources remaining: context deadline exceeded"
                await self._tell("True", "InstanceDeletionCheck", why)
            except (RequestRejected, StorageError) as error:
                _log.warning("deletion of the instances of %s: %s; retrying soon", name, error)
            except Exception:  # noqa: BLE001 - our own mistake about one definition is not the end of the server
                _log.exception("the instances of %s could not be deleted; retrying soon", name)
            await asyncio.sleep(_RETRY)

    def _is_builtin(self, crd: Tree) -> bool:
        """Whether the objects belong to one of the server's own kinds."""
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        return any(
            not each.custom and (each.gvk.group, each.resource) == (group, plural) for each in self._backend.registry
        )

    async def _delete_instances(self, crd: Tree) -> bool:
        """Delete all instances. Returns whether none is left."""
        definition = stored_definition(crd, extension=self._extension, caller=self._caller)
        # kube-apiserver runs no admission here.
        context = VerbContext(definition, self._backend, admission=Admission())
        gvk = definition.gvk
        request = ServerRequest(HttpRequest("DELETE", f"/apis/{gvk.group}/{gvk.version}/{definition.resource}"))
        page = await self._backend.storage.list(definition.prefix)
        for record in page.records:
            parts = record.key.removeprefix(definition.prefix).split("/")
            namespace, name = (parts[0], parts[1]) if definition.namespaced else ("", parts[0])
            try:
                await delete_object(context, request, namespace, name, DeleteOptions())
            except RequestRejected as refused:
                if refused.status.code != 404:
                    raise
            # Other requests are answered between two deletions; one of them may end this one.
            await asyncio.sleep(0)
            if self._current() is None:
                return False
        return await self._are_gone(definition)

    async def _are_gone(self, definition: Definition) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE
        while True:
            window = self._backend.feed.window(definition.prefix)
            position = window.end
            page = await self._backend.storage.list(definition.prefix, limit=1)
            if not page.records:
                return True
            if loop.time() >= deadline or self._current() is None:
                return False
            # Not for long: after a gap in history no event reports the deletions.
            await window.wait(position, min(deadline, loop.time() + _RETRY), lambda: False)
            if window.closed:
                # The resource is served anew, and its changes are reported elsewhere.
                await asyncio.sleep(0)

    async def _tell(self, status: str, reason: str, message: str) -> None:
        def change(crd: Tree) -> bool:
            set_condition(crd, "Terminating", status, reason, message)
            return True

        await self._write_status(change)

    async def _release(self, reason: str, message: str) -> None:
        def change(crd: Tree) -> bool:
            set_condition(crd, "Terminating", "False", reason, message)
            metadata: Tree = crd["metadata"]
            left = [each for each in metadata.get("finalizers", ()) if each != FINALIZER]
            if left:
                metadata["finalizers"] = left
            else:
                metadata.pop("finalizers", None)
            return True

        await self._write_status(change)
