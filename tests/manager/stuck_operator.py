"""An operator whose reconciles do not end, each in its own way; its test sends it signals."""

import asyncio
import os
import time  # noqa: TID251 - to block with

from steersman import Context, Done, LeaderElection, Manager, Request
from steersman.kinds.core_v1 import ConfigMap
from steersman.webhooks import WebhookEndpoint, validates

NAMESPACE, MODE = os.environ["OPERATOR_NAMESPACE"], os.environ["OPERATOR_MODE"]


async def swallow() -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


async def reconcile(ctx: Context, request: Request) -> Done:
    if request.key.name != "stuck":
        return Done()
    ctx.logger.info("it is stuck from here on")
    match MODE:
        case "swallow":
            await swallow()
        case "block":
            time.sleep(3600)  # noqa: ASYNC251 - the very mistake
        case "thread":
            await asyncio.to_thread(time.sleep, 3600)
        case "long":
            await asyncio.sleep(3600)
    return Done()


election = LeaderElection("stuck", namespace=NAMESPACE, identity="us", lease=6.0, renew=4.0, retry=0.5)
manager = Manager(name="stuck", leader=election, namespaces=(NAMESPACE,), grace=float(os.environ["OPERATOR_GRACE"]))
manager.controller(ConfigMap, name="stuck").run_with(reconcile)

if MODE == "webhooks":
    manager.webhook_endpoint = WebhookEndpoint(service=f"{NAMESPACE}/stuck", port=0, leaving=6.0)

    @validates(ConfigMap)
    def accept(given: ConfigMap) -> None: ...

    manager.add(accept)
