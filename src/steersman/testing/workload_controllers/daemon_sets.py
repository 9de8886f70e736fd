"""The daemonset-controller: one Pod for each Node that fits.

Guarantees
- A new Node gets its Pod, and a Node that no longer fits loses it.
- An update replaces ``maxUnavailable`` Pods at a time, or starts ``maxSurge`` new ones beside the old.
- A converged DaemonSet is not written.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import datetime

from steersman.aio import utc_now
from steersman.controller import Blueprint, Context, Done, Outcome, Request, Requeue, Stores, View, controller_for
from steersman.errors import StatusError
from steersman.kinds.apps_v1 import ControllerRevision, DaemonSet, DaemonSetStatus, RollingUpdateDaemonSet
from steersman.kinds.core_v1 import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)
from steersman.objects import Key, ObjectMeta, replace, scaled_value
from steersman.testing.pods import placement as pod_placement
from steersman.testing.pods.placement import node_of
from steersman.testing.workload_controllers import pods
from steersman.testing.workload_controllers.claims import adopters, candidates, claim
from steersman.testing.workload_controllers.revisions import REVISION, History
from steersman.testing.workload_controllers.workload_reconciler import WorkloadReconciler, write_status

_STEPS = 30
_GENERATION = "pod-template-generation"
_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"


class DaemonSets(WorkloadReconciler[DaemonSet]):
    """Reconciles DaemonSets."""

    def blueprint(self) -> Blueprint:
        """The controller's blueprint."""
        return (
            controller_for(DaemonSet, name="daemonset-controller")
            .owns(Pod)
            .watches(Pod, map=adopters(DaemonSet, lambda each: each.spec.selector))
            .owns(ControllerRevision)
            .watches(Node, map=_everywhere)
            .options(concurrency=2)
            .run_with(self)
        )

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Take steps until there is nothing left to write."""
        for _ in range(_STEPS):
            owner = await ctx.client.find(DaemonSet, request.key)
            if owner is None or owner.metadata.deletion_timestamp is not None:
                return Done()
            step = _Step(ctx, owner)
            wrote = await step.take()
            if step.refused:
                return self.rejected(owner)
            if not wrote:
                wait = pods.next_available(step.pods, owner.spec.min_ready_seconds or 0, step.moment)
                return self.after(owner, wait)
        return Requeue()


def _everywhere(view: View[Node], stores: Stores) -> list[Key]:
    del view
    return [each.key for each in stores.list(DaemonSet)]


class _Step:
    """One step of one DaemonSet."""

    def __init__(self, ctx: Context, owner: DaemonSet) -> None:
        self._ctx = ctx
        self._owner = owner
        self._status = owner.status or DaemonSetStatus(
            current_number_scheduled=0, desired_number_scheduled=0, number_misscheduled=0, number_ready=0
        )
        self.moment: datetime = utc_now()
        self.pods: list[Pod] = []
        self.refused = False
        self._digest = ""
        self._nodes: dict[str, Node] = {}
        self._on: dict[str, list[Pod]] = {}

    async def take(self) -> bool:
        """Take the next step; returns whether it wrote anything."""
        ctx, owner = self._ctx, self._owner
        history = History(ctx, owner, owner.spec.template, self._status.collision_count)
        await history.read(owner.spec.selector)
        newest = await history.newest()
        self._digest = (newest.metadata.labels or {}).get(REVISION, "")
        self.pods = await claim(ctx, owner, await candidates(ctx, Pod, owner), owner.spec.selector)
        self._nodes = {node.metadata.name or "": node for node in await ctx.client.list(Node)}
        self._on = {}
        for pod in sorted(self.pods, key=_age):
            # A Pod that has ended and is being deleted takes no place.
            if pods.phase(pod) not in {"Succeeded", "Failed"} or pod.metadata.deletion_timestamp is None:
                self._on.setdefault(node_of(pod), []).append(pod)
        if await self._manage() or self.refused:
            return True
        live = {(pod.metadata.labels or {}).get(REVISION, "") for pod in self.pods}
        names = {
            each.metadata.name or "" for each in history.revisions if (each.metadata.labels or {}).get(REVISION) in live
        }
        names.add(newest.metadata.name or "")
        return await self._report(history.collisions) or await history.truncate(
            names, owner.spec.revision_history_limit
        )

    # Pods

    async def _manage(self) -> bool:
        """Ensure one Pod on each node that fits and none on the others; then continue the update."""
        missing: list[str] = []
        gone: list[Pod] = []
        for name, node in self._nodes.items():
            should_run, may_stay = pod_placement.fits(self._owner.spec.template.spec, node)
            here = self._on.get(name, [])
            if should_run and not here:
                missing.append(name)
            elif may_stay:
                ended = [pod for pod in here if pods.phase(pod) in {"Failed", "Succeeded"}]
                running = [pod for pod in here if pod not in ended and pod.metadata.deletion_timestamp is None]
                gone += [*ended, *self._excess(running)]
                if self._surge() and should_run and not running:
                    missing.append(name)
            else:
                gone += [pod for pod in here if pod.metadata.deletion_timestamp is None]
        gone += [
            pod
            for name, here in self._on.items()
            for pod in here
            if name not in self._nodes and not pod.spec.node_name and pod.metadata.deletion_timestamp is None
        ]
        if not missing and not gone and not self._is_manual():
            missing, gone = self._replacements()
        return await self._sync(missing, gone)

    def _excess(self, running: list[Pod]) -> list[Pod]:
        """The surplus Pods of a node; keeps the oldest. A surge keeps an old and a new one."""
        if not self._surge():
            return running[1:]
        new = [pod for pod in running if self._is_updated(pod)]
        old = [pod for pod in running if not self._is_updated(pod)]
        gone = [*new[1:], *old[1:]]
        if new and old and (not pods.is_ready(old[0]) or self._is_available(new[0])):
            gone.append(old[0])
        return gone

    def _replacements(self) -> tuple[list[str], list[Pod]]:
        """The nodes that get a new Pod beside the old one, and the old Pods to delete."""
        fitting = [
            name for name, node in self._nodes.items() if pod_placement.fits(self._owner.spec.template.spec, node)[0]
        ]
        surge, unavailable = self._surge(len(fitting)), self._unavailable(len(fitting))
        waiting = 0
        broken: list[Pod] = []
        replaceable: list[Pod] = []
        for name in dict.fromkeys([*fitting, *self._on]):
            here = [pod for pod in self._on.get(name, ()) if pod.metadata.deletion_timestamp is None]
            new = [pod for pod in here if self._is_updated(pod)]
            old = [pod for pod in here if not self._is_updated(pod)]
            if len(here) != 1:
                waiting += not surge or len(here) > 1
            elif new:
                waiting += not surge and not self._is_available(new[0])
            elif self._is_available(old[0]):
                replaceable.append(old[0])
            else:
                broken.append(old[0])
                waiting += not surge
        room = max(0, (surge or unavailable) - waiting)
        chosen = [*broken, *sorted(replaceable, key=_age)[:room]]
        return ([node_of(pod) for pod in chosen], []) if surge else ([], chosen)

    async def _sync(self, missing: list[str], gone: Iterable[Pod]) -> bool:
        ctx, owner, gone = self._ctx, self._owner, list(gone)
        following = iter(missing)
        errors: list[StatusError | None] = [
            await pods.slow_start(len(missing), lambda: pods.create(ctx, owner, self._new_pod(next(following)))),
            await pods.together(pods.delete(ctx, owner, pod) for pod in gone),
        ]
        self.refused = any(errors)
        return bool(missing or gone) and not self.refused

    def _new_pod(self, node: str) -> Pod:
        template = copy.deepcopy(self._owner.spec.template)
        metadata = template.metadata or ObjectMeta()
        generation = (self._owner.metadata.annotations or {}).get(_GENERATION_ANNOTATION)
        extra = {_GENERATION: generation} if generation is not None else {}
        template.metadata = replace(metadata, labels={**(metadata.labels or {}), **extra, REVISION: self._digest})
        template.spec.tolerations = pod_placement.daemon_tolerations(template.spec)
        here = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
        required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[here])])
        affinity = template.spec.affinity or Affinity()
        on_node = replace(
            affinity.node_affinity or NodeAffinity(), required_during_scheduling_ignored_during_execution=required
        )
        template.spec.affinity = replace(affinity, node_affinity=on_node)
        return pods.from_template(self._owner, template)

    # the update strategy

    def _is_manual(self) -> bool:
        strategy = self._owner.spec.update_strategy
        return strategy is not None and strategy.type == "OnDelete"

    def _rolling(self) -> RollingUpdateDaemonSet | None:
        strategy = self._owner.spec.update_strategy
        return None if strategy is None or self._is_manual() else strategy.rolling_update

    def _surge(self, number: int = 1) -> int:
        """How many Pods beyond the number of nodes are allowed; for one node, whether two are."""
        rolling = self._rolling()
        value = rolling.max_surge if rolling is not None and rolling.max_surge is not None else 0
        return scaled_value(value, number, rounding="up")

    def _unavailable(self, number: int) -> int:
        rolling = self._rolling()
        value = rolling.max_unavailable if rolling is not None and rolling.max_unavailable is not None else 1
        return scaled_value(value, number, rounding="up")

    def _is_updated(self, pod: Pod) -> bool:
        labels = pod.metadata.labels or {}
        generation = (self._owner.metadata.annotations or {}).get(_GENERATION_ANNOTATION)
        return labels.get(REVISION) == self._digest or (
            generation is not None and labels.get(_GENERATION) == generation
        )

    def _is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self._owner.spec.min_ready_seconds or 0, self.moment)

    # status

    async def _report(self, collisions: int | None) -> bool:
        owner, wanted, misplaced = self._owner, 0, 0
        first: list[Pod] = []
        for name, node in self._nodes.items():
            here = self._on.get(name, [])
            if pod_placement.fits(owner.spec.template.spec, node)[0]:
                wanted += 1
                first += here[:1]
            else:
                misplaced += bool(here)
        available = sum(map(self._is_available, first))
        status = replace(
            self._status,
            observed_generation=owner.metadata.generation,
            desired_number_scheduled=wanted,
            current_number_scheduled=len(first),
            number_misscheduled=misplaced,
            number_ready=sum(map(pods.is_ready, first)),
            updated_number_scheduled=sum(map(self._is_updated, first)) or None,
            number_available=available or None,
            number_unavailable=wanted - available or None,
            collision_count=collisions,
        )
        return await write_status(self._ctx, owner, status)


def _age(pod: Pod) -> tuple[bool, str, str]:
    """A sort key for Pods: those on a node first, then from old to new."""
    return not pod.spec.node_name, str(pod.metadata.creation_timestamp), pod.metadata.name or ""
