# ruff: noqa: T201, TID251 - what it prints, its test reads; its clock is the test's to set
"""One of several candidates: an operator that writes all the time while it leads, also from a task without an owner.

``candidate.py KUBECONFIG NAMESPACE IDENTITY [LEASE,RENEW,RETRY] [SECONDS BY WHICH ITS WALL CLOCK IS WRONG]``
"""

import asyncio
import logging
import os
import signal
import sys
import time
from datetime import UTC, datetime, timedelta

from steersman import Client, MergePatch, aio
from steersman.cache import KindOptions
from steersman.controller import Context, Done, Request, RequeueAfter
from steersman.errors import ApiError, NotLeading
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection, Manager


class WrongClock:
    def __init__(self, seconds: float) -> None:
        self._skew = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._skew

    def boottime(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)


class Writes:
    """Reconciles the ConfigMap ``tick`` by writing ``log``, again and again."""

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self.manager: Manager | None = None
        self._terms: set[object] = set()
        self._leaked: list[asyncio.Task[None]] = []

    async def reconcile(self, ctx: Context, request: Request) -> Done | RequeueAfter:
        if request.key.name != "tick":
            return Done()
        assert self.manager is not None
        (term,) = self.manager.controllers
        await self._write(ctx, "reconcile")
        if term not in self._terms:
            self._terms.add(term)
            self._leaked.append(asyncio.get_running_loop().create_task(self._for_ever(ctx)))
            print("leads", flush=True)
        return RequeueAfter(0.05)

    async def _write(self, ctx: Context, who: str) -> None:
        # the real time, whatever the clock of this process says: the test compares it with the server's
        sent = datetime.now(UTC).isoformat()
        patch = MergePatch({"data": {"by": self._identity, "who": who, "sent": sent}})
        await ctx.client.patch(ConfigMap, (ctx.request.key.namespace, "log"), patch)

    async def _for_ever(self, ctx: Context) -> None:
        while True:
            try:
                await self._write(ctx, "leaked")
            except NotLeading:
                print("refused", flush=True)
                return
            except ApiError:
                pass  # under way when the process was stopped, or the line was cut
            await asyncio.sleep(0.05)


async def main(kubeconfig: str, namespace: str, identity: str, times: str = "3,2,0.5", skew: str = "0") -> None:
    loop = asyncio.get_running_loop()
    # Suspended between two turns of its loop: no client can take back a request of which it is just writing the bytes.
    loop.add_signal_handler(signal.SIGUSR1, os.kill, os.getpid(), signal.SIGSTOP)
    aio.bind(loop, clock=WrongClock(float(skew)), seed=sum(identity.encode()))
    lease, renew, retry = (float(each) for each in times.split(","))
    election = LeaderElection("ship", namespace=namespace, identity=identity, lease=lease, renew=renew, retry=retry)
    async with Client.connect(
        kubeconfig=kubeconfig, namespace=namespace, field_manager="candidate", user_agent=identity
    ) as client:
        writes = Writes(identity)
        writes.manager = manager = Manager(
            client, leader=election, kinds={ConfigMap: KindOptions(namespaces=(namespace,))}, grace=5.0
        )
        manager.controller(ConfigMap).run_with(writes)
        print("runs", flush=True)
        await manager.run()
    print("ended", flush=True)


logging.basicConfig(level=logging.INFO, format="%(asctime)s.%(msecs)03d %(name)s %(message)s", datefmt="%H:%M:%S")
asyncio.run(main(*sys.argv[1:]))
