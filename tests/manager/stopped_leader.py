# ruff: noqa: T201 - what it prints, its test reads
"""A leader that its test stops with SIGSTOP: it writes all the time, also from a task that outlives the term."""

import asyncio
import sys

from steersman import Client, Key, MergePatch
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection, NotLeading, Term
from steersman.objects.errors import OutcomeUnknown


async def write_for_ever(term: Term, key: Key) -> None:
    while True:
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
        print("leading", flush=True)
        try:
            async with term:
                await asyncio.Event().wait()
        finally:
            await leaked
        print("lost", flush=True)


asyncio.run(main(*sys.argv[1:]))
