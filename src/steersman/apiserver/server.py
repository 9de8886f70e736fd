"""The API server: definitions, a store, and the chain that every request passes.

Guarantees
- `handler` is the whole server as one function: an `InProcessTransport` takes it, and an `HttpListener` serves it.
- Every request is answered: a rejection is a Status, a failure is a 500 and a log entry, and neither affects another
  request.
- Requests over a port are answered 401 unless a handler of the chain authenticates the sender.
- ``async with`` owns all tasks; at its end, all watches have ended and nothing is left behind.

Extension points
- A kind's rules: a `Definition` with its own `Strategy`, found by `registry.builtin_definitions`, or given in
  ``definitions=``.
- Access: ``authorizer=``, ``tokens=``, ``audit=``; or your own ``chain=`` of `ChainHandler`s, outermost first. The last
  step of every chain is the server itself.
- Further paths: `Route`s in ``routes=``, called in order for every request that does not concern a resource, until one
  answers. Those of discovery, OpenAPI, version and health come last.
- Admission: `Plugin`s in ``admission=``, after the server's own.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Self, Unpack

import msgspec

from steersman.aio import Supervisor
from steersman.apiserver.admission import (
    Admission,
    DefinitionLifecycle,
    Plugin,
    StoredPlugins,
    UnsupportedFeatures,
    builtin_plugins,
    chosen_plugins,
)
from steersman.apiserver.answers import answer_refusal, in_media_type, page_not_found
from steersman.apiserver.bootstrap import create_objects
from steersman.apiserver.chain import (
    AuditHook,
    Authentication,
    Authorizer,
    FlowClassifier,
    access_handlers,
    always_allow,
)
from steersman.apiserver.chain.impersonation import completed
from steersman.apiserver.context import Backend, Limits
from steersman.apiserver.custom_resources import (
    CustomResources,
    crds_of,
    extensions_of,
    install_crds,
    listed,
    unstored_definitions,
)
from steersman.apiserver.discovery import discovery_routes, feed_check, is_health_path, metrics_route, storage_check
from steersman.apiserver.errors import RequestRejected, internal, no_such_resource, unauthorized
from steersman.apiserver.feature_gates import FeatureGates
from steersman.apiserver.handlers import path_route
from steersman.apiserver.identity import IN_PROCESS, UNKNOWN, AccountTokens, User, request_peer
from steersman.apiserver.metrics import ServerMetrics
from steersman.apiserver.options import ServerOptions, builtin_kinds, check_names, chosen_authorizer, opened
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.request import ChainHandler, NextHandler, RequestInfo, Route, ServerRequest
from steersman.apiserver.storage import StorageError, compact_forever
from steersman.apiserver.verbs import perform
from steersman.apiserver.watching import Feed
from steersman.apiserver.watching.feed import HISTORY, HISTORY_BYTES
from steersman.apiserver.webhooks import StoredServices, WebhookCaller, WebhookCalls
from steersman.apiserver.workers import Workers
from steersman.transport import Handler, InProcessTransport, ServerResponse
from steersman.wire import HttpRequest

_log = logging.getLogger("steersman.apiserver")

#: The code for a request whose client disconnected before the response, as in proxies.
_CLIENT_LEFT = 499
_RBAC = "rbac.authorization.k8s.io"
#: The groups of the kinds that are questions about users.
_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class ApiServer:
    """A Kubernetes API server in this process.

    ```python
    async with ApiServer(resources=[Site]) as server, Client(server.transport()) as client:
        await client.create(Site(...))
    ```

    Kinds:

    - ``kinds`` are the built-in group-versions or kinds, such as ``["v1 Event", "apps/v1"]``; all by default.
    - ``resources`` are `Resource` classes, whose CustomResourceDefinitions exist from the start. Several classes of one
      kind are its versions.
    - ``definitions`` are served unchanged, in place of others.
    - ``conversions`` are functions in place of conversion webhooks, by CRD name: ``{"sites.web.example.com": fn}``.
      ``fn(obj, to_api_version)`` returns the object in that version.
    - ``validators`` are functions that find problems of custom kinds beyond their schemas: ``{Site: fn}``.
      ``fn(old, new)`` returns `FieldProblem`s, which become a 422. ``old`` is None for a new object.
    - ``subresources`` are `CustomSubresource`s, which functions of yours answer.

    Storage: ``storage`` is a folder's path or any `Storage`. By default objects are in memory, and gone with the
    server.

    Access: everything is allowed by default. ``authorizer="rbac"`` enforces Roles and bindings; an `Authorizer` of
    yours enforces your rules. ``tokens`` maps bearer tokens to users, and ``audit`` is called for every request.
    ``chain`` replaces all of that by your own handlers.

    Admission: ``admission`` are plugins, or functions, that change or reject writes. The server's own plugins have
    kube-apiserver's names. ``enable_admission_plugins=["ServiceAccount"]`` turns on the only one that is off by default,
    and ``disable_admission_plugins`` turns others off. The server also calls the webhooks of stored configurations.
    ``webhook_resolver(namespace, name, port)`` returns the host and port of a Service, by default one of its endpoints;
    ``webhook_caller`` replaces the calls themselves.

    ``paths`` are functions that answer further paths, and ``routes`` do so with full control. ``limits`` are sizes and
    times. ``history`` is how many changes of a resource a watch can go back, and ``history_bytes`` bounds the memory of
    old states, in the storage and for watches alike.

    ``feature_gates`` turns features on that are off by default, with kube-apiserver's names:
    ``{"ShardedListAndWatch": True}`` serves lists and watches of shards.
    """

    def __init__(self, **options: Unpack[ServerOptions]) -> None:
        check_names(options)
        authorizer = options.get("authorizer", always_allow)
        extensions = extensions_of(
            options.get("conversions") or {}, options.get("validators", {}), options.get("subresources", ())
        )
        self.registry = ResourceRegistry(builtin_kinds(options.get("kinds"), rbac=authorizer == "rbac"))
        resources = listed(options.get("resources", ()))
        self._crds = crds_of(resources, self.registry)
        history_bytes = options.get("history_bytes", HISTORY_BYTES)
        self.storage, self._own_storage = opened(options.get("storage"), history_bytes)
        self.feed = Feed(self.storage, history=options.get("history", HISTORY), history_bytes=history_bytes)
        #: Calls webhooks, unless ``webhook_caller`` does.
        self.webhooks = WebhookCalls(options.get("webhook_resolver") or StoredServices(self.storage))
        caller: WebhookCaller = options.get("webhook_caller") or self.webhooks
        features = FeatureGates.chosen(options.get("feature_gates", {}))
        #: The metrics that ``/metrics`` serves.
        self.metrics = ServerMetrics(features)
        workers = Workers()
        plugins = chosen_plugins(
            options.get("enable_admission_plugins", ()), options.get("disable_admission_plugins", ())
        )
        stored = StoredPlugins(self.storage, lambda: self._stored_plugins(plugins, caller, workers))
        self.admission = Admission(last=[stored], metrics=self.metrics)
        #: ResourceRegistry, store, feed, admission, limits and worker threads, for the verbs.
        self.backend = Backend(
            registry=self.registry,
            storage=self.storage,
            feed=self.feed,
            admission=self.admission,
            limits=options.get("limits") or Limits(),
            workers=workers,
            metrics=self.metrics,
            features=features,
        )
        #: Serves custom resources as their definitions are created, changed and deleted.
        self.custom_resources = CustomResources(self.backend, extensions, caller)
        if self.custom_resources.definition is None:
            for definition in unstored_definitions(self._crds, extensions, resources):
                self.registry.add(definition)
        #: Signs and reviews the tokens of service accounts.
        self.account_tokens = AccountTokens(self.storage)
        #: Handlers that every request passes, outermost first.
        self.chain: list[ChainHandler] = []
        self._creates_policy = authorizer == "rbac"
        chain, tokens, audit = options.get("chain"), options.get("tokens"), options.get("audit")
        if chain is None:
            self._check_access(chosen_authorizer(authorizer, self.storage), Authentication(tokens=tokens), audit)
        elif tokens is not None or audit is not None or authorizer is not always_allow:
            raise ValueError("your own chain= needs its own authorizer, tokens and audit: pass them to chain(...)")
        else:
            self.chain += chain
        for definition in options.get("definitions", ()):
            self.registry.add(definition)
        self._guard_roles()
        self.admission.add(*builtin_plugins(plugins, {each.resource for each in self.registry if not each.custom}))
        self.admission.add(UnsupportedFeatures(), DefinitionLifecycle(self.custom_resources))
        self.admission.add(*options.get("admission", ()))
        if "ResourceQuota" in plugins:
            self._count_quotas()
        #: Handlers of requests that do not concern resources, in order.
        self.routes: list[Route] = [
            *options.get("routes", ()),
            path_route(options.get("paths", {})),
            *self._own_routes(),
        ]
        self._passes: NextHandler | None = None
        self._stack: AsyncExitStack | None = None
        self._told_of_unknown = False

    def _own_routes(self) -> list[Route]:
        """Metrics, discovery, OpenAPI, version and health."""
        storage = self.storage
        ready = [storage_check(storage, "etcd-readiness"), feed_check(storage, self.feed)]
        return [
            metrics_route(self.metrics, self.registry, storage),
            *discovery_routes(self.registry, self.account_tokens, alive=[storage_check(storage)], ready=ready),
        ]

    def _guard_roles(self) -> None:
        """Keep users from granting what they do not have, if any kind of RBAC is served."""
        if any(each.gvk.group == _RBAC for each in self.registry):
            from steersman.apiserver.chain.escalation_plugin import EscalationPlugin  # noqa: PLC0415 - only needed for roles

            self.admission.add_guard(EscalationPlugin(self.storage))

    def _count_quotas(self) -> None:
        """Enforce ResourceQuotas, if they are served."""
        if self.registry.any_version("", "resourcequotas") is not None:
            from steersman.apiserver.quotas import ResourceQuotas  # noqa: PLC0415 - only needed for quotas

            self.admission.add_last(ResourceQuotas(self.backend))

    def _stored_plugins(self, names: frozenset[str], caller: WebhookCaller, workers: Workers) -> list[Plugin]:
        """The plugins that stored objects configure."""
        from steersman.apiserver.policies import stored_plugins  # noqa: PLC0415 - most servers have no such objects

        return stored_plugins(names, self.storage, self.registry, caller, workers)

    # start and stop

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise RuntimeError("this ApiServer is already running; make another ApiServer for a second server")
        stack = AsyncExitStack()
        try:
            if self._own_storage is not None:
                await stack.enter_async_context(self._own_storage)
            await create_objects(self.registry, self.storage, policy=self._creates_policy)
            await self.feed.begin()
            await self.account_tokens.load()
            stack.callback(self.backend.workers.close)
            stack.push_async_callback(self.backend.steps.close)
            stack.push_async_callback(self.webhooks.close)
            tasks = await stack.enter_async_context(Supervisor())
            stack.callback(tasks.cancel)
            stack.callback(self.feed.end)
            tasks.start(self.feed.run(), name="api server: feed")
            tasks.start(compact_forever(self.storage), name="api server: compaction")
            self._passes = self._assembled()
            if self.custom_resources.definition is not None:
                await install_crds(self.backend, self._crds)
                await self.custom_resources.begin(tasks)
                tasks.start(self.custom_resources.run(), name="api server: custom resources")
        except BaseException:
            await stack.aclose()
            raise
        self._stack = stack
        return self

    async def __aexit__(self, *_: object) -> None:
        stack, self._stack, self._passes = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    # requests

    @property
    def handler(self) -> Handler:
        """The server as one function."""
        return self.handle

    def transport(self, user: User | str | None = None) -> InProcessTransport:
        """A transport to this server without a socket: ``Client(server.transport())``.

        Requests are sent as the administrator, or as ``user``: a `User`, or a user name as in RBAC, such as
        ``system:serviceaccount:shop:site-operator``, which gets the groups of its sort.
        """
        if user is None:
            return InProcessTransport(self.handle)
        sender = completed(User(name=user) if isinstance(user, str) else user)

        async def handle(wire: HttpRequest) -> ServerResponse:
            return await self.handle(wire, user=sender)

        return InProcessTransport(handle)

    async def handle(self, wire: HttpRequest, *, user: User | None = None) -> ServerResponse:
        """Answer a request. ``user`` is its sender, unless its own credentials say otherwise."""
        sender = user or (IN_PROCESS if request_peer() is None else UNKNOWN)
        request = ServerRequest(wire, user=sender, accounts=self.account_tokens)
        passes = self._passes
        if passes is None:
            return answer_refusal(
                request, internal("the API server in this process is not running; use it within its 'async with'")
            )
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.metrics.begin(wire)
        status = _CLIENT_LEFT
        try:
            reply = await self._answered(passes, request)
            status = reply.status
        finally:
            info = request.info
            is_known = self._is_served(info) if info.is_resource else is_health_path(wire.path)
            self.metrics.end(request, status, loop.time() - began, is_known=is_known)
        if request.response_headers:
            # Copy the response: a handler may return one that it reuses.
            headers = (*reply.headers, *request.response_headers)
            reply = msgspec.structs.replace(reply, headers=headers)
        if wire.method == "HEAD" and isinstance(reply.body, bytes):
            reply.body = b""
        return reply

    def _is_served(self, info: RequestInfo) -> bool:
        definition = self.registry.find(info.group, info.version, info.resource)
        own = info.subresource
        return definition is not None and (not own or own in {"status", "scale"} or own in definition.subresources)

    async def _answered(self, passes: NextHandler, request: ServerRequest) -> ServerResponse:
        wire = request.wire
        try:
            return await passes(request)
        except RequestRejected as refused:
            return answer_refusal(request, refused)
        except StorageError as error:
            return answer_refusal(request, internal(str(error)))
        except Exception:  # noqa: BLE001 - our own mistake is one request's answer, not the end of the server
            _log.exception("the server failed to answer %s %s", wire.method, wire.path)
            return answer_refusal(request, internal("the request could not be served; see the server's log"))

    async def forget(self) -> None:
        """Start the history now, as after a restart: older revisions can be neither listed nor watched from."""
        revision = await self.storage.revision()
        await self.storage.compact(revision)
        self.feed.forget(revision)

    def _check_access(self, authorizer: Authorizer, authentication: Authentication, audit: AuditHook | None) -> None:
        """Check every request, and every access review, with an authorizer."""
        self.chain += access_handlers(authorizer, authentication, audit, FlowClassifier(self.storage, self.feed))
        if not any(each.gvk.group in _REVIEWS for each in self.registry):
            return
        from steersman.apiserver.chain import Reviews  # noqa: PLC0415 - only needed for reviews

        for definition in Reviews(authorizer, authentication).definitions():
            if self.registry.find(definition.gvk.group, definition.gvk.version, definition.resource) is not None:
                self.registry.add(definition)

    def _assembled(self) -> NextHandler:
        """The chain as one function."""
        step: NextHandler = self._performed
        for handler in reversed(self.chain):
            step = _linked(handler, step)
        return step

    async def _performed(self, request: ServerRequest) -> ServerResponse:
        """The last step of the chain."""
        return await in_media_type(request, await self._route(request), self.backend.workers)

    async def _route(self, request: ServerRequest) -> ServerResponse:
        if request.user is UNKNOWN:
            raise self._unknown()
        info = request.info
        if info.is_resource:
            definition = self.registry.find(info.group, info.version, info.resource)
            if definition is not None:
                answered = await perform(self.backend.context(definition), request)
                if definition is self.custom_resources.definition and info.verb in _WRITES:
                    await self.custom_resources.catch_up()
                return answered
            if self._is_builtin(info.group, info.version):
                raise no_such_resource()
        for route in self.routes:
            answered = await route(request)
            if answered is not None:
                return answered
        if self._is_below_group_version(info.path):
            raise no_such_resource()
        return page_not_found()

    def _unknown(self) -> RequestRejected:
        if not self._told_of_unknown:
            self._told_of_unknown = True
            _log.error(
                "requests come over a port, but no handler of the chain authenticates them: they are answered 401; "
                "run the server with steersman.apiserver.serve, or add an Authentication to chain="
            )
        return unauthorized()

    def _is_below_group_version(self, path: str) -> bool:
        """Whether a path without a resource is below a built-in group-version."""
        match path.split("/"):
            case ["", "api", version, _, *_]:
                return self._is_builtin("", version)
            case ["", "apis", group, version, _, *_]:
                return self._is_builtin(group, version)
            case _:
                return False

    def _is_builtin(self, group: str, version: str) -> bool:
        """Whether a group-version has Kubernetes' own kinds: in others only their resources exist."""
        mine = (each for each in self.registry if (each.gvk.group, each.gvk.version) == (group, version))
        return any(not each.custom for each in mine)


def _linked(handler: ChainHandler, after: NextHandler) -> NextHandler:
    async def step(request: ServerRequest) -> ServerResponse:
        return await handler(request, after)

    return step
