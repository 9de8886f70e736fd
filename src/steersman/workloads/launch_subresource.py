"""The subresource ``launch`` of Executables: what a command beside the program starts with.

``steersman exec`` and ``steersman run`` read it. It comes from the record of the start, so from the spec, and never from the
running process, which can change whatever the kernel shows of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from steersman.client import Client
from steersman.controlplane import CustomSubresource, SubresourceRequest
from steersman.errors import ApiStatus, BadRequest
from steersman.workloads.controllers.executable_run import Run
from steersman.workloads.kinds import Executable
from steersman.workloads.world import World


class ProgramContext(msgspec.Struct, frozen=True):
    """The user, the working directory and the environment of a program; the values of variables are not masked."""

    env: Mapping[str, str]
    folder: str
    user: str = ""
    """As in `Launch`: ``uid:gid:group,group``; empty for the user of the control plane."""


def launch_subresource(world: World[Run]) -> CustomSubresource:
    """The subresource that answers with the `ProgramContext` of an Executable that was started."""

    async def answer(request: SubresourceRequest) -> bytes:
        run = world.peek(request.obj["metadata"]["uid"])
        if run is None or not run.folder:
            raise BadRequest(
                ApiStatus(
                    status="Failure",
                    code=400,
                    reason="BadRequest",
                    message=f"Executable {request.name} has not started: it has no environment yet",
                )
            )
        user = run.account.identity if run.account is not None else ""
        # Not by msgspec: a variable may have bytes that are not UTF-8.
        return json.dumps({"env": dict(run.env), "folder": run.folder, "user": user}).encode()

    return CustomSubresource(kind=Executable, name="launch", handler=answer, content_type="application/json")


async def read_context(client: Client, name: str) -> ProgramContext:
    """The user, working directory and environment that an Executable was started with."""
    gvr = Executable.gvr()
    answer = await client.request("GET", f"/apis/{gvr.group}/{gvr.version}/{gvr.resource}/{name}/launch")
    return msgspec.convert(json.loads(answer), ProgramContext)
