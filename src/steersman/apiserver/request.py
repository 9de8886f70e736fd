"""A request as the server sees it: what was sent, what it concerns, and who sent it.

Guarantees
- A `RequestInfo` is read once, from path, method and query alone, as in kube-apiserver. Authorization and the verbs use
  the same one.
- An ambiguous path is not a request for a resource. It is authorized as what kube-apiserver takes it for, and not served.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import unquote

import msgspec

from steersman.apiserver.errors import too_large
from steersman.apiserver.identity import IN_PROCESS, Access, AccountTokens, Authorizer, User
from steersman.errors import SelectorError
from steersman.objects import FieldSelector, Selector
from steersman.schemas.names import path_segment
from steersman.transport import ServerResponse
from steersman.wire import JSON, WRITE_VERBS, HttpRequest, InvalidOption, ListOptions, is_watch, parse_path

_VERBS = {**WRITE_VERBS, "GET": "get", "HEAD": "get"}
#: The verbs of rules; any other method on a resource is none of them.
_RULE_VERBS = frozenset({"proxy", "create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"})


#: An old prefix of paths that kube-apiserver authorizes and does not serve.
_PROXY = "proxy"


class RequestInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a request concerns. Without a resource it concerns a path, and its verb is the method in lower case."""

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
    #: Whether the path is below a namespace; that of a Namespace itself is not.
    is_namespaced: bool = False
    #: Whether the path is one of the old ones that always watch.
    is_watch_path: bool = False
    #: For a path that is not served: the request for a resource that kube-apiserver authorizes.
    authorized_as: RequestInfo | None = None


class ServerRequest:
    """A request on its way through the server; handlers of the chain fill in their results."""

    __slots__ = (
        "_warned",
        "accounts",
        "annotations",
        "authorize",
        "authorizer",
        "info",
        "media_type",
        "response_headers",
        "sends_pieces",
        "size",
        "user",
        "warnings",
        "wire",
    )

    def __init__(self, wire: HttpRequest, *, user: User = IN_PROCESS, accounts: AccountTokens | None = None) -> None:
        self.wire = wire
        #: The service account tokens of the server; without them no service account has one.
        self.accounts = accounts
        self.info = read_info(wire)
        self.user = user
        #: Warnings for the writer; sent as Warning headers, each once.
        self.warnings: list[str] = []
        self._warned: set[str] = set()
        #: The size of its body in bytes, or what it counts as if that is more.
        self.size = len(wire.body) if wire.body else 0
        #: The media type of the answer, once negotiated.
        self.media_type = JSON
        #: Checks whether the user may also perform another verb on the same object; raises `RequestRejected` if not. None
        #: allows everything.
        self.authorize: Callable[[str], Awaitable[None]] | None = None
        #: The authorizer that allowed the request; None if the chain has none.
        self.authorizer: Authorizer | None = None
        #: Headers to add to every response to the request.
        self.response_headers: tuple[tuple[str, str], ...] = ()
        #: Whether the answer is sent in pieces, and ends: other bodies in pieces are streams.
        self.sends_pieces = False
        #: Annotations for the audit event.
        self.annotations: dict[str, str] = {}

    def warn(self, text: str) -> None:
        """Add a warning for the writer. Duplicates are ignored."""
        if text not in self._warned:
            self._warned.add(text)
            self.warnings.append(text)


#: The rest of the chain.
NextHandler: TypeAlias = Callable[[ServerRequest], Awaitable[ServerResponse]]
#: One handler of the chain: it answers, raises `RequestRejected`, or returns the answer of `next_`.
ChainHandler: TypeAlias = Callable[[ServerRequest, NextHandler], Awaitable[ServerResponse]]
#: Answers a request for a path; returns None for other paths.
Route: TypeAlias = Callable[[ServerRequest], Awaitable[ServerResponse | None]]


def read_body(request: ServerRequest, limit: int) -> bytes:
    """The body of a request; 413 if it is too long."""
    body = request.wire.body or b""
    if len(body) > limit:
        raise too_large(f"Request entity too large: limit is {limit}")
    return body


def read_info(request: HttpRequest) -> RequestInfo:
    """What a request concerns."""
    plain, watches = _without_watch(request.path)
    path = parse_path(plain)
    if path is None or path.resource == _PROXY:
        return RequestInfo(verb=request.method.lower(), path=request.path, authorized_as=_unserved(request))
    verb = _verb_of(request.method)
    name = path.name or ""
    if verb == "get" and (watches or (not name and path.subresource is None)):
        verb = "watch" if watches or is_watch(request.query) else "list"
        # As in kube-apiserver, the old paths take no name from selectors.
        name = name if watches else _selected_name(request)
    elif verb == "delete" and not name:
        verb = "deletecollection"
    is_namespaced = path.namespace is not None
    return RequestInfo(
        verb=verb,
        path=request.path,
        is_resource=True,
        group=path.group,
        version=path.version,
        resource=path.resource,
        subresource=path.subresource or "",
        # The namespace of a Namespace is itself.
        namespace=(
            path.name if path.resource == "namespaces" and not path.group and not is_namespaced else path.namespace
        )
        or "",
        name=name,
        subpath=path.subpath or "",
        is_namespaced=is_namespaced,
        is_watch_path=watches,
    )


def access_of(user: User, info: RequestInfo, *, verb: str = "") -> Access:
    """The access that a request asks for, or the access to the same object with another verb."""
    info = info.authorized_as or info
    verb = verb or info.verb
    if not info.is_resource:
        return Access(user=user, verb=verb, is_resource=False, path=info.path)
    return Access(
        user=user,
        verb=verb if verb in _RULE_VERBS else "",
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
        path=info.path,
    )


def _verb_of(method: str) -> str:
    """The verb of a method; empty for one that only sounds like the verb of a rule, such as ``LIST``."""
    verb = _VERBS.get(method, method.lower())
    return "" if verb in _RULE_VERBS and method not in _VERBS else verb


def _unserved(request: HttpRequest) -> RequestInfo | None:
    """What kube-apiserver takes a path for that names no resource here, such as one with empty segments.

    None if it takes it for a path, too.
    """
    prefix, *parts = unquote(request.path).strip("/").split("/")
    of_group = prefix == "apis"
    if prefix not in {"api", "apis"} or len(parts) < 2 + of_group:
        return None
    group, parts = (parts[0], parts[1:]) if of_group else ("", parts)
    version, *parts = parts
    verb = _verb_of(request.method)
    if parts[0] in {_PROXY, "watch"} and len(parts) > 1:
        verb, *parts = parts
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in {"status", "finalize"}:
            parts = parts[2:]
    resource, name, subresource = (*parts[:3], "", "")[:3]
    if not name and verb in {"get", "delete"}:
        verb = "deletecollection" if verb == "delete" else "watch" if is_watch(request.query) else "list"
    return RequestInfo(
        verb=verb,
        path=request.path,
        is_resource=True,
        group=group,
        version=version,
        resource=resource,
        subresource="" if verb == _PROXY else subresource,
        namespace=namespace,
        name=name,
    )


def _without_watch(path: str) -> tuple[str, bool]:
    """A path without the old ``/watch/``, as in ``/api/v1/watch/namespaces/a/pods``, and whether it had one."""
    at = 3 if path.startswith("/api/") else 4
    parts = path.split("/", at + 1)
    if len(parts) > at + 1 and parts[at] == "watch":
        return "/".join((*parts[:at], parts[at + 1])), True
    return path, False


def _selected_name(request: HttpRequest) -> str:
    """The single name that a list or watch selects; empty if it selects others, or its options are invalid."""
    if not any(name == "fieldSelector" for name, _ in request.query):
        return ""
    try:
        # Parse the options as the verbs do: the authorized name must be the selected one.
        options = ListOptions.from_query(request.query)
        if "metadata.name" not in options.field_selector:
            return ""
        Selector.parse(options.label_selector)
        name = FieldSelector.parse(options.field_selector).required_value("metadata.name") or ""
    except (InvalidOption, SelectorError):
        return ""
    return "" if path_segment(name) else name
