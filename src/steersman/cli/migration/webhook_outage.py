"""Waits for a webhook that the server cannot call: its outage refuses no object.

Guarantees
- A request that fails because of such a webhook is repeated for a minute, with growing delays. Then its error is raised.
- The console names each such webhook once.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from steersman.aio import Backoff, randomness
from steersman.cli.files import say
from steersman.errors import InternalError
from steersman.telemetry import visible

T = TypeVar("T")

#: Seconds for which a webhook may be down.
_PATIENCE: Final = 60.0
#: A webhook of an object's conversion or admission whose call failed, in kube-apiserver's words.
_FAILED_CALL: Final = re.compile(r'\bwebhook\b.*: Post "([^"?]+)', re.DOTALL)


def unreachable_webhook(error: Exception) -> str:
    """The address of the webhook that the server could not call; empty for another error."""
    found = _FAILED_CALL.search(error.status.message) if isinstance(error, InternalError) else None
    return visible(found[1]) if found else ""


class WebhookOutages:
    """The webhooks that were down in one run of the command."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    async def outlast(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of ``call``, which is repeated while the server cannot call a webhook."""
        backoff = Backoff(initial=0.2, maximum=5.0, jitter=0.5)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE
        while True:
            try:
                return await call()
            except InternalError as error:
                webhook = unreachable_webhook(error)
                if not webhook or loop.time() > deadline:
                    raise
                if webhook not in self._said:
                    self._said.add(webhook)
                    say(f"the server cannot call the webhook {webhook}; retrying")
            await asyncio.sleep(backoff.next_delay(randomness()))
