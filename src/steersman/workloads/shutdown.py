"""The end of a developer control plane: the order of deletion, and the document ``/admin/execution``.

Guarantees
- No new object is created once the cleanup begins.
- An object is deleted only when all objects that need it are gone: see `cleanup`.
- The cleanup ends within its budget, and names each object that is left, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from steersman.aio import Supervisor
from steersman.client import Client
from steersman.controlplane import ControlPlane, PathRequest
from steersman.errors import ApiError, ApiStatus, Invalid, MethodNotAllowed
from steersman.workloads.cleanup import BUDGET, Sentences, delete_all

REFUSAL: Final = "the control plane is stopping: it creates no new objects"

Status = Literal["Running", "CleaningResources", "CleanupComplete", "Stopping"]
Cleanup = Literal["Full", "None"]
#: The status after a request, by the status before it and the requested one.
TRANSITIONS: Final[Mapping[tuple[Status, Status], Status]] = {
    ("Running", "CleaningResources"): "CleaningResources",
    ("Running", "Stopping"): "Stopping",
    ("CleaningResources", "CleaningResources"): "CleaningResources",
    ("CleaningResources", "Stopping"): "Stopping",
    # The requested step lies behind already.
    ("CleanupComplete", "CleaningResources"): "CleanupComplete",
    ("CleanupComplete", "Stopping"): "Stopping",
    ("Stopping", "CleaningResources"): "Stopping",
    ("Stopping", "Stopping"): "Stopping",
}


class _Patch(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    status: Literal["CleaningResources", "Stopping"]
    shutdown_resource_cleanup: Cleanup | None = None


class Shutdown:
    """The steps of the end: answers ``/admin/execution``, and deletes all objects once. Call `begin` first."""

    def __init__(self, *, budget: float = BUDGET) -> None:
        self.status: Status = "Running"
        self.cleanup: Cleanup = "Full"
        self._sentences: Sentences = list
        #: Whether the server ends after the cleanup, and every object with it; known once the cleanup begins.
        self.is_last = False
        #: Set when the control plane must end.
        self.stopping = asyncio.Event()
        self._budget = budget
        self._plane: ControlPlane | None = None
        self._tasks: Supervisor | None = None
        self._cleaned: asyncio.Task[None] | None = None

    def begin(self, plane: ControlPlane, tasks: Supervisor) -> None:
        """Set the control plane and the owner of the cleanup's task."""
        self._plane, self._tasks = plane, tasks

    @property
    def blocking(self) -> list[str]:
        """What still keeps the cleanup from its end, a sentence for each object."""
        return self._sentences()

    async def answer(self, request: PathRequest) -> dict[str, Any]:
        """Answer a GET or a PATCH of ``/admin/execution``."""
        if request.method == "PATCH":
            self._patch(request.body)
        elif request.method != "GET":
            raise MethodNotAllowed(_status(405, "MethodNotAllowed", "use GET or PATCH for /admin/execution"))
        return {
            "status": self.status,
            "shutdownResourceCleanup": self.cleanup,
            "steersman": {"blocking": self.blocking},
        }

    def _patch(self, body: bytes) -> None:
        try:
            patch = msgspec.json.decode(body, type=_Patch)
        except msgspec.MsgspecError as error:
            text = f'the patch must be {{"status": "CleaningResources"}} or {{"status": "Stopping"}} ({error})'
            raise Invalid(_status(422, "Invalid", text)) from None
        wanted = patch.shutdown_resource_cleanup
        if wanted not in {None, "None", self.cleanup} and self.status != "Running":
            text = "shutdownResourceCleanup cannot change once the cleanup has begun"
            raise Invalid(_status(422, "Invalid", text))
        if self.status == "Running":
            self.cleanup = wanted or "Full"
        self.request(patch.status)

    def request(self, wanted: Literal["CleaningResources", "Stopping"]) -> None:
        """Take the next step toward the end."""
        self.status = TRANSITIONS[self.status, wanted]
        assert self._plane is not None
        self._plane.refuse_creates(REFUSAL)
        if self.status == "CleaningResources" and self.cleanup == "Full":
            self._start()
        elif self.status == "Stopping":
            self.stopping.set()

    async def finish(self) -> None:
        """Delete all objects, unless that was done or is not wanted. Returns after the budget at the latest."""
        self.request("Stopping")
        if self.cleanup == "Full":
            await asyncio.wait((self._start(),))

    def _start(self) -> asyncio.Task[None]:
        if self._cleaned is None:
            assert self._plane is not None
            assert self._tasks is not None
            self.is_last = self.status == "Stopping"
            self._cleaned = self._tasks.start(self._clean(self._plane.client), name="shutdown: cleanup")
        return self._cleaned

    async def _clean(self, client: Client) -> None:
        try:
            left = await delete_all(client, budget=self._budget, on_blocking=self._set_sentences, is_last=self.is_last)
        except ApiError as error:
            left = [f"the cleanup failed: {error}"]
        self._set_sentences(lambda: left)
        if self.status == "CleaningResources":
            self.status = "CleanupComplete"

    def _set_sentences(self, sentences: Sentences) -> None:
        self._sentences = sentences


def _status(code: int, reason: str, message: str) -> ApiStatus:
    return ApiStatus(status="Failure", code=code, reason=reason, message=message)
