"""Audit: who did what, as events of audit.k8s.io/v1.

Guarantees
- Every authenticated request leaves an audit event when it has been answered, and a watch leaves one when it begins too.
  A rejected or failed request says so, and so does one that ended without an answer: its write may have been stored.
- An unauthenticated request (401) leaves one event without a user, which names the kind of its credential.
- Events hold only metadata: no body, and no token, even if a client puts one into the query.
- An event is emitted before its answer. A failing hook fails the request rather than losing the event.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self, TypeAlias

import msgspec

from steersman.aio import new_uid, utc_now
from steersman.apiserver.errors import RequestRejected, internal
from steersman.apiserver.identity import User, request_peer
from steersman.apiserver.request import NextHandler, ServerRequest
from steersman.errors import ApiStatus, encode_status
from steersman.objects import Tree
from steersman.transport import ServerResponse
from steersman.wire import HttpRequest

#: Called with an audit event, a JSON tree.
AuditHook: TypeAlias = Callable[[dict[str, Any]], None]
#: Parts of the names of query options that hold credentials. The API has no such option, but clients of other APIs do.
_CREDENTIALS = ("token", "password", "passwd", "secret", "apikey", "credential", "authorization", "bearer", "signature")
#: The status of a request whose client has left, or whose time is over, in kube-apiserver's terms.
_UNANSWERED = ApiStatus(
    status="Failure",
    message="Timeout: request did not complete within requested timeout - context canceled",
    reason="Timeout",
    code=504,
)


class Audit:
    """A handler of the chain that calls a hook for every request: ``Audit(AuditFile(path))``, ``Audit(print)``."""

    def __init__(self, hook: AuditHook) -> None:
        self._hook = hook

    async def __call__(self, request: ServerRequest, next_: NextHandler) -> ServerResponse:
        """Pass a request on and report how it ended."""
        audit_event = _begun(request)
        # Impersonation, which comes later, replaces it.
        user = request.user
        try:
            reply = await next_(request)
        except RequestRejected as refused:
            self._report(audit_event, request, user, "ResponseComplete", refused.status)
            raise refused.with_headers(("Audit-Id", audit_event["auditID"])) from None
        except asyncio.CancelledError:
            self._report(audit_event, request, user, "ResponseComplete", _UNANSWERED)
            raise
        except Exception:
            self._report(audit_event, request, user, "Panic", internal("the request could not be served").status)
            raise
        reply.headers = (*reply.headers, ("Audit-Id", audit_event["auditID"]))
        status = ApiStatus(code=reply.status)
        if isinstance(reply.body, bytes):
            self._report(audit_event, request, user, "ResponseComplete", status)
            return reply
        if request.info.verb == "watch":
            self._report(audit_event, request, user, "ResponseStarted", status)
        reply.body = self._reported_at_end(reply.body, audit_event, request, user, status)
        return reply

    async def _reported_at_end(
        self, body: AsyncIterable[bytes], audit_event: Tree, request: ServerRequest, user: User, status: ApiStatus
    ) -> AsyncGenerator[bytes]:
        pieces = aiter(body)
        try:
            async for piece in pieces:
                yield piece
        finally:
            # An iterator that is abandoned early keeps its resources until it is closed.
            if (finish := getattr(pieces, "aclose", None)) is not None:
                await finish()
            self._report(audit_event, request, user, "ResponseComplete", status)

    def _report(self, audit_event: Tree, request: ServerRequest, user: User, stage: str, status: ApiStatus) -> None:
        completed = {
            **audit_event,
            "stage": stage,
            "responseStatus": _status(status),
            "stageTimestamp": _time(utc_now()),
        }
        completed["user"] = user_tree(user)
        if request.user is not user:
            completed["impersonatedUser"] = user_tree(request.user)
        if request.annotations:
            completed["annotations"] = dict(request.annotations)
        self._hook(completed)


class AuthenticationAudit:
    """A handler of the chain that reports failed authentication; it comes before `Authentication`."""

    def __init__(self, hook: AuditHook) -> None:
        self._hook = hook

    async def __call__(self, request: ServerRequest, next_: NextHandler) -> ServerResponse:
        """Pass a request on. Report it if its sender is unknown."""
        try:
            return await next_(request)
        except RequestRejected as refused:
            raise self.reported(request, refused) from None

    def reported(self, request: ServerRequest, refused: RequestRejected) -> RequestRejected:
        """The rejection, reported if it is a failed authentication without an audit event yet."""
        if refused.status.code != HTTPStatus.UNAUTHORIZED or any(name == "Audit-Id" for name, _ in refused.headers):
            return refused
        audit_event = _begun(request)
        status = ApiStatus(message=_credential_words(request), code=refused.status.code)
        audit_event |= {
            "stage": "ResponseStarted",
            "responseStatus": _status(status),
            "stageTimestamp": audit_event["requestReceivedTimestamp"],
        }
        self._hook(audit_event)
        return refused.with_headers(("Audit-Id", audit_event["auditID"]))


class AuditFile:
    """A hook that appends audit events to a file, one line each, readable only by its owner.

    Raises PermissionError for a file of another user, one that others can read or write, and a symbolic link.
    """

    def __init__(self, path: Path | str) -> None:
        from steersman.apiserver.storage.ownership import open_owned  # noqa: PLC0415 - few servers have a file

        self._descriptor = open_owned(Path(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT, secret=True)

    def __call__(self, audit_event: dict[str, Any]) -> None:
        """Append an audit event."""
        line = memoryview(msgspec.json.encode(audit_event) + b"\n")
        while line:
            line = line[os.write(self._descriptor, line) :]

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _credential_words(request: ServerRequest) -> str:
    """The kind of a request's credential, in kube-apiserver's terms; never the credential itself."""
    given = request.wire.header("Authorization") or ""
    for scheme in ("Basic", "Bearer"):
        if given.startswith(f"{scheme} "):
            return f"Authentication failed, attempted: {scheme.lower()}"
    peer = request_peer()
    if peer is not None and peer.certificate:
        return "Authentication failed, attempted: x509"
    return "Authentication failed, no credentials provided"


def user_tree(user: User) -> dict[str, Any]:
    """A user as in objects of the API."""
    tree: dict[str, Any] = {"username": user.name}
    if user.uid:
        tree["uid"] = user.uid
    if user.groups:
        tree["groups"] = list(user.groups)
    if user.extra:
        tree["extra"] = {key: list(values) for key, values in user.extra.items()}
    return tree


def _begun(request: ServerRequest) -> Tree:
    info, wire, peer = request.info, request.wire, request_peer()
    audit_event: Tree = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": wire.header("Audit-ID") or new_uid(),
        "stage": "",
        "requestURI": _without_credentials(wire),
        "verb": info.verb,
        "user": {},
        "sourceIPs": [peer.host] if peer is not None else [],
        "requestReceivedTimestamp": _time(utc_now()),
    }
    if agent := wire.header("User-Agent"):
        audit_event["userAgent"] = agent
    if info.is_resource:
        parts = {
            "resource": info.resource,
            "namespace": info.namespace,
            "name": info.name,
            "apiGroup": info.group,
            "apiVersion": info.version,
            "subresource": info.subresource,
        }
        audit_event["objectRef"] = {name: value for name, value in parts.items() if value}
    return audit_event


def _without_credentials(wire: HttpRequest) -> str:
    """The target of a request, with the values of credential query options replaced."""
    if not wire.query:
        return wire.target
    shown = tuple((name, "REDACTED" if _is_credential(name) else value) for name, value in wire.query)
    return HttpRequest(wire.method, wire.path, shown).target


def _is_credential(name: str) -> bool:
    plain = name.lower().replace("_", "").replace("-", "")
    return any(each in plain for each in _CREDENTIALS)


def _status(status: ApiStatus) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.json.decode(encode_status(status))
    # Within an audit event, a status omits its own kind.
    tree.pop("kind", None)
    tree.pop("apiVersion", None)
    return tree


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
