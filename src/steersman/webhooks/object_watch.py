"""Follows one named object, and notifies of its changes.

Guarantees
- A change sets the event, also a change while the watch was interrupted: a new watch begins with the present state.
- It selects the object by name, so a rule of RBAC with its ``resourceNames`` is enough.
- It reads metadata alone: the content of a Secret stays on the server.
"""

from __future__ import annotations

import asyncio
import logging

from steersman.aio import Backoff, randomness
from steersman.client import Client
from steersman.errors import ApiError, Forbidden
from steersman.objects import Key, Kind

_log = logging.getLogger("steersman.webhooks")

#: Seconds after which the server ends a watch, and after which a silent one counts as broken.
_DURATION, _SILENCE = 240, 300.0
#: Seconds until the next attempt if the program lacks permission.
_DENIED = 60.0


async def watch_object(client: Client, kind: Kind, key: Key, changed: asyncio.Event) -> None:
    """Set ``changed`` whenever the object is created, changed or deleted, until cancelled."""
    backoff = Backoff(initial=0.5)
    logged = ""
    while True:
        delay = 0.5
        try:
            async with client.metadata.watch(
                kind,
                namespace=key.namespace or None,
                fields={"metadata.name": key.name},
                timeout_seconds=_DURATION,
                idle_timeout=_SILENCE,
            ) as events:
                async for _ in events:
                    changed.set()
                    backoff.reset()
        except ApiError as error:
            denied = isinstance(error, Forbidden)
            delay = _DENIED if denied else backoff.next_delay(randomness())
            if denied and logged != (logged := str(error)):
                _log.warning("webhooks: %s %s is checked every minute instead: %s", kind.kind, key, error)
        await asyncio.sleep(delay)
