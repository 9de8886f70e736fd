"""Whether the API server selects shards: asked once, and again after a failure.

The question is a list of Leases in one namespace: every program with shards may list those of its replicas.

Guarantees
- A selector is sent only to a server that has just shown that it reads it as we do: the feature is alpha, and its text may
  change.
- A server that is overloaded or not ready has not answered: the error is raised, and the next use asks again.
- No result depends on the answer: what is stored is checked in any case. Behind one address may be several servers, with and
  without the feature.
- The log says which way is used, once for each change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from steersman.errors import ProtocolError, StatusError, TooManyRequests
from steersman.wire import (
    JSON,
    SHARD_GATE,
    HashRange,
    HttpRequest,
    ListOptions,
    ResourcePath,
    ShardSelector,
    split_list,
)

_log = logging.getLogger("steersman.client")

_EVERYTHING: Final = ShardSelector("uid", (HashRange(),))
#: How a server begins the message of its 500 for a selector that it cannot read.
_INVALID: Final = "invalid shard selector"
_FAILED: Final = 500


class ShardSupport:
    """What a client has learned of its server."""

    def __init__(self, namespace: str) -> None:
        #: Where the client may list Leases.
        self.namespace = namespace
        self._known: bool | None = None
        self._logged: bool | None = None
        self._asking = asyncio.Lock()

    async def ask(self, send: Callable[[HttpRequest], Awaitable[bytes]]) -> bool:
        """Whether the server selects shards. Raises if it cannot be reached, or cannot answer now."""
        async with self._asking:
            if self._known is None:
                problem = await self._problem(send)
                self._known = not problem
                self._report(problem)
            return self._known

    def forget(self) -> None:
        """Ask again before the next use: a request failed, and the next one may reach another server."""
        self._known = None

    def _report(self, problem: str) -> None:
        if self._known == self._logged:
            return
        self._logged = self._known
        if problem:
            words = (
                "the API server does not select shards (%s): reading all objects, and dropping those of other shards"
            )
            _log.info(words, problem)
        else:
            _log.info("the API server selects shards (feature gate %s)", SHARD_GATE)

    async def _problem(self, send: Callable[[HttpRequest], Awaitable[bytes]]) -> str:
        """Why the server is not known to select shards; empty if it does."""
        try:
            page = split_list(await send(self._question()))
        except (StatusError, ProtocolError) as error:
            if isinstance(error, StatusError) and _is_passing(error):
                raise
            return str(error).partition("\n")[0]
        if not page.shard_selector:
            return f"its feature gate {SHARD_GATE} is off"
        return "" if page.shard_selector == str(_EVERYTHING) else f"it reads the selector as {page.shard_selector:.200}"

    def _question(self) -> HttpRequest:
        # Only lists of built-in kinds tell their shard.
        leases = ResourcePath("coordination.k8s.io", "v1", "leases", self.namespace or None)
        query = ListOptions(limit=1, shards=_EVERYTHING).to_query()
        return HttpRequest("GET", leases.path, query, (("Accept", JSON),))


def _is_passing(error: StatusError) -> bool:
    """Whether a server that fails so may answer otherwise soon."""
    if isinstance(error, TooManyRequests):
        return True
    return error.status.code >= _FAILED and not error.status.message.startswith(_INVALID)
