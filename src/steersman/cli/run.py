"""``steersman run``: a manager of a module, against the server of the kubeconfig, until it is told to stop.

Guarantees
- The exit code is 0 after a stop that was asked for, 1 if something failed or was cut short, 2 if the command line
  makes no sense.
- A mistake in the module, the configuration or the cluster is a sentence that says what to write; a bug is a traceback.
- Logs are for people on a terminal and JSON elsewhere; both go to the standard error.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, cast

import msgspec

from steersman.aio import Supervisor
from steersman.cli.announcement import Announcement, announce
from steersman.cli.failure import Failure
from steersman.cli.managers import Maker, find_manager
from steersman.cli.modules import load_module, look_here_first, module_and_name
from steersman.client import Client
from steersman.client.discovery_order import discover_config
from steersman.manager import Endpoints, Manager
from steersman.objects.errors import ApiError, ConfigError
from steersman.telemetry import JsonFormatter, configure_logging

_log = logging.getLogger("steersman.run")


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says."""

    target: str
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    install_crds: bool = False
    log_format: Literal["auto", "text", "json"] = "auto"
    log_level: str = "info"
    port: int | None = None
    host: str | None = None

    @property
    def module(self) -> str:
        """The module's name."""
        return self.target.partition(":")[0]


def run_manager(options: RunOptions) -> int:
    """Run; the result is an exit code."""
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
    namespace = options.namespace or config.namespace
    async with Client.connect(
        config, namespace=namespace, field_manager=field_manager_of(found, options.target)
    ) as client:
        manager = found if isinstance(found, Manager) else await made_manager(found, client, options.target)
        if not manager.plans:
            raise Failure(
                f"the manager {manager.name or options.target} has no controllers; add one: "
                "manager.controller(KIND).run_with(RECONCILER)"
            )
        version = msgspec.json.decode(await client.request("GET", "/version"), type=dict[str, Any])
        announce(
            Announcement(
                target=options.target,
                server=config.server,
                version=str(version.get("gitVersion", "of unknown version")),
                origin=str(config.origin),
                namespace=namespace,
                manager=manager,
                endpoints=_endpoints(manager, options),
            ),
            readable=readable,
        )
        if options.install_crds:
            await _install(client, manager)
        async with Supervisor() as tasks:
            tasks.start(_spare_the_collector(manager), name="run: spare the collector")
            await manager.run(client)
            tasks.cancel()
        _log.info("stopped before everything had ended" if manager.cut_short else "stopped")
        return 1 if manager.cut_short else 0


async def _spare_the_collector(manager: Manager) -> None:
    """Take what is there when the caches are full out of Python's cyclic collection: it stays as long as the program.

    Otherwise each of its full rounds looks through all of it, and every key waits for that.
    """
    while manager.phase != "running":  # noqa: ASYNC110 - nothing waits for this
        await asyncio.sleep(1.0)
    gc.collect()
    gc.freeze()


def field_manager_of(found: Manager | Maker, target: str) -> str:
    """The manager's name; that of the module if it has none, or none yet."""
    name = found.name if isinstance(found, Manager) else ""
    return name or target.partition(":")[0].rpartition(".")[2].replace("_", "-")


# the manager


async def made_manager(maker: Maker, client: Client, target: str) -> Manager:
    """What a function of a client makes, if that is a manager."""
    made: Any = maker(client) if inspect.signature(maker).parameters else maker()
    if inspect.isawaitable(made):
        made = await made
    if isinstance(made, Manager):
        return made
    raise Failure(f"{target} returned a {type(made).__name__}; let it return the Manager to run")


def _endpoints(manager: Manager, options: RunOptions) -> Endpoints | None:
    """Where the manager will answer; the command line moves it, or gives it endpoints if it has none."""
    given = manager.endpoints
    if options.port is None and options.host is None:
        return given
    moved = given or Endpoints()
    if options.port is not None:
        moved = replace(moved, port=options.port)
    if options.host is not None:
        moved = replace(moved, host=options.host)
    manager.endpoints = moved
    return moved


async def _install(client: Client, manager: Manager) -> None:
    """Install the definitions of the program's own kinds: those whose classes derive from Resource."""
    own = manager.own_kinds
    if not own:
        raise Failure("--install-crds: no controller has a kind of its own, whose class derives from Resource[...]")
    await client.install(*own)
    _log.info("installed the CRDs of %s", ", ".join(kind.gvk().kind for kind in own))


# what went wrong


def failure_of(error: Exception) -> Failure:
    """One sentence for what the world did; for a bug its traceback first."""
    leaves = list(_leaves(error))
    expected = [leaf for leaf in leaves if isinstance(leaf, (ApiError, OSError, Failure))]
    if len(expected) < len(leaves):
        traceback.print_exception(error, file=sys.stderr)
    told = dict.fromkeys(str(leaf) or type(leaf).__name__ for leaf in expected)
    return Failure("; ".join(told) or f"the program failed with {type(leaves[0]).__name__}: {leaves[0]}")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(each)
    else:
        yield error
