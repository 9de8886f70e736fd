"""The embedded server of the shards benchmark: ``python -m bench.shards_server FOLDER [gate]``.

It writes ``FOLDER/kubeconfig``, and in ``FOLDER/record`` each write as `bench.shards_audit.Write`. It prints ``serves`` when it does.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path

import msgspec

from bench.shards_audit import Write
from steersman.apiserver import NextHandler, ServerRequest
from steersman.controlplane import ControlPlane
from steersman.transport import ServerResponse

_READS = {"get", "list", "watch"}


class Recorder:
    """A handler of the server's chain that records writes when they are answered."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    async def __call__(self, request: ServerRequest, next_: NextHandler) -> ServerResponse:
        """Answer a request, and record it."""
        info = request.info
        if not info.is_resource or info.verb in _READS:
            return await next_(request)
        received, code = time.time(), 500
        try:
            reply = await next_(request)
            code = reply.status
        finally:
            self._record(request, received, code)
        return reply

    def _record(self, request: ServerRequest, received: float, code: int) -> None:
        info = request.info
        body = None
        if request.wire.method in {"POST", "PUT"} and info.resource in {"configmaps", "leases"} and request.wire.body:
            body = msgspec.json.decode(request.wire.body)
        write = Write(
            user=request.wire.header("User-Agent") or "",
            resource=info.resource,
            namespace=info.namespace,
            name=info.name or (body or {}).get("metadata", {}).get("name", ""),
            received=received,
            completed=time.time(),
            code=code,
            body=body,
        )
        self._file.write(msgspec.json.encode(write) + b"\n")


async def serve(folder: Path, *, gate: bool) -> None:
    """Serve until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    plane = ControlPlane(
        controllers=[],
        port=0,
        kubeconfig=folder / "kubeconfig",
        kinds=["v1", "coordination.k8s.io/v1", "events.k8s.io/v1"],
        feature_gates={"ShardedListAndWatch": gate},
    )
    plane.server.chain.append(Recorder(folder / "record"))
    async with plane:
        print("serves", flush=True)
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), gate="gate" in sys.argv[2:]))
