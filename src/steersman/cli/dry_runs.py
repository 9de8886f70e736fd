"""Which requests may leave while nothing may be written, and in which form. Pure.

Guarantees
- A request that passes `only_dry_runs` changes nothing that a server stores: it reads, or it says ``dryRun=All`` where the
  server looks for it. A deletion with a body says it in the body: the server ignores its query then.
- `dry_run_of` never passes on what it does not understand: paths, methods and bodies are read and printed anew.
- What acts although it is a GET (``exec``, ``proxy``...) does not pass, nor does what makes credentials or moves Pods.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast
from urllib.parse import unquote

import msgspec

from steersman.objects.errors import ApiError
from steersman.wire import Request, describe_request
from steersman.wire.content import JSON
from steersman.wire.paths import ResourcePath, parse_path

Tree: TypeAlias = dict[str, Any]

READS = frozenset({"GET", "HEAD", "OPTIONS"})
_ALL = ("dryRun", "All")
#: They lead on to a Pod, a Service or a node, whatever the method.
_CONNECTING = frozenset({"exec", "attach", "portforward", "proxy"})
#: Subresources that are part of the stored object, so that a dry run shows what becomes of it.
_STORED = frozenset({"status", "scale", "approval", "resize", "ephemeralcontainers"})
#: What is posted to be answered and is not stored.
_ASKED_GROUPS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})
_OVERRIDES = frozenset({"x-http-method", "x-http-method-override", "x-method-override"})


class WritesNothing(ApiError):
    """A request was stopped because a plan must not change anything. Nothing was sent."""


class NotTried(Exception):
    """Why a write cannot even be tried."""


def is_read(request: Request) -> bool:
    """Whether a request only reads, whatever stands at the other end."""
    if request.method not in READS or any(name.lower() in _OVERRIDES for name, _ in request.headers):
        return False
    parts = unquote(request.path).split("/")
    if "?" in request.path or "#" in request.path or {".", ".."} & {*parts}:
        return False
    path = parse_path(request.path)
    # an object may be called proxy; a subresource of that name is one
    return _CONNECTING.isdisjoint(parts[1:] if path is None else (path.subresource or "", path.resource))


def is_question(path: ResourcePath) -> bool:
    """Whether a POST there asks for an answer: who may do what, whose token this is."""
    return path.group in _ASKED_GROUPS and path.resource.endswith("reviews") and path.name is None


def is_event(path: ResourcePath) -> bool:
    """Whether Events are there."""
    return path.resource == "events" and path.group in {"", "events.k8s.io"}


def place_of(request: Request) -> ResourcePath:
    """Where a write goes, if it can be tried; `NotTried` says why not."""
    path = None if "?" in request.path or "#" in request.path else parse_path(request.path)
    if path is None:
        raise NotTried("this is no resource of the Kubernetes API, and a plan changes nothing")
    if (path.group, path.resource) == ("coordination.k8s.io", "leases"):
        raise NotTried("a plan takes part in no election and holds no Lease")
    allowed = (
        {"POST"} if path.name is None else {"PUT", "PATCH", "DELETE"} if not path.subresource else {"PUT", "PATCH"}
    )
    if path.name is None and not path.subresource:
        allowed.add("DELETE")
    if request.method not in allowed or path.subpath or (path.subresource and path.subresource not in _STORED):
        where = f"{path.resource}/{path.subresource}" if path.subresource else path.resource
        raise NotTried(f"what {request.method} of {where} would do cannot be tried without doing it")
    return path


def tree_of(request: Request) -> Any:
    """The JSON that a request carries; `NotTried` if it is something else."""
    if not request.body:
        return {}
    try:
        return msgspec.json.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NotTried("its body is no JSON, and a plan sends nothing that it cannot read") from None


def says_dry_run(request: Request) -> bool:
    """Whether the program itself asked for a dry run: then it intends no change."""
    if request.method != "DELETE" or not request.body:
        return _ALL in request.query
    tree = tree_of(request)
    return isinstance(tree, dict) and cast("Tree", tree).get("dryRun") == ["All"]


def dry_run_of(request: Request, path: ResourcePath, tree: Any) -> Request:
    """The same write, to be tried and not done; ``tree`` is what it carries."""
    query = (*((name, value) for name, value in request.query if name.lower() != "dryrun"), _ALL)
    if request.method != "DELETE":
        return Request(request.method, path.path, query, request.headers, msgspec.json.encode(tree))
    options: Tree = {"kind": "DeleteOptions", "apiVersion": "v1", **(tree or {}), "dryRun": ["All"]}
    headers = tuple(pair for pair in request.headers if pair[0].lower() != "content-type")
    return Request("DELETE", path.path, query, (*headers, ("Content-Type", JSON)), msgspec.json.encode(options))


def only_dry_runs(request: Request) -> None:
    """Raise `WritesNothing` unless a request reads, or is a dry run: a gate for a whole program."""
    if is_read(request):
        return
    path = None if "?" in request.path or "#" in request.path else parse_path(request.path)
    # written exactly so: the server does not know it by another spelling
    told = [pair for pair in request.query if pair[0].lower() == "dryrun"]
    harmless = (
        path is not None
        and request.method in {"POST", "PUT", "PATCH", "DELETE"}
        and told == [_ALL]
        and not path.subpath
        and (path.subresource is None or path.subresource in _STORED)
        and not any(name.lower() in _OVERRIDES for name, _ in request.headers)
    )
    if harmless and request.method == "DELETE":
        harmless = path is not None and path.name is not None and _asks_for_nothing(request)
    if not harmless:
        raise WritesNothing(
            f"{describe_request(request)}: not sent: a plan changes nothing. Write with the client that a reconcile is given "
            "(ctx.client), so that the plan can show it"
        )


class _DeleteBody(msgspec.Struct):
    dry_run: list[str] = msgspec.field(name="dryRun", default_factory=list[str])


def _asks_for_nothing(request: Request) -> bool:
    """Whether the body of a deletion says that it is none."""
    body = request.body or b""
    try:
        # said once: of two the server might read the other
        return body.count(b'"dryRun"') == 1 and msgspec.json.decode(body, type=_DeleteBody).dry_run == ["All"]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
