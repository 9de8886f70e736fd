"""``steersman run``: runs the manager of a module against the server of the kubeconfig, until it is stopped.

Guarantees
- The exit code is 0 after a requested stop, 1 if something failed or was cut short, 2 for an invalid command line.
- A mistake in the module, the configuration or the cluster is one sentence that says what to write; a bug is a
  traceback.
- Logs are text on a terminal and JSON elsewhere; both go to stderr.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from steersman.aio import Supervisor
from steersman.cli.announcement import Announcement, announce
from steersman.cli.console import tell_traceback
from steersman.cli.failure import Failure
from steersman.cli.targets.endpoints import with_service
from steersman.cli.targets.managers import Maker, find_manager, made_manager
from steersman.cli.targets.modules import load_module, look_here_first, module_and_name
from steersman.client import Client, Config, discover_config
from steersman.controller import BLOCKED_AFTER
from steersman.errors import ApiError, ConfigError, WouldRemove, error_leaves
from steersman.manager import LAST_SECONDS, HttpEndpoints, Manager, end_process_after, on_signals, report_threads
from steersman.objects import Tree
from steersman.telemetry import JsonFormatter, configure_logging
from steersman.transport import ServerTls
from steersman.webhooks import WebhookEndpoint, WebhookRegistration

if TYPE_CHECKING:
    from steersman.webhooks import WebhookAddress

_log = logging.getLogger("steersman.run")

T = TypeVar("T")


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    target: str
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    install_crds: bool = False
    install: bool = False
    install_local: bool = False
    replace_crds: bool = False
    log_format: Literal["auto", "text", "json"] = "auto"
    log_level: str = "info"
    port: int | None = None
    host: str | None = None
    tls: str | None = None
    tls_service: str | None = None
    token_review: bool = False
    webhook_service: str | None = None
    webhook_url: str | None = None
    webhook_host: str | None = None

    @property
    def module(self) -> str:
        """The module's name."""
        return self.target.partition(":")[0]


def run_manager(options: RunOptions) -> int:
    """Run; returns an exit code."""
    module, attribute = module_and_name(options.target, "manager", nothing="its only manager")
    form = "terminal" if options.log_format == "text" else options.log_format
    handler = configure_logging(level=options.log_level.upper(), form=form)
    look_here_first()
    found = find_manager(load_module(module), attribute)
    try:
        return asyncio.run(_run(found, options, readable=not isinstance(handler.formatter, JsonFormatter)))
    except Failure:
        raise
    except Exception as error:
        raise failure_of(error) from error


async def _run(found: Manager | Maker, options: RunOptions, *, readable: bool) -> int:
    try:
        config = discover_config(kubeconfig=options.kubeconfig, context=options.context)
    except ConfigError as error:
        raise Failure(f"{error}\nOn this command line: --kubeconfig FILE, --context NAME") from error
    if options.install_local:
        _check_local(config.server)
    namespace = options.namespace or config.namespace
    async with (
        Client.connect(config, namespace=namespace, field_manager=field_manager_of(found)) as client,
        _webhook_address(options, client) as address,
    ):
        manager = await _unless_stopped(_prepare(found, client, config, options, address, readable=readable))
        if manager is None:
            _log.info("stopped before the manager started")
            return 0
        async with Supervisor() as tasks:
            tasks.start(_spare_the_collector(manager), name="run: spare the collector")
            await manager.run(client)
            tasks.cancel()
        if manager.signaled:
            # Python waits for threads at exit, as long as they take
            end_process_after(LAST_SECONDS, f"{LAST_SECONDS:g} s after the manager", report_threads)
        _log.info("stopped before all work had ended" if manager.cut_short else "stopped")
        return 1 if manager.cut_short else 0


async def _unless_stopped(work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of ``work``; None if a signal ended it.

    The manager handles signals only while it runs, and the first process of a container must handle them from the
    beginning: by default it ignores them.
    """
    async with Supervisor() as tasks:
        task = tasks.start(work, name="run: preparation")
        with on_signals(tasks.cancel, grace=0.0, report=report_threads):
            await asyncio.wait((task,))
    return None if task.cancelled() else task.result()


async def _prepare(
    found: Manager | Maker,
    client: Client,
    config: Config,
    options: RunOptions,
    address: WebhookAddress | None,
    *,
    readable: bool,
) -> Manager:
    """Make the manager, if necessary, and announce it."""
    manager = found if isinstance(found, Manager) else await made_manager(found, client, options.target)
    if not manager.blueprints and not manager.webhooks.hooks:
        raise Failure(
            f"the manager {manager.name or options.target} has no controllers; add one: "
            "manager.controller(KIND).run_with(RECONCILER)"
        )
    version = msgspec.json.decode(await client.request("GET", "/version"), type=Tree)
    if options.install_local:
        await _check_machine(client, config.server)
    announce(
        Announcement(
            target=options.target,
            server=config.server,
            version=str(version.get("gitVersion", "of unknown version")),
            origin=str(config.origin),
            namespace=client.namespace,
            manager=manager,
            endpoints=endpoints_of(manager, options),
        ),
        readable=readable,
    )
    if manager.watchdog is None:
        manager.watchdog = BLOCKED_AFTER
    if options.webhook_service is not None:
        manager.webhook_endpoint = _at_service(manager, options.webhook_service)
    if options.install_local:
        manager.webhook_endpoint = WebhookEndpoint(port=0, install=True)
    elif address is not None:
        if not manager.webhooks.hooks:
            raise Failure("--webhook-url: the manager has no webhooks; pass a handler to manager.add(...)")
        manager.webhook_endpoint = address.endpoint
        await address.take(manager.webhooks.hooks, manager.name)
    elif options.install and manager.webhooks.hooks:
        manager.webhook_endpoint = replace(_webhook_endpoint(manager), install=True)
    installs = options.install or options.install_local
    if options.install_crds or options.replace_crds or (installs and manager.own_kinds):
        writer = client.with_transport(lambda inner: inner, field_manager=manager.name)
        await _install(writer, manager, replace_crds=options.replace_crds)
    return manager


async def _spare_the_collector(manager: Manager) -> None:
    """Freeze Python's garbage collector once the caches are full: those objects live as long as the program.

    Otherwise each full collection scans all of them, and every key waits for that.
    """
    while manager.phase != "running":  # noqa: ASYNC110 - nothing waits for this
        await asyncio.sleep(1.0)
    gc.collect()
    gc.freeze()


def field_manager_of(found: Manager | Maker) -> str:
    """The manager's name; empty if it has none, or is not made yet.

    Never derived from a file name: the server records field ownership under it, and files are renamed.
    """
    return found.name if isinstance(found, Manager) else ""


# the manager


def endpoints_of(manager: Manager, options: RunOptions) -> HttpEndpoints | None:
    """The manager's endpoints, with the options of the command line applied."""
    given = manager.endpoints
    said = (options.port, options.host, options.tls, options.tls_service, options.token_review or None)
    if all(each is None for each in said):
        return given
    if options.tls is not None and options.tls_service is not None:
        raise Failure("pass --tls or --tls-service, not both: with --tls-service, the manager creates the certificates")
    moved = given or HttpEndpoints()
    if options.tls is not None:
        moved = replace(moved, tls=_tls(Path(options.tls)), service="", secret="")
    if options.tls_service is not None:
        moved = with_service(moved, options.tls_service)
    if options.token_review:
        moved = replace(moved, token_review=True)
    if options.port is not None:
        moved = replace(moved, port=options.port)
    if options.host is not None:
        moved = replace(moved, host=options.host)
    manager.endpoints = moved
    return moved


def _tls(folder: Path) -> ServerTls:
    """The certificate and key in a directory, named as in a Secret of type kubernetes.io/tls."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    for file in (certificate, key):
        if not file.is_file():
            raise Failure(f"--tls {folder}: {file.name} is missing; mount a Secret of type kubernetes.io/tls there")
    return ServerTls(certificate_file=str(certificate), key_file=str(key))


async def _install(client: Client, manager: Manager, *, replace_crds: bool) -> None:
    """Install the definitions of the program's own kinds: classes derived from Resource."""
    own = manager.own_kinds
    if not own:
        raise Failure("--install-crds: no controller has its own kind, a class derived from Resource[...]")
    converted = manager.webhooks.converted_versions().keys()
    with_versions = [kind for kind in own if kind.gvk().group_kind in converted]
    try:
        await client.install(*(kind for kind in own if kind not in with_versions), replace=replace_crds)
        await client.install(*with_versions, replace=replace_crds, conversion=_conversion(manager))
    except WouldRemove as error:
        raise Failure(f"{error}; on this command line: --replace-crds") from None
    _log.info("installed the CRDs of %s", ", ".join(dict.fromkeys(kind.gvk().kind for kind in own)))


def _conversion(manager: Manager) -> Tree | None:
    """The conversion to begin with; None without a port. It fails until the manager registers its port and certificate."""
    if (endpoint := manager.webhook_endpoint) is None:
        return None
    # A free port is known when it is open; nothing listens on port 1.
    address = f"https://{endpoint.listens_on}:{endpoint.port or 1}"
    return WebhookRegistration(manager.webhooks.hooks, endpoint, name=manager.name, address=address).conversion()


def _at_service(manager: Manager, service: str) -> WebhookEndpoint:
    """The manager's endpoint behind another Service."""
    try:
        return replace(manager.webhook_endpoint or WebhookEndpoint(), service=service, url="")
    except ValueError as error:
        raise Failure(f"--webhook-service: {error}") from None


@asynccontextmanager
async def _webhook_address(options: RunOptions, client: Client) -> AsyncGenerator[WebhookAddress | None]:
    """The address of ``--webhook-url`` for one run; None without one."""
    if options.webhook_url is None:
        if options.webhook_host is not None:
            raise Failure("--webhook-host needs --webhook-url: it is the address at which this machine listens for it")
        yield None
        return
    from steersman.webhooks import webhook_address  # noqa: PLC0415 - others need no certificates

    if options.install_local or options.webhook_service is not None:
        raise Failure(
            "pass only one of --webhook-url, --webhook-service and --install-local: the server calls one address"
        )
    try:
        (named,) = WebhookEndpoint(url=options.webhook_url).names
    except ValueError as error:
        raise Failure(f"--webhook-url: {error}") from None
    # another host is that of a tunnel, which ends on loopback
    host = options.webhook_host or (named if await _is_own(named) else "127.0.0.1")
    async with webhook_address(options.webhook_url, client, host=host) as address:
        yield address


def _webhook_endpoint(manager: Manager) -> WebhookEndpoint:
    if manager.webhook_endpoint is None:
        raise Failure(
            "--install: the manager has no address for its webhooks; write"
            ' Manager(webhook_endpoint=WebhookEndpoint(service="NAMESPACE/NAME"))'
        )
    return manager.webhook_endpoint


# the machine of the API server

#: The EndpointSlice in which an API server publishes its own address.
_OWN_ADDRESS = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"


class _Endpoint(msgspec.Struct):
    addresses: list[str]


class _Port(msgspec.Struct):
    port: int | None = None


class _EndpointSlice(msgspec.Struct):
    endpoints: list[_Endpoint] | None = None
    ports: list[_Port] | None = None


def _check_local(server: str) -> None:
    """Raise if the address of the API server is not on this machine: it could not call webhooks on loopback."""
    if not _is_loopback(urlsplit(server).hostname or ""):
        raise _elsewhere(server, "")


async def _check_machine(client: Client, server: str) -> None:
    """Raise if the API server publishes an address that this machine does not have.

    A tunnel, and a container or virtual machine such as that of kind or minikube, listens on loopback too. A server that
    publishes no address, or its own loopback, may still be elsewhere: log what is assumed.
    """
    try:
        endpoint_slice = msgspec.json.decode(
            await client.request("GET", _OWN_ADDRESS, accept="application/json"), type=_EndpointSlice
        )
    except (ApiError, msgspec.DecodeError):
        endpoint_slice = _EndpointSlice()
    addresses = [address for endpoint in endpoint_slice.endpoints or () for address in endpoint.addresses]
    if others := [address for address in addresses if not await _is_own(address)]:
        raise _elsewhere(server, ", ".join(others))
    if addresses and not all(map(_is_loopback, addresses)):
        return
    ports = [port.port for port in endpoint_slice.ports or ()]
    if addresses and (urlsplit(server).port or 443) not in ports:
        raise _elsewhere(server, f"{addresses[0]}, port {ports[0] if ports else 'unknown'}")
    known = "a loopback address" if addresses else "no address"
    _log.info("assuming that the API server %s runs on this machine: it publishes %s", server, known)


def _elsewhere(server: str, published: str) -> Failure:
    why = f": it publishes the address {published}, as behind a tunnel, or with kind or minikube" if published else ""
    return Failure(
        f"--install-local: the API server {server} is not on this machine{why}, so it cannot call webhooks here; "
        "choose another server with --context, or use --install"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _is_own(address: str) -> bool:
    """Whether this machine has an address: only then can a program listen there."""
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=(address, 0))
    except OSError:
        return False
    transport.close()
    return True


# failures


def failure_of(error: Exception) -> Failure:
    """One sentence for an expected failure; for a bug, print its traceback first."""
    leaves = error_leaves(error)
    expected = [leaf for leaf in leaves if isinstance(leaf, (ApiError, OSError, Failure))]
    if len(expected) < len(leaves):
        tell_traceback(error)
    reasons = dict.fromkeys(str(leaf) or type(leaf).__name__ for leaf in expected)
    return Failure("; ".join(reasons) or f"the program failed with {type(leaves[0]).__name__}: {leaves[0]}")
