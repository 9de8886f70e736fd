"""A request as the server sees it: what was sent, what it is about, and who sent it.

Guarantees
- What a request is about is read once, from its path, method and query alone, as kube-apiserver reads it; whoever
  authorizes a request and whoever answers it look at the same `RequestInfo`.
- A path that could mean two things means nothing: it is no request for a resource.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from steersman.objects import FieldSelector, SelectorError
from steersman.transport import ServerResponse
from steersman.wire import Request, is_watch, parse_path

if TYPE_CHECKING:
    from steersman.apiserver.chain.tokens import AccountTokens

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends a request: ``User(name="kim", groups=("staff",))``."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


#: Who sends requests within this process, unless a handler of the chain says otherwise.
IN_PROCESS = User(name="system:admin", groups=("system:masters", "system:authenticated"))
#: Who sends requests over a port, until a handler of the chain says more: somebody who is answered nothing.
UNKNOWN = User(name="system:anonymous", groups=("system:unauthenticated",))


class RequestInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a request is about. Without a resource it is about a path, and its verb is the method in lower case."""

    verb: str
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    subpath: str = ""
    #: The path is one of the old ones that always watch.
    is_watch_path: bool = False


class ServerRequest:
    """A request on its way through the server; handlers of the chain fill in what they find out."""

    __slots__ = ("_warned", "accounts", "annotations", "authorize", "info", "user", "wants_yaml", "warnings", "wire")

    def __init__(self, wire: Request, *, user: User = IN_PROCESS, accounts: AccountTokens | None = None) -> None:
        self.wire = wire
        #: The tokens of the server that it was sent to; without them no service account has one.
        self.accounts = accounts
        self.info = read_info(wire)
        self.user = user
        #: What the writer should know; becomes Warning headers, each once.
        self.warnings: list[str] = []
        self._warned: set[str] = set()
        #: Whether the answer is to be YAML, once that is known.
        self.wants_yaml = False
        #: Asks whether the user may do another verb on the same object too; raises `Refused` if not. None: everything.
        self.authorize: Callable[[str], Awaitable[None]] | None = None
        #: What an audit should know.
        self.annotations: dict[str, str] = {}

    def warn(self, text: str) -> None:
        """Tell the writer something; saying it twice changes nothing."""
        if text not in self._warned:
            self._warned.add(text)
            self.warnings.append(text)


#: The rest of the chain.
Next: TypeAlias = Callable[[ServerRequest], Awaitable[ServerResponse]]
#: One handler of the chain: it answers, raises `Refused`, or returns what `next_` answers.
ChainHandler: TypeAlias = Callable[[ServerRequest, Next], Awaitable[ServerResponse]]


def read_info(request: Request) -> RequestInfo:
    """Read what a request is about."""
    plain, watches = _without_watch(request.path)
    path = parse_path(plain)
    if path is None:
        return RequestInfo(verb=request.method.lower(), path=request.path)
    verb = _VERBS.get(request.method, request.method.lower())
    name = path.name or ""
    if verb == "get" and (watches or (not name and path.subresource is None)):
        verb = "watch" if watches or is_watch(request.query) else "list"
        name = name or _selected_name(request)
    elif verb == "delete" and not name:
        verb = "deletecollection"
    return RequestInfo(
        verb=verb,
        path=request.path,
        is_resource=True,
        group=path.group,
        version=path.version,
        resource=path.resource,
        subresource=path.subresource or "",
        # The namespace of a Namespace is itself.
        namespace=(path.name if path.resource == "namespaces" and not path.group else path.namespace) or "",
        name=name,
        subpath=path.subpath or "",
        is_watch_path=watches,
    )


def _without_watch(path: str) -> tuple[str, bool]:
    """Take the old ``/watch/`` out of ``/api/v1/watch/namespaces/a/pods``."""
    at = 3 if path.startswith("/api/") else 4
    parts = path.split("/", at + 1)
    if len(parts) > at + 1 and parts[at] == "watch":
        return "/".join((*parts[:at], parts[at + 1])), True
    return path, False


def _selected_name(request: Request) -> str:
    """The one name that a list or watch asks for, if it does."""
    for name, value in request.query:
        if name == "fieldSelector" and "metadata.name" in value:
            try:
                return FieldSelector.parse(value).required_value("metadata.name") or ""
            except SelectorError:
                return ""
    return ""
