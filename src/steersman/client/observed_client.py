"""A client that notifies observers of its writes, and may answer reads and applies from a cache.

Guarantees
- Every writing verb notifies its observers before it returns or raises (see `steersman.client.verbs.observers`).
- It owns nothing: the client it was made from closes the connections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, Self

from steersman.client.observed_session import ObservedSession
from steersman.client.results import ListOf, OperationResult
from steersman.client.verbs.observers import Before, CachedReads, Intents, WriteObserver, nothing_before
from steersman.client.verbs.prepared_apply import PreparedApply
from steersman.client.verbs.reads import AnyKind, KeyLike, ListSelection
from steersman.client.verbs.saves import AnyClient
from steersman.errors import DecodeError, KindNotServed
from steersman.objects import AnyObject


class ObservedClient(AnyClient):
    """Reads and writes objects of any kind, as `Client` does; made by `Client.observed`.

    With ``reads``, they answer `get` and `list`. Requests for a resource version or with field selectors, and those
    through `live`, go to the server.
    """

    def __init__(
        self,
        client: AnyClient,
        observers: Iterable[WriteObserver] = (),
        *,
        reads: CachedReads | None = None,
        before: Before = nothing_before,
        intents: Intents | None = None,
    ) -> None:
        # A client of the same package: sharing its internals is intended.
        session = ObservedSession(client._session, tuple(observers), before)  # noqa: SLF001
        super().__init__(session, client.discovery, namespace=client.namespace)
        self._reads = reads
        self._intents = intents
        self.metadata = client.metadata
        self._field_manager = client._field_manager  # noqa: SLF001
        self._formerly = client._formerly  # noqa: SLF001
        self._field_validation = client._field_validation  # noqa: SLF001
        self._validate = client._validate  # noqa: SLF001
        # Bindings are made once per kind, not once per client.
        self._bindings = client._bindings  # noqa: SLF001

    @property
    def live(self) -> Self:
        """The same client, without the cache: reads from the server and always sends applies."""
        if self._reads is None:
            return self
        live = copy(self)
        live._reads = None  # noqa: SLF001 - it is ourselves
        return live

    def _unobserved(self) -> Self:
        """The same client without cache and observers: for work that continues after the reconcile has ended."""
        client = copy(self)
        client._session = self._session.inner if isinstance(self._session, ObservedSession) else self._session  # noqa: SLF001 - it is ourselves
        client._reads = client._intents = None  # noqa: SLF001 - as above
        return client

    async def _get(self, kind: AnyKind, key: KeyLike, resource_version: str | None) -> Any:
        if self._reads is None or resource_version is not None:
            return await super()._get(kind, key, resource_version)
        try:
            binding = self._bound(kind) or await self._bind(kind)
        except KindNotServed:
            # The cache distinguishes a withdrawn kind, whose objects are gone, from one that was never served.
            return await self._reads.get(kind, key)
        return await self._reads.get(kind, self._key(binding, key))

    async def _list(self, kind: AnyKind, selection: ListSelection) -> ListOf[Any]:
        if self._reads is None or selection.keys() - {"namespace", "labels", "limit"}:
            return await super()._list(kind, selection)
        self._bound(kind)  # raises for an argument that is not a kind
        return await self._reads.list(kind, namespace=selection.get("namespace"), labels=selection.get("labels"))

    async def _create_or_write(
        self, obj: AnyObject, mutate: Callable[[AnyObject], None], write: Callable[[AnyObject], Any]
    ) -> OperationResult[AnyObject]:
        # A cache cannot decide whether to create: another writer's object may not have arrived yet.
        if self._reads is None:
            return await super()._create_or_write(obj, mutate, write)
        return await self.live._create_or_write(obj, mutate, write)  # noqa: SLF001 - it is ourselves

    def _known_apply(self, prepared: PreparedApply[AnyObject]) -> AnyObject | None:
        """The object, if the prepared apply would change nothing; None if it must be sent."""
        intents = self._intents
        if intents is None or self._reads is None or prepared.options.dry_run:
            return None
        raw = intents.unchanged(prepared.intent)
        if raw is None:
            return None
        try:
            return prepared.binding.decode(raw)
        except DecodeError:
            return None  # this type cannot decode the cached object: send the apply

    def _is_known_apply(self, prepared: PreparedApply[Any]) -> bool:
        """Whether the prepared apply would change nothing; for callers that do not need the object."""
        intents = self._intents
        if intents is None or self._reads is None or prepared.options.dry_run:
            return False
        return intents.unchanged(prepared.intent) is not None

    async def _send_apply(
        self, prepared: PreparedApply[AnyObject], *, resource_version: str = "", uid: str = ""
    ) -> AnyObject:
        """Send the prepared apply, and remember the server's result."""
        answer = await super()._send_apply(prepared, resource_version=resource_version, uid=uid)
        if self._intents is not None and not prepared.options.dry_run:
            self._intents.applied(prepared.intent, answer)
        return answer

    async def _apply(self, prepared: PreparedApply[AnyObject]) -> AnyObject:
        known = self._known_apply(prepared)
        return await self._send_apply(prepared) if known is None else known
