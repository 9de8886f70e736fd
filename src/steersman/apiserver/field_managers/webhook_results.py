"""Objects that a webhook converts while the managed fields of a write are computed.

The computation is pure and cannot wait. It raises `Unconverted` for an object that it needs in another version; the object is then
converted, and the computation runs again with the result.

Guarantees
- For each state of the stored object that a write is tried on, it asks the webhook once for each object and version, at most
  `MOST` times. However often others write in between, the write does not run out of conversions.
- If the webhook fails, the computation gets `NotConvertible`, as in kube-apiserver: an apply is rejected, and an update keeps all
  managed fields.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from steersman.apiserver.documents import copied
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.registry.conversion import WebhookConverter
from steersman.apiserver.registry.definition import Tree
from steersman.patches import NotConvertible

T = TypeVar("T")

#: Conversions for one attempt of a write. Managers of a few versions need a few each.
MOST: Final = 100


class Unconverted(Exception):
    """An object is needed in another version, which only the webhook can tell."""

    def __init__(self, tree: Tree, version: str) -> None:
        super().__init__(version)
        self.tree, self.version = tree, version


class WebhookResults:
    """The conversions of one write."""

    def __init__(self, webhook: WebhookConverter) -> None:
        self._webhook = webhook
        self._made: dict[tuple[str, bytes], Tree | str] = {}

    def converted(self, tree: Tree, version: str) -> Tree:
        """An object in another version. Raises `Unconverted` at first, and `NotConvertible` if the webhook failed."""
        made = self._made.get((version, msgspec.json.encode(tree)))
        if made is None:
            raise Unconverted(tree, version)
        if isinstance(made, str):
            raise NotConvertible(made)
        return copied(made)

    async def completed(self, compute: Callable[[], Awaitable[T]]) -> T:
        """The result of a computation that uses `converted`; it runs as often as it needs another conversion."""
        while True:
            try:
                return await compute()
            except Unconverted as needed:
                await self._convert(needed.tree, needed.version)

    def forget(self) -> None:
        """Begin the next attempt, on another state of the stored object: no earlier conversion fits it, and none counts."""
        self._made.clear()

    async def _convert(self, tree: Tree, version: str) -> None:
        key = (version, msgspec.json.encode(tree))
        if len(self._made) >= MOST:
            self._made[key] = f"the managed fields of this object need more than {MOST} conversions"
            return
        try:
            self._made[key] = await self._webhook.converted(copied(tree), version)
        except RequestRejected as refused:
            self._made[key] = refused.status.message


def results_for(conversion: Any) -> WebhookResults | None:
    """The conversions of a write of a resource with this conversion; None if no webhook converts it."""
    webhook: WebhookConverter | None = None if conversion is None else conversion.webhook
    return None if webhook is None else WebhookResults(webhook)
