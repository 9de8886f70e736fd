"""The subresource ``log`` of Executables, Containers and ContainerExecs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Final

from steersman.client import Client
from steersman.controlplane import CustomSubresource, SubresourceRequest
from steersman.errors import ApiStatus, BadRequest
from steersman.objects import Kind, Object
from steersman.workloads.kinds import Container, ContainerExec, Executable
from steersman.workloads.logs import InvalidLogOptions, LogOptions, read_log, read_options
from steersman.workloads.system_log import system_log_path

#: The fields of the status that name a file, by source.
_FIELDS: Final[Mapping[str, str]] = {
    "stdout": "stdOutFile",
    "stderr": "stdErrFile",
    "startup_stdout": "startupStdOutFile",
    "startup_stderr": "startupStdErrFile",
}
#: Seconds between two looks at an object without a file.
_LOOK: Final = 0.1
#: The maximum seconds between two reads of a silent log: views follow all streams at once.
_REST: Final = 1.0
#: States after which a workload writes nothing more.
_ENDED: Final = frozenset({"Finished", "Terminated", "FailedToStart", "Exited"})


class Logs:
    """Answers requests for ``log``. Set `client` before the first request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.client: Client | None = None

    def subresources(self) -> list[CustomSubresource]:
        """The subresource of each kind that has output."""
        return [_Kind(self, kind).subresource() for kind in (Executable, Container, ContainerExec)]

    def path(self, obj: Mapping[str, Any], source: str) -> str:
        """The file of a source; empty while there is none."""
        if source == "system":
            return str(system_log_path(self._folder, obj["metadata"]))
        status: Mapping[str, Any] = obj.get("status") or {}
        added: Mapping[str, Any] = status.get("steersman") or {}
        name = _FIELDS[source]
        return status.get(name) or added.get(name) or ""


class _Kind:
    def __init__(self, logs: Logs, kind: type[Object]) -> None:
        self._logs = logs
        self._kind = kind

    def subresource(self) -> CustomSubresource:
        return CustomSubresource(kind=self._kind, name="log", handler=self.answer)

    async def answer(self, request: SubresourceRequest) -> AsyncGenerator[bytes]:
        try:
            options = read_options(request.query)
        except InvalidLogOptions as error:
            raise _bad_request(str(error)) from None
        kind = self._kind.__name__
        if options.source.startswith("startup_") and self._kind is not Container:
            raise _bad_request(f"source {options.source} exists for Containers alone; {kind} has stdout and stderr")
        if "deletionTimestamp" in request.obj["metadata"]:
            raise _bad_request(f"{kind} {request.name} is being deleted, with its output")
        return self._read(request.obj, options)

    async def _read(self, obj: dict[str, Any], options: LogOptions) -> AsyncGenerator[bytes]:
        """Wait for the file of a follower, and read it."""
        latest = obj
        loop, wait, due = asyncio.get_running_loop(), _LOOK, 0.0

        async def has_ended() -> bool:
            nonlocal latest, wait, due
            if loop.time() < due:
                return False
            wait = min(wait * 1.5, _REST)
            due = loop.time() + wait
            found = await self._latest(obj)
            latest = found or latest
            return found is None or _state(found) in _ENDED

        ended = not options.follow
        while not (path := self._logs.path(latest, options.source)) and not ended:
            ended = await has_ended()
            if not ended:
                await asyncio.sleep(_LOOK)
        if path := path or self._logs.path(latest, options.source):
            async for piece in read_log(path, options, has_ended):
                yield piece

    async def _latest(self, obj: Mapping[str, Any]) -> dict[str, Any] | None:
        """The object as it is now; None if it is gone."""
        client, gvk = self._logs.client, self._kind.gvk()
        assert client is not None
        found = await client.find(Kind(gvk.api_version, gvk.kind), obj["metadata"]["name"])
        return found.tree if found is not None and found.tree["metadata"]["uid"] == obj["metadata"]["uid"] else None


def _state(obj: Mapping[str, Any]) -> str:
    status: Mapping[str, Any] = obj.get("status") or {}
    return status.get("state") or ""


def _bad_request(message: str) -> BadRequest:
    return BadRequest(ApiStatus(status="Failure", code=400, reason="BadRequest", message=message))
