"""Shapes of operators: generators, state machines, finalizers, readiness, external effects.

Guarantees
- You declare a resource's children as a whole. Steersman applies missing children, prunes children that are no longer
  declared, and deletes only objects that are provably its own.
- **Deletion is a state.** Steersman sets a finalizer before it touches anything outside of the cluster and removes it only
  after clean-up. It never drops the finalizer of another controller.
- A state machine stores no current state: every reconcile starts with the first state and reads the cluster.
- An external effect happens exactly once if the outside can be searched by key, at least once otherwise.
"""

from steersman.controller import Done, RequeueAfter
from steersman.patterns.children import ChildKind, ChildOptions, Children, Output, Outputs, child
from steersman.patterns.external import Api, Broken, External, ExternalKey, Gone, Present, Refused, Working
from steersman.patterns.machine.finalizers import add_finalizer, has_finalizer, remove_finalizer
from steersman.patterns.machine.steps import Failed, Goto, Next, Step, Wait
from steersman.patterns.operators import GenerateOperator, ReconcileOperator, generates, reconciles
from steersman.patterns.readiness import Readiness, readiness_of
from steersman.patterns.reports import Report, Seen, reports
from steersman.patterns.state_machine import StateMachine, finalizer, state

__all__ = [
    "Api",
    "Broken",
    "ChildKind",
    "ChildOptions",
    "Children",
    "Done",
    "External",
    "ExternalKey",
    "Failed",
    "GenerateOperator",
    "Gone",
    "Goto",
    "Next",
    "Output",
    "Outputs",
    "Present",
    "Readiness",
    "ReconcileOperator",
    "Refused",
    "Report",
    "RequeueAfter",
    "Seen",
    "StateMachine",
    "Step",
    "Wait",
    "Working",
    "add_finalizer",
    "child",
    "finalizer",
    "generates",
    "has_finalizer",
    "readiness_of",
    "reconciles",
    "remove_finalizer",
    "reports",
    "state",
]
