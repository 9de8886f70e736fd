"""attach, exec, portforward and proxy: the subresources that connect a client with a Pod.

Guarantees
- Policies and webhooks see every connection, before the server looks for the Pod.
- This server connects to no kubelet and to no Pod. It answers as kube-apiserver does if they refuse the connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from steersman.apiserver.admission.plugins import Attributes, WriteView
from steersman.apiserver.context import VerbContext
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.errors import bad_request, forbidden, internal, not_found, unavailable, unnamed
from steersman.apiserver.registry.builtin.types.trees import items, subtree
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.subresources import CONNECTIONS, POD
from steersman.apiserver.request import ServerRequest, access_of
from steersman.golang import parse_uint, quoted
from steersman.objects import GroupVersionKind
from steersman.transport import ServerResponse, join_host_port

#: The addresses of a node by kube-apiserver's preference.
_ADDRESSES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_KUBELET_PORT: Final = 10250
_PORT_MAX: Final = 2**16 - 1
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_SCHEMES: Final = ("", "http", "https")


class _StreamOptions(msgspec.Struct, omit_defaults=True):
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""


class _ExecOptions(msgspec.Struct, omit_defaults=True):
    #: Always present, as in kube-apiserver.
    command: list[str] | None
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""


class _PortForwardOptions(msgspec.Struct, omit_defaults=True):
    ports: list[int] = []


class _ProxyOptions(msgspec.Struct, omit_defaults=True):
    path: str = ""


_Options = _StreamOptions | _ExecOptions | _PortForwardOptions | _ProxyOptions
_Queries = Mapping[str, list[str]]


def _stream_options(request: ServerRequest, query: _Queries) -> _StreamOptions:
    del request
    return _StreamOptions(**_streams(query), container=_first(query, "container"))


def _exec_options(request: ServerRequest, query: _Queries) -> _ExecOptions:
    del request
    return _ExecOptions(query.get("command"), **_streams(query), container=_first(query, "container"))


def _port_forward_options(request: ServerRequest, query: _Queries) -> _PortForwardOptions:
    del request
    return _PortForwardOptions([_port(text) for value in query.get("ports", ()) for text in value.split(",")])


def _proxy_options(request: ServerRequest, query: _Queries) -> _ProxyOptions:
    del query
    path = unquote(request.info.subpath).strip("/")
    path = f"/{path}" if path else ""
    return _ProxyOptions(f"{path}/" if request.wire.path.endswith("/") else path)


def _streams(query: _Queries) -> dict[str, bool]:
    given = {name: query[name][0] for name in ("stdin", "stdout", "stderr", "tty") if name in query}
    return {name: text != "0" and text.lower() != "false" for name, text in given.items()}


def _first(query: _Queries, name: str) -> str:
    return query.get(name, [""])[0]


def _port(text: str) -> int:
    try:
        port = parse_uint(text)
    except ValueError as error:
        raise bad_request(f"cannot convert to []int32: {error}") from None
    if port > _PORT_MAX:
        raise bad_request(f"cannot convert to []int32: strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return port


async def connect(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a request for a connection."""
    query: dict[str, list[str]] = {}
    for name, value in request.wire.query:
        query.setdefault(name, []).append(value)
    if "dryRun" in query:
        raise bad_request("dryRun is not supported")
    info = request.info
    sort = _SORTS[info.subresource]
    tree = _tree(sort.definition, sort.options(request, query))
    attributes = Attributes(
        context,
        request,
        "CONNECT",
        namespace=info.namespace,
        name=info.name,
        obj=tree,
        old=None,
        dry_run=False,
        view=WriteView(sort.definition, take=partial(_take, sort)),
    )
    await context.admission.admit(attributes)
    await context.admission.validate(attributes)
    return await sort.answer(context, request, tree)


def _tree(definition: Definition, options: _Options) -> Tree:
    gvk = definition.gvk
    return {"kind": gvk.kind, "apiVersion": gvk.api_version, **msgspec.to_builtins(options)}


def _take(sort: _Sort, tree: Tree, patched: Tree) -> None:
    """Take over the options that a plugin changed."""
    try:
        changed = _tree(sort.definition, msgspec.convert(patched, sort.type))
    except msgspec.ValidationError as error:
        raise internal(f"json: {error}") from None
    tree.clear()
    tree.update(changed)


# What becomes of a connection


async def _stream(context: VerbContext, request: ServerRequest, options: Tree) -> ServerResponse:
    """Answer an attach or exec."""
    await _check_create(context, request)
    pod = await _pod(context, request, request.info.name)
    _check_container(pod, options.get("container", ""))
    raise await _refused(context, request, pod)


async def _port_forward(context: VerbContext, request: ServerRequest, options: Tree) -> ServerResponse:
    del options
    await _check_create(context, request)
    raise await _refused(context, request, await _pod(context, request, request.info.name))


async def _proxy(context: VerbContext, request: ServerRequest, options: Tree) -> ServerResponse:
    scheme = port = ""
    match request.info.name.split(":"):
        case [name]:
            pass
        case [name, port]:
            pass
        case [scheme, name, port]:
            pass
        case _:
            name = ""
    if not name or scheme not in _SCHEMES:
        raise bad_request(f"invalid pod request {quoted(request.info.name)}")
    pod = await _pod(context, request, name)
    ports = (items(container, "ports") for container in items(subtree(pod, "spec"), "containers"))
    port = port or next((str(declared[0].get("containerPort", "")) for declared in ports if declared), "")
    addresses = items(subtree(pod, "status"), "podIPs")
    host = addresses[0].get("ip", "") if addresses else ""
    if not _is_proxied(host):
        raise bad_request("address not allowed")
    problem = _dial_problem(host, port or ("443" if scheme == "https" else "80"))
    if _is_upgrade(request):
        raise unnamed(f"error dialing backend: {problem}")
    if not options.get("path") and request.wire.method in {"GET", "HEAD"}:
        headers = (("Cache-Control", "no-cache, private"), ("Location", _with_slash(request)))
        return ServerResponse(status=301, headers=headers, body=b"")
    raise unavailable(f"error trying to reach service: {problem}")


async def _check_create(context: VerbContext, request: ServerRequest) -> None:
    """Check that the user may create the subresource: a WebSocket begins with a GET, which needs no more than reading."""
    info = request.info
    if info.verb == "create" or request.authorizer is None:
        return
    decision = await request.authorizer(access_of(request.user, info, verb="create"))
    if not decision.allowed:
        raise forbidden(context.definition.named, info.name, decision.reason)


async def _pod(context: VerbContext, request: ServerRequest, name: str) -> Tree:
    record = await context.read("", "pods", request.info.namespace, name)
    if record is None:
        raise not_found(context.definition.named, name)
    return decode_stored(record)


def _check_container(pod: Tree, name: str) -> None:
    spec, pod_name = subtree(pod, "spec"), pod["metadata"]["name"]
    names = [container["name"] for field in _CONTAINERS for container in items(spec, field)]
    if name and name not in names:
        raise bad_request(f"container {name} is not valid for pod {pod_name}")
    if not name and len(items(spec, "containers")) > 1:
        shown = " ".join(names)
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: [{shown}]")


async def _refused(context: VerbContext, request: ServerRequest, pod: Tree) -> Exception:
    """The error for a connection through the kubelet of a Pod."""
    node_name = subtree(pod, "spec").get("nodeName", "")
    if not node_name:
        return bad_request(f"pod {request.info.name} does not have a host assigned")
    record = await context.read("", "nodes", "", node_name)
    if record is None:
        # As in kube-apiserver, whose error names the resource of the request.
        return not_found(context.definition.named, node_name)
    status = subtree(decode_stored(record), "status")
    known = [(entry.get("type", ""), entry.get("address", "")) for entry in items(status, "addresses")]
    host = next((address for wanted in _ADDRESSES for type_, address in known if type_ == wanted), None)
    if host is None:
        shown = " ".join(f"{{{type_} {address}}}" for type_, address in known)
        return unnamed(f"no preferred addresses found; known addresses: [{shown}]")
    if not _is_upgrade(request):
        return bad_request("Upgrade request required")
    port: Any = subtree(subtree(status, "daemonEndpoints"), "kubeletEndpoint").get("Port") or _KUBELET_PORT
    return unnamed(f"error dialing backend: {_dial_problem(host, port)}")


def _is_upgrade(request: ServerRequest) -> bool:
    return any("upgrade" in value.lower() for name, value in request.wire.headers if name.lower() == "connection")


def _dial_problem(host: str, port: object) -> str:
    return f"dial tcp {join_host_port(host, port)}: connect: connection refused"


def _is_proxied(host: str) -> bool:
    """Whether an address is global unicast in Go's sense, which includes private ones."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    is_broadcast = str(address) == "255.255.255.255"
    is_local = address.is_loopback or address.is_link_local
    return not (is_broadcast or is_local or address.is_multicast or address.is_unspecified)


def _with_slash(request: ServerRequest) -> str:
    path, mark, query = request.wire.target.partition("?")
    return f"{path}/{mark}{query}"


class _Sort(NamedTuple):
    """One sort of connection: its options, and the answer to an allowed one."""

    definition: Definition
    type: Any
    options: Callable[[ServerRequest, _Queries], _Options]
    answer: Callable[[VerbContext, ServerRequest, Tree], Awaitable[ServerResponse]]


def _definition(gvk: GroupVersionKind, name: str) -> Definition:
    return Definition(gvk=gvk, resource=f"pods/{name}", schema=lambda: {"type": "object"})


def _sort(name: str, type_: Any, options: Any, answer: Any) -> _Sort:
    return _Sort(_definition(CONNECTIONS[POD][name].gvk, name), type_, options, answer)


_SORTS: Final[Mapping[str, _Sort]] = {
    "attach": _sort("attach", _StreamOptions, _stream_options, _stream),
    "exec": _sort("exec", _ExecOptions, _exec_options, _stream),
    "portforward": _sort("portforward", _PortForwardOptions, _port_forward_options, _port_forward),
    "proxy": _sort("proxy", _ProxyOptions, _proxy_options, _proxy),
}
