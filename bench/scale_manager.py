"""The manager of the scale benchmark: a separate process that reports its cost.

``python -m bench.scale_manager KUBECONFIG OBJECTS [metadata]`` caches and reconciles the ConfigMaps of a namespace, or only
caches their metadata. It prints a `Stage` when it has reconciled all of them and rests. For every `Task` in its input it
prints ``ready``, waits for that many more reconciles, and prints another stage. It exits when its input ends.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec

from bench import memory
from bench.apiserver_objects import MANY
from bench.loop_turns import Pause, Pauses
from bench.patterns_counting import WATCH, Counting
from bench.patterns_operator import Runs, rested
from steersman import Client, Context, Done, Manager, ObjectMeta, Request
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.kinds.core_v1 import ConfigMap, Secret


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to wait for."""

    changes: int
    #: Whether a reconcile applies a Secret, or only reads.
    write: bool = False


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one stage; CPU is in seconds."""

    cpu: float
    reconciles: int
    requests: dict[str, int]
    pause: Pause
    memory: int
    peak: int
    #: CPU of the start until the process had connected, and from there until its first reconcile.
    connect: float = 0.0
    sync: float = 0.0


class Reconciler:
    """Reads the object; on request, also copies a value of it to a Secret."""

    def __init__(self, *, read: bool) -> None:
        self._read = read
        self.write = False
        #: The CPU clock at the first reconcile: everything is cached.
        self.began = 0.0

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Reconcile one ConfigMap."""
        self.began = self.began or time.process_time()
        if not self._read:
            return Done()
        settings = await ctx.client.get(ConfigMap, request.key)
        if self.write:
            metadata = ObjectMeta(name=request.key.name, namespace=request.key.namespace)
            value = (settings.data or {})["key-00"]
            await ctx.client.apply(Secret(metadata=metadata, string_data={"value": value}), owner=settings)
        return Done()


async def operate(kubeconfig: Path, objects: int, *, metadata_only: bool) -> None:
    """Run, and report each stage."""
    pauses, runs, counted, reconciler = Pauses(), Runs(), Counter[str](), Reconciler(read=not metadata_only)
    options = KindOptions(namespaces=(MANY,), metadata_only=metadata_only)
    manager = Manager(name="bench", namespaces=(MANY,), kinds={ConfigMap: options})
    manager.controller(ConfigMap, name="scale").owns(Secret).options(concurrency=16).run_with(reconciler)
    manager.on_reconcile(runs.note)
    tasks = iter(sys.stdin.readline, "")
    async with Client.connect(kubeconfig=kubeconfig, field_manager="bench") as client, Supervisor() as supervisor:
        counting = client.with_transport(lambda inner: Counting(inner, counted))
        pauses.take()
        connected = time.process_time()
        supervisor.start(manager.run(counting, signals=False), name="manager")
        expected, began = objects, 0.0
        while True:
            wanted = runs.count + expected
            await runs.until(lambda wanted=wanted: runs.count >= wanted)
            await rested(manager)
            cpu = time.process_time() - began
            pause = pauses.take()
            requests, failures = dict(counted), runs.failures
            gc.collect()
            gc.freeze()  # as `steersman run` does when the caches are full
            await asyncio.sleep(0.1)
            pauses.take()  # without that collection
            assert not failures, f"{failures} of {runs.count} reconciles failed"
            stage = Stage(
                cpu=cpu,
                reconciles=runs.count - wanted + expected,
                requests={name: count for name, count in requests.items() if name != WATCH},
                pause=pause,
                memory=memory.private(),
                peak=memory.peak(),
                connect=connected,
                sync=reconciler.began - connected,
            )
            print(msgspec.json.encode(stage).decode(), flush=True)
            line = await asyncio.to_thread(next, tasks, "")
            if not line:
                break
            task = msgspec.json.decode(line, type=Task)
            reconciler.write, expected = task.write, task.changes
            counted.clear()
            began = time.process_time()
            print("ready", flush=True)
        manager.stop()


if __name__ == "__main__":
    asyncio.run(operate(Path(sys.argv[1]), int(sys.argv[2]), metadata_only="metadata" in sys.argv[3:]))
