"""Ready shapes of controllers: generators, state machines, finalizers, readiness, external effects.

Guarantees
- A resource's children are declared as a whole: what is missing is applied, what is no longer declared is pruned, and
  only what is provably ours.
- **Deletion is a state.** A finalizer is set before the outside world is touched and removed only after clean-up;
  another controller's finalizer is never lost.
- A state machine stores no current state: every pass starts at the first state and finds out from the world.
- An external effect happens exactly once where the outside can be asked for it by key, at least once otherwise.
"""

from steersman.controller import Done, RequeueAfter
from steersman.patterns.children import ChildKind, Children, child
from steersman.patterns.external import Api, Broken, External, ExternalKey, Gone, Present, Refused, Working
from steersman.patterns.finalizers import add_finalizer, has_finalizer, remove_finalizer
from steersman.patterns.generates import GenerateOperator, ReconcileOperator, generates, reconciles
from steersman.patterns.machine import StateMachine, finalizer, state
from steersman.patterns.outputs import ChildOptions, Output, Outputs
from steersman.patterns.readiness import Readiness, readiness
from steersman.patterns.reports import Report, Seen, reports
from steersman.patterns.steps import Failed, Goto, Next, Step, Wait

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
    "readiness",
    "reconciles",
    "remove_finalizer",
    "reports",
    "state",
]
