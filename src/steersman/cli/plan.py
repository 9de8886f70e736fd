"""``steersman plan``: shows what a manager would change on a live cluster, without changing anything.

Guarantees
- Nothing is written: every request of the process passes a gate that allows only reads and dry runs
  (`steersman.cli.dry_runs`). There is no leader election and there are no endpoints.
- The exit code is 0 if there is nothing to change, 2 if there is, 1 if something failed or was rejected.
- stdout contains the plan and nothing else; logs go to stderr.
"""

from __future__ import annotations

import asyncio
import os
import sys

import msgspec

from steersman.cli.dry_runs import only_dry_runs
from steersman.cli.failure import Failure
from steersman.cli.intentions import Intentions
from steersman.cli.managers import Maker, find_manager
from steersman.cli.modules import load_module, look_here_first, module_and_name
from steersman.cli.plan_report import Report, report_of, text_lines
from steersman.cli.plan_transport import PlanTransport
from steersman.cli.rehearsal import Rehearsal
from steersman.cli.run import failure_of, field_manager_of, made_manager
from steersman.client import Client
from steersman.client.discovery_order import discover_config
from steersman.manager import Manager
from steersman.objects.errors import ConfigError
from steersman.telemetry import configure_logging
from steersman.transport.gate import gate


class PlanOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    target: str
    kubeconfig: str | None = None
    context: str | None = None
    namespaces: tuple[str, ...] = ()
    json: bool = False
    seconds: float = 120.0
    log_level: str = "warning"


def plan_manager(options: PlanOptions) -> int:
    """Plan and print; returns an exit code."""
    module, attribute = module_and_name(options.target, "manager", nothing="its only manager")
    configure_logging(level=options.log_level.upper())
    look_here_first()
    try:
        # including the import: a module may contact a server when it is loaded
        with gate(only_dry_runs):
            found = find_manager(load_module(module), attribute)
            report = asyncio.run(_plan(found, options))
    except Failure:
        raise
    except Exception as error:
        raise failure_of(error) from error
    if options.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(report, enc_hook=str), indent=2) + b"\n")
    else:
        colours = sys.stdout.isatty() and os.environ.get("TERM", "") != "dumb" and not os.environ.get("NO_COLOR")
        print("\n".join(text_lines(report, colours=colours)))
    return report.exit_code


async def _plan(found: Manager | Maker, options: PlanOptions) -> Report:
    try:
        config = discover_config(kubeconfig=options.kubeconfig, context=options.context)
    except ConfigError as error:
        raise Failure(f"{error}\nOn this command line: --kubeconfig FILE, --context NAME") from error
    intentions = Intentions()
    namespace = options.namespaces[0] if len(options.namespaces) == 1 else config.namespace
    name = field_manager_of(found)
    async with Client.connect(config, namespace=namespace, field_manager=name) as connected:
        client = connected.over(lambda inner: PlanTransport(inner, intentions))
        manager = found if isinstance(found, Manager) else await made_manager(found, client, options.target)
        if not manager.plans:
            raise Failure(
                f"the manager {manager.name or options.target} has no controllers; add one: "
                "manager.controller(KIND).run_with(RECONCILER)"
            )
        rehearsal = Rehearsal(intentions)
        other = manager.anew(namespaces=options.namespaces or None)
        await rehearsal.run(other, client, within=options.seconds)
        return report_of(
            intentions,
            rehearsal.looks.values(),
            rehearsal.informers,
            failed_looks=rehearsal.failed_looks,
            server=client.server,
            seconds=options.seconds,
        )
