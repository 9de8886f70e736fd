"""Shapes of operators: generators, state machines, finalizers, readiness, external effects.

Guarantees
- You declare a resource's children as a whole. Steersman applies missing children, prunes children that are no longer
  declared, and deletes only objects that are provably its own.
- **Deletion is a state.** Steersman sets a finalizer before it touches anything outside of the cluster and removes it only
  after clean-up. It never drops the finalizer of another controller.
- A state machine stores no current state: every reconcile starts with the first state and reads the cluster.
- An external effect happens exactly once if the outside can be searched by key, at least once otherwise.
"""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: many programs need only a few of these names.
if TYPE_CHECKING:
    from steersman.controller import Done as Done, RequeueAfter as RequeueAfter
    from steersman.patterns.children import (
        ChildIdentity as ChildIdentity,
        ChildKind as ChildKind,
        ChildOptions as ChildOptions,
        Children as Children,
        Output as Output,
        Outputs as Outputs,
        child as child,
    )
    from steersman.patterns.daemons import (
        Daemon as Daemon,
        DaemonRun as DaemonRun,
        DaemonRuns as DaemonRuns,
        daemon as daemon,
    )
    from steersman.patterns.external import (
        Absent as Absent,
        Api as Api,
        Broken as Broken,
        CallLimit as CallLimit,
        External as External,
        ExternalKey as ExternalKey,
        Present as Present,
        ServiceBusy as ServiceBusy,
        ServiceRefused as ServiceRefused,
        Working as Working,
    )
    from steersman.patterns.machine import MachineGraph as MachineGraph
    from steersman.patterns.machine.finalizers import (
        add_finalizer as add_finalizer,
        has_finalizer as has_finalizer,
        remove_finalizer as remove_finalizer,
    )
    from steersman.patterns.machine.steps import (
        Failed as Failed,
        Goto as Goto,
        Next as Next,
        Step as Step,
        Wait as Wait,
    )
    from steersman.patterns.operators import (
        GenerateOperator as GenerateOperator,
        ReconcileOperator as ReconcileOperator,
        generates as generates,
        reconciles as reconciles,
    )
    from steersman.patterns.readiness import Readiness as Readiness, readiness_of as readiness_of
    from steersman.patterns.reconciler import MachineReconciler as MachineReconciler
    from steersman.patterns.state_machine import StateMachine as StateMachine, finalizer as finalizer, state as state
    from steersman.patterns.status_reports import Report as Report, Seen as Seen, reports as reports
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.controller": ["Done", "RequeueAfter"],
            "steersman.patterns.children": [
                "ChildIdentity",
                "ChildKind",
                "ChildOptions",
                "Children",
                "Output",
                "Outputs",
                "child",
            ],
            "steersman.patterns.daemons": ["Daemon", "DaemonRun", "DaemonRuns", "daemon"],
            "steersman.patterns.external": [
                "Absent",
                "Api",
                "Broken",
                "CallLimit",
                "External",
                "ExternalKey",
                "Present",
                "ServiceBusy",
                "ServiceRefused",
                "Working",
            ],
            "steersman.patterns.machine": ["MachineGraph"],
            "steersman.patterns.machine.finalizers": ["add_finalizer", "has_finalizer", "remove_finalizer"],
            "steersman.patterns.machine.steps": ["Failed", "Goto", "Next", "Step", "Wait"],
            "steersman.patterns.operators": ["GenerateOperator", "ReconcileOperator", "generates", "reconciles"],
            "steersman.patterns.readiness": ["Readiness", "readiness_of"],
            "steersman.patterns.reconciler": ["MachineReconciler"],
            "steersman.patterns.state_machine": ["StateMachine", "finalizer", "state"],
            "steersman.patterns.status_reports": ["Report", "Seen", "reports"],
        },
    )

__all__ = [
    "Absent",
    "Api",
    "Broken",
    "CallLimit",
    "DaemonRun",
    "External",
    "ExternalKey",
    "Present",
    "Readiness",
    "Seen",
    "ServiceBusy",
    "ServiceRefused",
    "Step",
    "Working",
    "add_finalizer",
    "child",
    "daemon",
    "readiness_of",
    "remove_finalizer",
]
