"""The API server of the developer control plane in a process of its own, for `bench.devserver`.

``python -m bench.devserver_ours PORT TOKEN KUBECONFIG`` prints the seconds that its imports took, and serves until its
input ends. SIGUSR1 frees what is garbage, so that memory can be measured.
"""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import asyncio  # noqa: E402 - the time of imports is a figure
import gc  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402

from steersman.controlplane import ControlPlane  # noqa: E402
from steersman.workloads.control_plane import _HISTORY, _HISTORY_BYTES, _validators  # noqa: E402 - the same server as in a session
from steersman.workloads.kinds import KINDS  # noqa: E402


async def main(port: int, token: str, kubeconfig: str) -> None:
    """Serve as the developer control plane does, with its garbage collector."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, gc.collect)
    async with ControlPlane(
        kinds=("v1 Event", "events.k8s.io/v1 Event"),
        resources=KINDS,
        controllers=("garbage-collector-controller",),
        validators=dict(_validators()),
        history=_HISTORY,
        history_bytes=_HISTORY_BYTES,
        port=port,
        token=token,
        kubeconfig=kubeconfig,
    ):
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    from steersman.transport import HttpListener  # noqa: F401 - imported on first use otherwise

    print(time.perf_counter() - BEGAN, flush=True)
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
