"""``steersman plan``: shows what a manager would change on a live cluster, without changing anything.

Guarantees
- Nothing is written: every request of the process passes a gate that allows only reads and dry runs
  (`steersman.plan.dry_runs`). There is no leader election and there are no endpoints.
- The exit code is 0 if there is nothing to change, 2 if there is, 1 if something failed or was rejected.
- It ends, also if a reconcile swallows its cancellation or blocks the event loop: the error names it.
- stdout contains the plan and nothing else; logs go to stderr. Colors are for terminals only, and control characters in
  errors and objects are shown escaped.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from steersman.cli.console import show, show_data, tell_failure
from steersman.cli.failure import Failure
from steersman.cli.run import failure_of, field_manager_of
from steersman.cli.targets.managers import Maker, find_manager, made_manager
from steersman.cli.targets.modules import load_module, look_here_first, module_and_name
from steersman.client import Client, discover_config
from steersman.debug import count
from steersman.errors import ConfigError, ReconcileStuck
from steersman.manager import LAST_SECONDS, Manager, end_process
from steersman.plan import Plan, PlannedChange, only_dry_runs, plan_changes
from steersman.telemetry import configure_logging, painted, visible
from steersman.telemetry.stacks import line_of, thread_stack
from steersman.transport import gate

_COLORS = {
    "+": "32",
    "-": "31",
    "create": "32",
    "delete": "31",
    "deleteWhenReady": "31",
    "change": "33",
    "status": "36",
}
#: Seconds beside those of the plan: to connect and to close, and for cancelled work to end.
_OVERHEAD = 2 * LAST_SECONDS


class PlanOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    target: str
    kubeconfig: str | None = None
    context: str | None = None
    namespaces: Sequence[str] = ()
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
            declared = find_manager(load_module(module), attribute)
            with _ends_within(options.seconds + _OVERHEAD):
                plan = asyncio.run(_plan(declared, options))
    except Failure:
        raise
    except Exception as error:
        raise failure_of(error) from error
    if options.json:
        show_data(msgspec.json.format(msgspec.json.encode(_document(plan), enc_hook=str), indent=2) + b"\n")
    else:
        show("\n".join(_lines(plan)))
    return 1 if not plan.complete else 2 if plan.changes else 0


async def _plan(declared: Manager | Maker, options: PlanOptions) -> Plan:
    try:
        config = discover_config(kubeconfig=options.kubeconfig, context=options.context)
    except ConfigError as error:
        raise Failure(f"{error}\nOn this command line: --kubeconfig FILE, --context NAME") from error
    namespace = options.namespaces[0] if len(options.namespaces) == 1 else config.namespace
    async with Client.connect(config, namespace=namespace, field_manager=field_manager_of(declared)) as client:
        manager = declared if isinstance(declared, Manager) else await made_manager(declared, client, options.target)
        if not manager.blueprints:
            raise Failure(
                f"the manager {manager.name or options.target} has no controllers; add one: "
                "manager.controller(KIND).run_with(RECONCILER)"
            )
        await client.request("GET", "/version")  # fail now: caches would retry until the time is over
        try:
            return await plan_changes(manager, client, namespaces=options.namespaces or None, within=options.seconds)
        except ReconcileStuck as error:
            # the end of the event loop would wait for the reconcile
            end_process(str(error), _report)
            raise


@contextmanager
def _ends_within(seconds: float) -> Generator[None]:
    """End the process if the block does not end in time: a reconcile that blocks the event loop cannot be cancelled."""
    thread = threading.get_ident()

    def end() -> None:
        end_process(f"the plan did not end within {seconds:g} s; it is at {line_of(thread_stack(thread))}", _report)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _report(why: str) -> None:
    tell_failure(why)


def _document(plan: Plan) -> dict[str, object]:
    """The plan for programs."""
    return {
        "server": plan.server,
        "create": len(plan.created),
        "change": len(plan.changed),
        "delete": len(plan.deleted),
        "deleteWhenReady": len(plan.deleted_when_ready),
        "status": len(plan.statuses),
        "unchanged": plan.unchanged,
        "changes": plan.changes,
        "rejected": plan.rejected,
        "failed": (*plan.failed, *plan.failed_lookups),
        "waits": plan.waits,
    }


def _lines(plan: Plan) -> Iterator[str]:
    """The plan for people."""
    for change in plan.changes:
        yield from _change_lines(change)
        yield ""
    for each in plan.waits:
        yield f"{visible(each.what)} then waits: {visible(each.message)}"
    for each in plan.rejected:
        yield painted(f"rejected: {visible(each.what)}: {visible(each.message)}", "31")
    for each in (*plan.failed, *plan.failed_lookups):
        yield painted(f"failed: {visible(each.what)}: {visible(each.message)}", "31")
    if plan.waits or not plan.complete:
        yield ""
    yield painted(_summary(plan), "1")


def _summary(plan: Plan) -> str:
    """The whole plan in one line."""
    parts = [
        f"{len(plan.created)} to create" if plan.created else "",
        f"{len(plan.changed)} to change" if plan.changed else "",
        f"{len(plan.deleted)} to delete" if plan.deleted else "",
        f"{len(plan.deleted_when_ready)} to delete when ready" if plan.deleted_when_ready else "",
        count(len(plan.statuses), "status to write", "statuses to write") if plan.statuses else "",
        f"{count(plan.unchanged, 'object')} unchanged" if plan.unchanged else "",
    ]
    failed = len(plan.failed) + len(plan.failed_lookups)
    problems = [f"{len(plan.rejected)} rejected" if plan.rejected else "", f"{failed} failed" if failed else ""]
    words = ", ".join(filter(None, parts)) or "there is nothing to reconcile"
    return "; ".join(filter(None, (words, ", ".join(filter(None, problems)))))


def _change_lines(change: PlannedChange) -> Iterator[str]:
    notes = f" ({', '.join(change.notes)})" if change.notes else ""
    owners = f", for {' and '.join(change.for_)}" if change.for_ else ""
    title = painted(visible(change.title), f"1;{_COLORS[change.action]}")
    yield f"{title}{painted(visible(notes + owners), '2')}"
    for line in change.diff:
        yield f"  {painted(visible(line), _COLORS.get(line[:1], ''))}"
