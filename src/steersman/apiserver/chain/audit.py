"""Audit: who did what, as events of audit.k8s.io/v1.

Guarantees
- Every request whose sender is known leaves an event when it has been answered, and a watch one when it begins too; a
  request that was refused, or failed, says so.
- Events hold metadata alone: no body, no token.
- An event is handed on before its answer is; a hook that fails fails the request rather than losing the event.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import msgspec

from steersman.aio import new_uid, now
from steersman.apiserver.errors import Refused, internal
from steersman.apiserver.peer import request_peer
from steersman.apiserver.request import Next, ServerRequest, User
from steersman.objects.status import Status, encode_status
from steersman.transport import ServerResponse

#: Takes an event, a JSON tree.
AuditHook: TypeAlias = Callable[[dict[str, Any]], None]


class Audit:
    """A handler of the chain that tells a hook of every request: ``Audit(AuditFile(path))``, ``Audit(print)``."""

    def __init__(self, hook: AuditHook) -> None:
        self._hook = hook

    async def __call__(self, request: ServerRequest, next_: Next) -> ServerResponse:
        """Pass a request on and tell how it ended."""
        event = _begun(request)
        user = request.user
        try:
            reply = await next_(request)
        except Refused as refused:
            self._tell(event, request, user, "ResponseComplete", refused.status)
            raise Refused(refused.status, (*refused.headers, ("Audit-Id", event["auditID"]))) from None
        except Exception:
            self._tell(event, request, user, "Panic", internal("the request could not be served").status)
            raise
        reply.headers = (*reply.headers, ("Audit-Id", event["auditID"]))
        status = Status(code=reply.status)
        if isinstance(reply.body, bytes):
            self._tell(event, request, user, "ResponseComplete", status)
            return reply
        if request.info.verb == "watch":
            self._tell(event, request, user, "ResponseStarted", status)
        reply.body = self._told_at_end(reply.body, event, request, user, status)
        return reply

    async def _told_at_end(
        self, body: AsyncIterable[bytes], event: dict[str, Any], request: ServerRequest, user: User, status: Status
    ) -> AsyncGenerator[bytes]:
        pieces = aiter(body)
        try:
            async for piece in pieces:
                yield piece
        finally:
            # An iterator that is left early keeps what it holds until it is told.
            if (finish := getattr(pieces, "aclose", None)) is not None:
                await finish()
            self._tell(event, request, user, "ResponseComplete", status)

    def _tell(self, event: dict[str, Any], request: ServerRequest, user: User, stage: str, status: Status) -> None:
        told = {**event, "stage": stage, "responseStatus": _status(status), "stageTimestamp": _time(now())}
        told["user"] = user_tree(user)
        if request.user is not user:
            told["impersonatedUser"] = user_tree(request.user)
        if request.annotations:
            told["annotations"] = dict(request.annotations)
        self._hook(told)


class AuditFile:
    """A hook that appends events to a file, one line each, readable by its owner alone."""

    def __init__(self, path: Path | str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __call__(self, event: dict[str, Any]) -> None:
        """Append an event."""
        line = memoryview(msgspec.json.encode(event) + b"\n")
        while line:
            line = line[os.write(self._descriptor, line) :]

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def user_tree(user: User) -> dict[str, Any]:
    """A user as objects of the API hold one."""
    tree: dict[str, Any] = {"username": user.name}
    if user.uid:
        tree["uid"] = user.uid
    if user.groups:
        tree["groups"] = list(user.groups)
    if user.extra:
        tree["extra"] = {key: list(values) for key, values in user.extra.items()}
    return tree


def _begun(request: ServerRequest) -> dict[str, Any]:
    info, wire, peer = request.info, request.wire, request_peer()
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": wire.header("Audit-ID") or new_uid(),
        "stage": "",
        "requestURI": wire.target,
        "verb": info.verb,
        "user": {},
        "sourceIPs": [peer.host] if peer is not None else [],
        "requestReceivedTimestamp": _time(now()),
    }
    if agent := wire.header("User-Agent"):
        event["userAgent"] = agent
    if info.is_resource:
        parts = {
            "resource": info.resource,
            "namespace": info.namespace,
            "name": info.name,
            "apiGroup": info.group,
            "apiVersion": info.version,
            "subresource": info.subresource,
        }
        event["objectRef"] = {name: value for name, value in parts.items() if value}
    return event


def _status(status: Status) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.json.decode(encode_status(status))
    # Within an event a status does not say what it is.
    tree.pop("kind", None)
    tree.pop("apiVersion", None)
    return tree


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
