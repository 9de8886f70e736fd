# ruff: noqa: T201 - it tells the test how far it is
"""A control plane that a test kills: it starts, stops and restarts process trees of every kind, for ever.

Arguments: the folder of its state, which also marks its processes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from workloads.plane import workloads_plane

from steersman.objects import Key
from steersman.workloads.kinds import (
    EnvVar,
    Executable,
    ExecutableReplicaSet,
    ProcessAdditions,
    ReplicaSetAdditions,
    RestartPolicy,
)
from steersman.workloads.processes import PersistentProcessFolder, ZygoteRunner

SUBREAPER = """
import ctypes, os, signal, time
ctypes.CDLL(None).prctl(36, 1)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if not os.fork():
    os.setsid()
    if not os.fork():
        time.sleep(300)
    os._exit(0)
time.sleep(300)
"""
#: Listens at a port, which it writes down, in a daemon that ignores SIGTERM.
SERVER = """
import os, signal, socket, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
server = socket.create_server(("127.0.0.1", 0))
open(f"{sys.argv[1]}/port-{server.getsockname()[1]}", "w").close()
if not os.fork():
    os.setsid()
    time.sleep(300)
time.sleep(300)
"""
TREES = {
    "forks": ["sh", "-c", "for i in 1 2 3; do (sleep 300 & sleep 300) & done; wait"],
    "daemon": ["sh", "-c", "(setsid sh -c 'sleep 300 & sleep 300' &); sleep 300"],
    "stubborn": [
        "sh",
        "-c",
        "(setsid sh -c 'trap \"\" TERM; sleep 300; sleep 300' &); trap '' TERM; sleep 300; sleep 300",
    ],
    "subreaper": [sys.executable, "-I", "-S", "-c", SUBREAPER],
    "server": [sys.executable, "-I", "-S", "-c", SERVER, sys.argv[1] if sys.argv[1:] else ""],
    "spawner": ["sh", "-c", "trap '' TERM; while :; do (setsid sleep 300 &); sleep 0.05; done"],
    "short": ["sh", "-c", "(setsid sleep 300 &); sleep 0.1; exit 1"],
}
STOP = ProcessAdditions(stop_timeout="2s")
RESTART = ReplicaSetAdditions(restart=RestartPolicy(policy="Always", delay="10ms", maximum_delay="10ms"))


async def main(folder: Path) -> None:
    env = [EnvVar(name="MARK", value=str(folder))]
    store = PersistentProcessFolder(folder / "persistent")
    ambient = {"PATH": os.environ["PATH"]}
    async with ZygoteRunner() as runner, workloads_plane(folder, runner, persistent=store, ambient=ambient) as plane:
        kept = {"executable_path": "sleep", "args": ["301"], "env": [EnvVar(name="KEPT", value=str(folder))]}
        await plane.executable("kept", mode="persistent", **kept)
        await plane.until_state("kept", "Running")
        print("up", runner.pid, flush=True)
        number = 0
        while True:
            number += 1
            for name, (program, *args) in TREES.items():
                values = {"executable_path": program, "args": args, "env": env}
                if name == "short":
                    await plane.replica_set(f"{name}-{number}", added=RESTART, process=STOP, replicas=2, **values)
                else:
                    await plane.executable(f"{name}-{number}", added=STOP, **values)
            for name in TREES:
                kind = ExecutableReplicaSet if name == "short" else Executable
                if number > 1:
                    await plane.client.delete(kind, Key("", f"{name}-{number - 1}"))
            print("round", number, flush=True)
            await asyncio.sleep(0.4)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
