"""Decide what follows a state, from the step that it returned and the results of its children. Pure.

Guarantees
- A state is complete only if all its children were applied and, unless declared with ``wait=False``, are ready.
- The time of a `RequeueAfter` or `Wait` comes also while a child is not ready, or cannot be applied.
- A wrong return value raises a `TypeError` that names the state and says what to return instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

import msgspec

from steersman.controller import Done, RequeueAfter
from steersman.patterns.children import ChildIdentity
from steersman.patterns.children.apply import StateResult
from steersman.patterns.machine.graph import STEPS, MachineGraph, StateNode
from steersman.patterns.machine.steps import Answer, Failed, Goto, Next, Step, Wait

#: The reason of a state that waits for its children.
CHILDREN_NOT_READY = "ChildrenNotReady"
#: How many pending children a message names.
_NAMED = 5


class Complete(msgspec.Struct, frozen=True):
    """The state is complete."""

    #: The state that runs next; None at the end of the reconcile.
    follows: str | None
    message: str = ""
    #: Reconcile again after so many seconds.
    after: float | None = None


class Stopped(msgspec.Struct, frozen=True):
    """The reconcile ends here."""

    reason: str
    message: str
    #: Reconcile again after so many seconds.
    after: float | None = None
    #: Waiting does not help: a user has to change something.
    wrong: bool = False
    #: The state declared all its children; only their readiness is missing.
    finished: bool = False


Transition: TypeAlias = Complete | Stopped


def transition_of(graph: MachineGraph, node: StateNode, returned: object, result: StateResult) -> Transition:
    """What follows a state, from its return value and the results of its children."""
    step = _as_step(graph, node.name, returned, ending=node.next is None and not node.to)
    finished = isinstance(step, Next | Goto | Done | RequeueAfter)
    at = step.delay if isinstance(step, RequeueAfter) else step.after if isinstance(step, Wait) else None
    for problem in result.problems:
        after = min((seconds for seconds in (result.again, at) if seconds is not None), default=None)
        return Stopped(problem.reason, problem.message, after=after, wrong=problem.wrong, finished=finished)
    match step:
        case Next(wait=wait):
            return _completed(_next_of(graph, node), result, wait=wait)
        case Goto(state=target, wait=wait):
            return _completed(_target_of(graph, node, target), result, wait=wait)
        case Done() | RequeueAfter():
            return _completed(None, result, wait=True, after=at)
        case Failed(message=message, reason=reason):
            return Stopped(reason, message or "it failed without a message", wrong=True)
        case Wait():
            return _waiting(graph, node.name, step, result)


def clean_up_transition(graph: MachineGraph, returned: object, result: StateResult) -> Transition:
    """What follows a finalizer, from its return value and the results of its children."""
    name = graph.finalizer or "clean-up"
    step = _as_step(graph, name, returned, ending=True)
    if isinstance(step, Next | Goto | RequeueAfter):
        raise TypeError(
            f"{graph.name}.{name} returned {_shown(step)}, but no state follows a finalizer; return Done()"
            " when everything is cleaned up, Wait(...) until then"
        )
    if result.skipped and result.ready and isinstance(step, Wait) and not step.message:
        return Complete(None)  # it waits for its children: those that can exist are ready
    return transition_of(graph, StateNode(name=name, condition=graph.ready), step, result)


def announce_pending(transition: Transition, pending: Sequence[ChildIdentity]) -> Transition:
    """Add to the message of a stopped state the children that Steersman deletes once all states are complete."""
    if not isinstance(transition, Stopped) or not pending:
        return transition
    named = ", ".join(map(str, pending[:_NAMED]))
    more = f" and {len(pending) - _NAMED} more" if len(pending) > _NAMED else ""
    which = "which is" if len(pending) == 1 else "which are"
    note = f"after that, Steersman deletes {named}{more}, {which} no longer declared"
    return msgspec.structs.replace(transition, message=f"{transition.message}; {note}" if transition.message else note)


def _as_step(graph: MachineGraph, name: str, returned: object, *, ending: bool) -> Step:
    if isinstance(returned, Next | Goto | Wait | Done | RequeueAfter | Failed):
        return returned
    instead = "Done()" if ending else "Next()"
    if isinstance(returned, type) and returned.__name__ in STEPS:
        step = returned.__name__
        words = f"the class {step} instead of a step; call it: return {step}(...)"
    elif isinstance(returned, Answer):
        words = (
            f"{_shown(returned)}, the answer of an External; match it: return {instead} for Present(found) or Absent(),"
            " and pending.wait otherwise"
        )
    elif returned is None:
        words = f"None: on this path it ends without return; return {instead} when it is complete, Wait(...) until then"
    else:
        words = f"{_shown(returned)}, which is not a step; return {instead} when it is complete, Wait(...) until then"
    # a function is its own only state
    raise TypeError(f"{name if name == graph.name else f'{graph.name}.{name}'} returned {words}")


def _next_of(graph: MachineGraph, node: StateNode) -> str | None:
    if node.next is None and node.returns:
        raise TypeError(
            f"{graph.name}.{node.name} returned Next(), but its annotation has no Next; write -> Next | ...,"
            " or return Done()"
        )
    return node.next


def _target_of(graph: MachineGraph, node: StateNode, target: object) -> str:
    if target not in node.to:
        named = f"to= of this state names {', '.join(node.to)}" if node.to else "this state has no to="
        raise TypeError(
            f"{graph.name}.{node.name} returned Goto({target!r}), but {named}; add {target!r} there if it is a state"
        )
    return cast("str", target)


def _completed(follows: str | None, result: StateResult, *, wait: bool, after: float | None = None) -> Transition:
    count = len(result.children)
    children = "its child" if count == 1 else f"its {count} children"
    unready = result.first_unready
    if unready is None:
        return Complete(follows, f"{children} {'is' if count == 1 else 'are'} ready" if count else "", after)
    if not wait:
        return Complete(follows, f"it does not wait for {children}", after)
    return Stopped(CHILDREN_NOT_READY, unready[1], after, finished=True)


def _waiting(graph: MachineGraph, name: str, step: Wait, result: StateResult) -> Stopped:
    if step.message:
        return Stopped(step.reason, step.message, step.after)
    if not result.children and step.after is None:
        raise TypeError(
            f"{graph.name}.{name} returned Wait() without a message and without a child to wait for; declare"
            ' one with out.apply(...), or write Wait("what for")'
        )
    unready = result.first_unready
    if unready is not None:
        return Stopped(CHILDREN_NOT_READY, unready[1], step.after)
    if step.after is not None:
        return Stopped(step.reason, f"checks again in {step.after:g} s", step.after)
    return Stopped(
        step.reason, f"{name} waits, although all its children are ready; return Next() or Done() to continue"
    )


def _shown(value: object) -> str:
    return repr(value)[:80]
