# ruff: noqa: T201 - what it prints, its test reads
"""A leader that stands still when its test says so: it writes all the time, also from a task that outlives the term.

It stops itself, between two writes: a stop from outside may meet the microseconds between the last check and
the system call, which no client can close.
"""

import asyncio
import os
import signal
import sys

from steersman import Client, Key, MergePatch
from steersman.errors import NotLeading, OutcomeUnknown
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection, Term


async def write_for_ever(term: Term, key: Key) -> None:
    told_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, told_to_stop.set)
    print("leading", flush=True)
    while True:
        if told_to_stop.is_set():
            told_to_stop.clear()
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            await term.client.patch(ConfigMap, key, MergePatch({"data": {"writer": "the stopped one"}}))
        except NotLeading:
            print("refused", flush=True)
            return
        except OutcomeUnknown:
            pass  # under way when the process was stopped
        await asyncio.sleep(0.01)


async def main(kubeconfig: str, namespace: str) -> None:
    election = LeaderElection("ship", namespace=namespace, lease=3.0, renew=2.0, retry=0.5)
    async with Client.connect(kubeconfig=kubeconfig) as client, election.campaign(client) as campaign:
        term = await anext(campaign)
        leaked = asyncio.create_task(write_for_ever(term, Key(namespace, "log")))  # noqa: TID251 - it is to have no owner
        try:
            async with term:
                await asyncio.Event().wait()
        finally:
            await leaked
        print("lost", flush=True)


asyncio.run(main(*sys.argv[1:]))
