"""The backend that all resources of a server share, and the context of a verb: one resource with that backend."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from steersman.aio import OwnedTasks
from steersman.apiserver.admission import Admission
from steersman.apiserver.documents import readable
from steersman.apiserver.feature_gates import FeatureGates
from steersman.apiserver.metrics import ServerMetrics
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.registry import ResourceRegistry
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Record, Storage
from steersman.apiserver.watching.feed import Feed
from steersman.apiserver.workers import Workers
from steersman.transport import ServerResponse

_T = TypeVar("_T")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and timeouts of the server: ``ApiServer(limits=Limits(body=1024 * 1024))``.

    ``body`` and ``object`` are in bytes, ``freshness``, ``watch`` and ``bookmarks`` in seconds. `RequestLimits` limits
    the number and duration of requests.
    """

    #: The largest body of a request.
    body: int = 3 * 1024 * 1024
    #: The largest stored object, given etcd's limit on a request.
    object: int = 1_572_864
    #: Seconds to wait for a revision that has not been seen yet.
    freshness: float = 3.0
    #: The minimum duration, in seconds, of a watch without a timeout; at most twice as long.
    watch: float = 1800.0
    #: Seconds between bookmarks.
    bookmarks: float = 60.0


class Backend:
    """What all resources of a server share; `context` gives it to the verbs of one resource."""

    def __init__(
        self,
        *,
        registry: ResourceRegistry,
        storage: Storage,
        feed: Feed,
        admission: Admission,
        limits: Limits,
        workers: Workers,
        metrics: ServerMetrics,
        features: FeatureGates,
    ) -> None:
        self.registry = registry
        self.storage = storage
        #: All changes of the store, by resource.
        self.feed = feed
        self.admission = admission
        self.limits = limits
        #: Threads for the computations of large requests.
        self.workers = workers
        self.metrics = metrics
        self.features = features
        #: Steps of requests that end even if the requests are cancelled.
        self.steps = OwnedTasks()
        self._contexts: dict[tuple[str, str, str], VerbContext] = {}
        self._contexts_of = -1

    def context(self, definition: Definition) -> VerbContext:
        """The context of verbs on a resource."""
        if self._contexts_of != self.registry.revision:
            self._contexts.clear()
            self._contexts_of = self.registry.revision
        key = (definition.gvk.group, definition.gvk.version, definition.resource)
        found = self._contexts.get(key)
        if found is None:
            found = self._contexts[key] = VerbContext(definition, self)
        return found


class _Failure(NamedTuple):
    error: Exception


async def _outcome(step: Coroutine[Any, Any, _T]) -> _T | _Failure:
    """The result of a step. Its error is a result too: the task of a cancelled request must not log it."""
    try:
        return await step
    except Exception as error:  # noqa: BLE001 - raised again for the request
        return _Failure(error)


class VerbContext:
    """One served resource, as verbs see it; also the surroundings of its strategy and of admission plugins."""

    __slots__ = (
        "_steps",
        "admission",
        "definition",
        "features",
        "feed",
        "limits",
        "metrics",
        "registry",
        "storage",
        "workers",
    )

    def __init__(self, definition: Definition, backend: Backend, *, admission: Admission | None = None) -> None:
        self.definition = definition
        self.registry = backend.registry
        self.storage = backend.storage
        self.feed = backend.feed
        self.admission = backend.admission if admission is None else admission
        self.limits = backend.limits
        self.workers = backend.workers
        self.metrics = backend.metrics
        self.features = backend.features
        self._steps = backend.steps

    async def readable(self, record: Record) -> Record:
        """A stored object in the version of the resource, as far as only a webhook can convert it."""
        conversion = self.definition.conversion
        if conversion is None or conversion.webhook is None:
            return record
        return (await conversion.webhook.readable([record]))[0]

    async def all_readable(self, records: list[Record]) -> list[Record]:
        """Like `readable`, for several objects."""
        return await readable(self.definition, records)

    async def make_storable(self, obj: Tree) -> None:
        """Change an object to the stored version, as far as only a webhook can convert it."""
        conversion = self.definition.conversion
        if conversion is not None and conversion.webhook is not None:
            await conversion.webhook.storable(obj)

    async def read(self, group: str, resource: str, namespace: str, name: str) -> Record | None:
        """A stored object of any kind; None if it is missing or the kind is not served."""
        definition = self.registry.any_version(group, resource)
        if definition is None:
            return None
        record, _ = await self.storage.get(definition.storage_key(namespace, name))
        return record

    async def finished(self, step: Coroutine[Any, Any, _T]) -> _T:
        """Await a step that ends even if the request is cancelled meanwhile."""
        outcome = self._steps.start(_outcome(step), name="api server: step of a request")
        result = await asyncio.shield(outcome)
        if isinstance(result, _Failure):
            raise result.error
        return result


#: Answers a request for a resource.
Verb: TypeAlias = Callable[[VerbContext, ServerRequest], Awaitable[ServerResponse]]
