"""The API server: definitions, a store, and the chain that every request passes.

Guarantees
- `handler` is the whole server as one function: what `InProcessTransport` takes, and what a `Listener` serves.
- Every request is answered: what is refused is a Status, what fails is a 500 and in the log, and neither takes anybody
  else's answer along.
- ``async with`` owns all tasks; when it ends, watches have ended and nothing is left behind.

Where neighbours plug in
- a kind's rules: a `Definition` with its own `Strategy`, found by `registry.builtin_definitions`, or given in
  ``definitions=``;
- authentication, authorization, audit, limits: a `ChainHandler` in ``chain=``, outermost first; the last step of every
  chain is the server itself;
- further paths: a `Route` in ``routes=``, asked in order about every request that is not about a resource, until one
  answers; those of discovery, OpenAPI, version and health come last;
- admission: a `Plugin` in ``admission=``, after `NamespaceLifecycle` and `PodClasses`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self, TypeAlias

from steersman.aio import Supervisor
from steersman.apiserver.admission import Admission, NamespaceLifecycle, Plugin
from steersman.apiserver.answers import answer_refusal, page_not_found
from steersman.apiserver.compaction import compact_for_ever
from steersman.apiserver.context import Limits, VerbContext
from steersman.apiserver.discovery import discovery_routes, feed_check, storage_check
from steersman.apiserver.errors import Refused, internal, no_such_resource
from steersman.apiserver.registry import Definition, Registry, builtin_definitions, custom_definition
from steersman.apiserver.registry.builtin.pod_admission import PodClasses
from steersman.apiserver.request import ChainHandler, Next, ServerRequest
from steersman.apiserver.storage import MemoryStorage, Storage, StorageError
from steersman.apiserver.system_namespaces import create_system_namespaces
from steersman.apiserver.verbs import perform
from steersman.apiserver.watching import Feed
from steersman.apiserver.watching.feed import HISTORY
from steersman.objects import GroupVersion, Object
from steersman.transport import Handler, ServerResponse
from steersman.wire import Request

_log = logging.getLogger("steersman.apiserver")

#: Answers a request that is about a path; None if it is not about this one.
Route: TypeAlias = Callable[[ServerRequest], Awaitable[ServerResponse | None]]


class ApiServer:
    """A Kubernetes API server in this process: ``async with ApiServer(resources=[Site]) as server: ...``.

    ``kinds`` are the built-in group-versions to serve, all of them unless told otherwise; ``resources`` are `Resource`
    classes; ``definitions`` are served as they are, in place of others of the same name. Without a ``storage`` objects
    live as long as the server.
    """

    def __init__(
        self,
        *,
        kinds: Iterable[GroupVersion | str] | None = None,
        resources: Iterable[type[Object]] = (),
        definitions: Iterable[Definition] = (),
        storage: Storage | None = None,
        chain: Sequence[ChainHandler] = (),
        routes: Sequence[Route] = (),
        admission: Sequence[Plugin] = (),
        limits: Limits | None = None,
        history: int = HISTORY,
    ) -> None:
        self.registry = Registry(builtin_definitions(_group_versions(kinds)))
        for cls in resources:
            self.registry.add(custom_definition(cls))
        for definition in definitions:
            self.registry.add(definition)
        own = MemoryStorage() if storage is None else None
        self._own_storage = own
        self.storage: Storage = own if own is not None else storage  # type: ignore[assignment]
        self.limits = limits or Limits()
        self.feed = Feed(self.storage, history=history)
        has_namespaces = self.registry.any_version("", "namespaces") is not None
        self.admission = Admission([*([NamespaceLifecycle()] if has_namespaces else []), PodClasses(), *admission])
        #: Handlers that every request passes, outermost first.
        self.chain: list[ChainHandler] = list(chain)
        #: Who answers requests that are not about resources, in order.
        self.routes: list[Route] = [
            *routes,
            *discovery_routes(
                self.registry, alive=[storage_check(self.storage)], ready=[feed_check(self.storage, self.feed)]
            ),
        ]
        self._contexts: dict[tuple[str, str, str], VerbContext] = {}
        self._contexts_of = -1
        self._passes: Next | None = None
        self._stack: AsyncExitStack | None = None

    # life

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise RuntimeError("the server runs already")
        stack = AsyncExitStack()
        try:
            if self._own_storage is not None:
                await stack.enter_async_context(self._own_storage)
            await self.feed.begin()
            tasks = await stack.enter_async_context(Supervisor())
            stack.callback(tasks.cancel)
            stack.callback(self.feed.end)
            tasks.start(self.feed.run(), name="api server: feed")
            tasks.start(compact_for_ever(self.storage), name="api server: compaction")
            self._passes = self._assembled()
            await create_system_namespaces(self)
        except BaseException:
            await stack.aclose()
            raise
        self._stack = stack
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._stack, self._passes = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    # requests

    @property
    def handler(self) -> Handler:
        """The server as one function."""
        return self.handle

    async def handle(self, wire: Request) -> ServerResponse:
        """Answer a request."""
        request = ServerRequest(wire)
        passes = self._passes
        if passes is None:
            return answer_refusal(request, internal("the server does not run"))
        try:
            reply = await passes(request)
        except Refused as refused:
            reply = answer_refusal(request, refused)
        except StorageError as error:
            reply = answer_refusal(request, internal(str(error)))
        except Exception:  # noqa: BLE001 - our own mistake is one request's answer, not the end of the server
            _log.exception("the server failed to answer %s %s", wire.method, wire.path)
            reply = answer_refusal(request, internal("the request could not be served; the server's log says more"))
        if wire.method == "HEAD" and isinstance(reply.body, bytes):
            reply.body = b""
        return reply

    async def forget(self) -> None:
        """Let history begin now, as after a restart: older revisions can be neither listed nor watched from."""
        revision = await self.storage.revision()
        await self.storage.compact(revision)
        self.feed.forget(revision)

    def context(self, definition: Definition) -> VerbContext:
        """What verbs need to work on a resource."""
        if self._contexts_of != self.registry.revision:
            self._contexts.clear()
            self._contexts_of = self.registry.revision
        key = (definition.gvk.group, definition.gvk.version, definition.resource)
        found = self._contexts.get(key)
        if found is None:
            found = self._contexts[key] = VerbContext(
                definition,
                registry=self.registry,
                storage=self.storage,
                feed=self.feed,
                admission=self.admission,
                limits=self.limits,
            )
        return found

    def _assembled(self) -> Next:
        """The chain as one function, its last step first."""
        step: Next = self._route
        for handler in reversed(self.chain):
            step = _linked(handler, step)
        return step

    async def _route(self, request: ServerRequest) -> ServerResponse:
        info = request.info
        if info.is_resource:
            definition = self.registry.find(info.group, info.version, info.resource)
            if definition is not None:
                return await perform(self.context(definition), request)
            if self.registry.has_group_version(info.group, info.version):
                raise no_such_resource()
        for route in self.routes:
            answered = await route(request)
            if answered is not None:
                return answered
        if self._is_below_group_version(info.path):
            raise no_such_resource()
        return page_not_found()

    def _is_below_group_version(self, path: str) -> bool:
        """Whether a path that is no resource's stands where those of a served group-version do."""
        match path.split("/"):
            case ["", "api", version, _, *_]:
                return self.registry.has_group_version("", version)
            case ["", "apis", group, version, _, *_]:
                return self.registry.has_group_version(group, version)
            case _:
                return False


def _linked(handler: ChainHandler, after: Next) -> Next:
    async def step(request: ServerRequest) -> ServerResponse:
        return await handler(request, after)

    return step


def _group_versions(kinds: Iterable[GroupVersion | str] | None) -> list[GroupVersion] | None:
    if kinds is None:
        return None
    return [GroupVersion.parse(each) if isinstance(each, str) else each for each in kinds]
