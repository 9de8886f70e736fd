"""`plan_changes`: what a manager would change on a server, as a value."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.client import Client
from steersman.manager import Manager
from steersman.plan.planned_objects import PlannedObjects
from steersman.plan.result import Plan, result_of
from steersman.plan.transport import PlanTransport
from steersman.plan.trials import Trials


async def plan_changes(
    manager: Manager, client: Client, *, namespaces: Iterable[str] | None = None, within: float = 120.0
) -> Plan:
    """Run the controllers of a manager once, with a client that writes nothing, and return what they would change.

    The manager itself does not start: it can run before and afterwards. ``namespaces`` replaces its own; ``within`` bounds
    the reconciles, in seconds. Raises `PlanFailed` if the controllers cannot start, and its subclass `ReconcileStuck` if a
    reconcile does not end after its cancellation.
    """
    planned = PlannedObjects()
    dry = client.with_transport(lambda inner: PlanTransport(inner, planned), field_manager=manager.name)
    trials = Trials(planned)
    await trials.run(manager.copy(namespaces=namespaces, jobs=False), dry, within=within)
    return result_of(planned, trials, server=client.server, within=within)
