"""Classifies requests by FlowSchema and priority level, as kube-apiserver reports them.

Guarantees
- The first matching FlowSchema applies, by precedence and name. FlowSchemas without an existing priority level do not
  match. Response headers have the uids of the FlowSchema and of its priority level.
- A changed FlowSchema applies as soon as watches show the change. A cached classification costs one lookup.
- The condition ``Dangling`` of every FlowSchema says whether its priority level is missing.
- It delays and rejects no request: `RequestLimits` limits requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from steersman.apiserver.chain.flow_schema_status import level_condition, write_condition
from steersman.apiserver.identity import User
from steersman.apiserver.request import NextHandler, RequestInfo, ServerRequest
from steersman.apiserver.storage import Storage
from steersman.apiserver.watching import Feed
from steersman.transport import ServerResponse

_GROUP: Final = "flowcontrol.apiserver.k8s.io"
SCHEMAS: Final = f"{_GROUP}/flowschemas/"
LEVELS: Final = f"{_GROUP}/prioritylevelconfigurations/"
_SCHEMA_HEADER: Final = "X-Kubernetes-Pf-Flowschema-Uid"
_LEVEL_HEADER: Final = "X-Kubernetes-Pf-Prioritylevel-Uid"
#: The FlowSchema for requests that match no other one.
_CATCH_ALL: Final = "catch-all"
_ACCOUNT: Final = "system:serviceaccount:"
#: Subresources with long-running requests, which are not classified.
_LONG_RUNNING: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})
#: The maximum number of cached classifications.
_CACHED_MAX: Final = 10_000

Headers = tuple[tuple[str, str], ...]


class _Name(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Subject(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    user: _Name = _Name()
    group: _Name = _Name()
    service_account: _Name = _Name()

    def matches(self, user: User) -> bool:
        if self.kind == "User":
            return self.user.name in {"*", user.name}
        if self.kind == "Group":
            return self.group.name == "*" or self.group.name in user.groups
        account = self.service_account
        if account.name == "*":
            return user.name.startswith(f"{_ACCOUNT}{account.namespace}:")
        return user.name == f"{_ACCOUNT}{account.namespace}:{account.name}"


class _ResourceRule(msgspec.Struct, frozen=True, rename="camel"):
    verbs: list[str] = []
    api_groups: list[str] = []
    resources: list[str] = []
    cluster_scope: bool = False
    namespaces: list[str] = []

    def matches(self, info: RequestInfo) -> bool:
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        return (
            _has(self.verbs, info.verb)
            and _has(self.resources, resource)
            and _has(self.api_groups, info.group)
            and (_has(self.namespaces, info.namespace) if info.namespace else self.cluster_scope)
        )


class _PathRule(msgspec.Struct, frozen=True, rename="camel"):
    verbs: list[str] = []
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    def matches(self, info: RequestInfo) -> bool:
        return _has(self.verbs, info.verb) and any(_covers(url, info.path) for url in self.non_resource_urls)


class _Rule(msgspec.Struct, frozen=True, rename="camel"):
    subjects: list[_Subject] = []
    resource_rules: list[_ResourceRule] = []
    non_resource_rules: list[_PathRule] = []

    def matches(self, user: User, info: RequestInfo) -> bool:
        if not any(subject.matches(user) for subject in self.subjects):
            return False
        rules: Sequence[_ResourceRule | _PathRule] = (
            self.resource_rules if info.is_resource else self.non_resource_rules
        )
        return any(rule.matches(info) for rule in rules)


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    matching_precedence: int = 1000
    priority_level_configuration: _Name = _Name()
    rules: list[_Rule] = []


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] = []


class _Stored(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _StoredLevel(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_decode_schema = msgspec.json.Decoder(_Stored).decode
_decode_level = msgspec.json.Decoder(_StoredLevel).decode


class FlowClassifier:
    """A handler of the chain that classifies requests by the stored FlowSchemas."""

    def __init__(self, storage: Storage, feed: Feed) -> None:
        self._storage = storage
        self._feed = feed
        #: The positions in the feed when the FlowSchemas and priority levels were last read.
        self._read_at = (-1, -1)
        self._schemas: list[tuple[Headers, list[_Rule]]] = []
        #: The headers for a request that matches no FlowSchema.
        self._others: Headers = ()
        #: The namespaces that a FlowSchema names: for any other, only that there is one counts.
        self._named: set[str] = set()
        self._classified: dict[tuple[object, ...], Headers] = {}

    async def __call__(self, request: ServerRequest, next_: NextHandler) -> ServerResponse:
        """Classify a request, and call the next handler."""
        info = request.info
        if not _is_long_running(info) or info.verb == "watch":
            request.response_headers = await self._headers(request.user, info)
        return await next_(request)

    async def _headers(self, user: User, info: RequestInfo) -> Headers:
        now = (self._feed.window(SCHEMAS).end, self._feed.window(LEVELS).end)
        if now != self._read_at:
            await self._read()
            self._read_at = now
        namespace = info.namespace if info.namespace in self._named else bool(info.namespace)
        about = (info.group, info.resource, info.subresource, namespace) if info.is_resource else (info.path,)
        key = (user.name, user.groups, info.verb, about)
        headers = self._classified.get(key)
        if headers is None:
            if len(self._classified) >= _CACHED_MAX:
                self._classified.clear()
            matching = (headers for headers, rules in self._schemas if any(rule.matches(user, info) for rule in rules))
            headers = self._classified[key] = next(matching, self._others)
        return headers

    async def _read(self) -> None:
        self._classified.clear()
        levels: dict[str, str] = {}
        for record in (await self._storage.list(LEVELS)).records:
            level = _decode_level(record.value).metadata
            levels[level.name] = level.uid
        schemas: list[_Stored] = []
        for record in (await self._storage.list(SCHEMAS)).records:
            # An undecodable FlowSchema matches nothing.
            with suppress(msgspec.DecodeError):
                schema = _decode_schema(record.value)
                schemas.append(schema)
                level = schema.spec.priority_level_configuration.name
                condition = level_condition(level, exists=level in levels)
                if condition not in map(msgspec.structs.asdict, schema.status.conditions):
                    await write_condition(self._storage, record, condition)
        schemas.sort(key=lambda each: (each.spec.matching_precedence, each.metadata.name))
        rules = [rule for each in schemas for rule in each.spec.rules]
        resource_rules = [resource_rule for rule in rules for resource_rule in rule.resource_rules]
        self._named = {name for resource_rule in resource_rules for name in resource_rule.namespaces}
        self._schemas, self._others = [], ()
        for each in schemas:
            uid = levels.get(each.spec.priority_level_configuration.name)
            if uid is not None:
                headers = ((_SCHEMA_HEADER, each.metadata.uid), (_LEVEL_HEADER, uid))
                self._schemas.append((headers, each.spec.rules))
                if each.metadata.name == _CATCH_ALL:
                    self._others = headers


def _has(values: list[str], wanted: str) -> bool:
    return wanted in values or values == ["*"]


def _covers(url: str, path: str) -> bool:
    if url in {"*", path}:
        return True
    prefix = url.removesuffix("*")
    return path.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


def _is_long_running(info: RequestInfo) -> bool:
    """Whether a request is not classified. Profiles and the old proxies are not served here, and are no exception."""
    if info.is_resource:
        return info.subresource in _LONG_RUNNING
    taken_for = info.authorized_as
    return info.path.startswith("/debug/pprof/") or (taken_for is not None and taken_for.verb == "proxy")
