"""Which requests may be sent during a plan, and in which form. Pure.

Guarantees
- A request that passes `only_dry_runs` changes nothing that a server stores: it reads, or it contains ``dryRun=All``
  where the server looks for it. A deletion with a body has it in the body: the server then ignores the query.
- `dry_run_of` never forwards what it does not understand: paths, methods and bodies are parsed and printed anew.
- GET requests with side effects (``exec``, ``proxy``...) do not pass, nor do requests that create credentials or move
  Pods.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast
from urllib.parse import unquote

import msgspec

from steersman.errors import UNREADABLE, ApiError
from steersman.wire import JSON, HttpRequest, ResourcePath, describe_request, parse_path

Tree: TypeAlias = dict[str, Any]

READS = frozenset({"GET", "HEAD", "OPTIONS"})
_ALL = ("dryRun", "All")
#: These connect to a Pod, a Service or a node, whatever the method.
_CONNECTING = frozenset({"exec", "attach", "portforward", "proxy"})
#: Subresources that are part of the stored object, so that a dry run shows the result.
_STORED = frozenset({"status", "scale", "approval", "resize", "ephemeralcontainers"})
#: Groups whose reviews are answered and not stored.
_ASKED_GROUPS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})
_OVERRIDES = frozenset({"x-http-method", "x-http-method-override", "x-method-override"})


class WritesNothing(ApiError):
    """A request was blocked because a plan must not change anything. Nothing was sent."""


class NotTried(Exception):
    """Why a write cannot be tried with a dry run."""


def is_read(request: HttpRequest) -> bool:
    """Whether a request only reads, whatever the server does."""
    if request.method not in READS or any(name.lower() in _OVERRIDES for name, _ in request.headers):
        return False
    parts = unquote(request.path).split("/")
    if "?" in request.path or "#" in request.path or {".", ".."} & {*parts}:
        return False
    path = parse_path(request.path)
    # an object may be named proxy; a subresource with that name is a proxy
    return _CONNECTING.isdisjoint(parts[1:] if path is None else (path.subresource or "", path.resource))


def is_question(path: ResourcePath) -> bool:
    """Whether a POST to this path is a review: an access or token review."""
    return path.group in _ASKED_GROUPS and path.resource.endswith("reviews") and path.name is None


def is_event(path: ResourcePath) -> bool:
    """Whether the path is that of Events."""
    return path.resource == "events" and path.group in {"", "events.k8s.io"}


def place_of(request: HttpRequest) -> ResourcePath:
    """The path of a write that can be tried; otherwise raises `NotTried` with the reason."""
    path = None if "?" in request.path or "#" in request.path else parse_path(request.path)
    if path is None:
        raise NotTried("the path is not a resource of the Kubernetes API, and a plan changes nothing")
    if (path.group, path.resource) == ("coordination.k8s.io", "leases"):
        raise NotTried("a plan does not take part in leader election and holds no Lease")
    allowed = (
        {"POST"} if path.name is None else {"PUT", "PATCH", "DELETE"} if not path.subresource else {"PUT", "PATCH"}
    )
    if path.name is None and not path.subresource:
        allowed.add("DELETE")
    if request.method not in allowed or path.subpath or (path.subresource and path.subresource not in _STORED):
        raise NotTried(f"{request.method} of {path.rbac_resource} has no dry run")
    return path


def tree_of(request: HttpRequest) -> Any:
    """The JSON body of a request; raises `NotTried` if it is something else."""
    if not request.body:
        return {}
    try:
        return msgspec.json.decode(request.body)
    except UNREADABLE:
        raise NotTried("the body is not JSON, and a plan sends only what it can parse") from None


def says_dry_run(request: HttpRequest) -> bool:
    """Whether the program itself requested a dry run, and so intends no change."""
    if request.method != "DELETE" or not request.body:
        return _ALL in request.query
    tree = tree_of(request)
    return isinstance(tree, dict) and cast("Tree", tree).get("dryRun") == ["All"]


def dry_run_of(request: HttpRequest, path: ResourcePath, tree: Any) -> HttpRequest:
    """The same write as a dry run; ``tree`` is its body."""
    query = (*((name, value) for name, value in request.query if name.lower() != "dryrun"), _ALL)
    if request.method != "DELETE":
        return HttpRequest(request.method, path.path, query, request.headers, msgspec.json.encode(tree))
    options: Tree = {"kind": "DeleteOptions", "apiVersion": "v1", **(tree or {}), "dryRun": ["All"]}
    headers = tuple(pair for pair in request.headers if pair[0].lower() != "content-type")
    return HttpRequest("DELETE", path.path, query, (*headers, ("Content-Type", JSON)), msgspec.json.encode(options))


def only_dry_runs(request: HttpRequest) -> None:
    """Raise `WritesNothing` unless a request is a read or a dry run: a gate for a whole program."""
    if is_read(request):
        return
    path = None if "?" in request.path or "#" in request.path else parse_path(request.path)
    # only this exact spelling: the server knows no other
    dry_run = [pair for pair in request.query if pair[0].lower() == "dryrun"]
    harmless = (
        path is not None
        and request.method in {"POST", "PUT", "PATCH", "DELETE"}
        and dry_run == [_ALL]
        and not path.subpath
        and (path.subresource is None or path.subresource in _STORED)
        and not any(name.lower() in _OVERRIDES for name, _ in request.headers)
    )
    if harmless and request.method == "DELETE":
        harmless = path is not None and path.name is not None and _asks_for_nothing(request)
    if not harmless:
        raise WritesNothing(
            f"{describe_request(request)}: not sent, because a plan changes nothing; write with the client of the"
            " reconcile (ctx.client), so that the plan can show it"
        )


class _DeleteBody(msgspec.Struct):
    dry_run: list[str] = msgspec.field(name="dryRun", default_factory=list[str])


def _asks_for_nothing(request: HttpRequest) -> bool:
    """Whether the body of a deletion makes it a dry run."""
    body = request.body or b""
    try:
        # only once: of two, the server might use the other
        return body.count(b'"dryRun"') == 1 and msgspec.json.decode(body, type=_DeleteBody).dry_run == ["All"]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
