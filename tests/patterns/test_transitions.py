"""How a pass goes on, from what a state returned and what became of its children; and what is said of wrong answers."""

from __future__ import annotations

import pytest

from samples.postgres import Postgres, deployment, postgres
from steersman.controller import Done, RequeueAfter
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import Children, Failed, Goto, Next, Outputs, Wait
from steersman.patterns.children.apply import Applied, StateResult
from steersman.patterns.children.problems import Problem
from steersman.patterns.machine import MachineGraph, StateNode
from steersman.patterns.machine.transitions import Complete, Stopped, clean_up_transition, transition_of
from steersman.patterns.readiness import Readiness
from steersman.patterns.status.conditions import Visit, is_complete, observe_states

STORAGE = StateNode(name="storage", condition="StorageReady", next="primary", returns=frozenset({"Next", "Wait"}))
PRIMARY = StateNode(
    name="primary",
    condition="PrimaryReady",
    next="replicas",
    to=("degraded",),
    returns=frozenset({"Next", "Goto"}),
)
REPLICAS = StateNode(name="replicas", condition="ReplicasReady", returns=frozenset({"Done"}))
DEGRADED = StateNode(name="degraded", condition="Degraded", returns=frozenset({"Done"}))
GRAPH = MachineGraph(
    name="Cluster", kind="Postgres", states=(STORAGE, PRIMARY, REPLICAS, DEGRADED), finalizer="clean_up"
)

NOTHING = StateResult(())
READY = Readiness(ready=True, reason="Ready", message="")


def children(*states: Readiness | Problem) -> StateResult:
    """Deployments web-0, web-1, ... that are so."""
    out = Outputs(postgres(), Children(Postgres, (Deployment, ConfigMap), where="a test"))
    applied = []
    for number, found in enumerate(states):
        out.apply(deployment(f"web-{number}"))
        output = out.declared[-1]
        problem = found if isinstance(found, Problem) else None
        ready = READY if isinstance(found, Problem) else found
        applied.append(Applied(output, output.child, ready, problem))
    return StateResult(tuple(applied), "default")


UNREADY = Readiness(ready=False, reason="Rolling", message="0 of 1 replica is ready")
WORDS = "Deployment web-1: 0 of 1 replica is ready"
NOT_OURS = Problem("NotOurs", "Deployment default/web-0 belongs to another owner", terminal=True)


@pytest.mark.parametrize(
    ("node", "step", "result", "transition"),
    [
        (STORAGE, Next(), NOTHING, Complete("primary")),
        (STORAGE, Next(), children(READY), Complete("primary", "its child is ready")),
        (STORAGE, Next(), children(READY, READY), Complete("primary", "its 2 children are ready")),
        (STORAGE, Next(), children(READY, UNREADY), Stopped("ChildrenNotReady", WORDS, finished=True)),
        (
            STORAGE,
            Next(wait=False),
            children(READY, UNREADY),
            Complete("primary", "it does not wait for its 2 children"),
        ),
        (PRIMARY, Goto("degraded"), NOTHING, Complete("degraded")),
        (PRIMARY, Goto("degraded"), children(READY, UNREADY), Stopped("ChildrenNotReady", WORDS, finished=True)),
        (
            PRIMARY,
            Goto("degraded", wait=False),
            children(UNREADY),
            Complete("degraded", "it does not wait for its child"),
        ),
        (REPLICAS, Done(), children(READY), Complete(None, "its child is ready")),
        (REPLICAS, Done(), children(READY, UNREADY), Stopped("ChildrenNotReady", WORDS, finished=True)),
        (STORAGE, Wait("for rain"), NOTHING, Stopped("Waiting", "for rain")),
        (STORAGE, Wait("for rain", reason="Dry", after=5), NOTHING, Stopped("Dry", "for rain", 5)),
        (STORAGE, Wait("for rain"), children(READY, UNREADY), Stopped("Waiting", "for rain")),
        (STORAGE, Wait(), children(READY, UNREADY), Stopped("ChildrenNotReady", WORDS)),
        (STORAGE, Wait(after=5), NOTHING, Stopped("Waiting", "checks again in 5 s", 5)),
        (
            STORAGE,
            Wait(),
            children(READY),
            Stopped(
                "Waiting", "storage waits, although all its children are ready; return Next() or Done() to continue"
            ),
        ),
        (STORAGE, Failed("no image", reason="NoImage"), NOTHING, Stopped("NoImage", "no image", wrong=True)),
        # what cannot be applied stops every state, whatever it said
        (STORAGE, Next(), children(NOT_OURS), Stopped("NotOurs", NOT_OURS.message, wrong=True, finished=True)),
        (
            STORAGE,
            Next(wait=False),
            children(NOT_OURS),
            Stopped("NotOurs", NOT_OURS.message, wrong=True, finished=True),
        ),
        (STORAGE, Wait("for rain"), children(NOT_OURS), Stopped("NotOurs", NOT_OURS.message, wrong=True)),
    ],
)
def test_verdicts(node, step, result, transition):
    assert transition_of(GRAPH, node, step, result) == transition


@pytest.mark.parametrize(
    ("node", "returned", "words"),
    [
        (
            STORAGE,
            None,
            "Cluster.storage returned None: on this path it ends without return; return Next() when it is complete, Wait(...) until then",
        ),
        (
            REPLICAS,
            None,
            "Cluster.replicas returned None: on this path it ends without return; return Done() when it is complete, Wait(...) until then",
        ),
        (
            STORAGE,
            True,
            "Cluster.storage returned True, which is not a step; return Next() when it is complete, Wait(...) until then",
        ),
        (STORAGE, Next, "Cluster.storage returned the class Next instead of a step; call it: return Next(...)"),
        (
            STORAGE,
            Goto("degraded"),
            "Cluster.storage returned Goto('degraded'), but this state has no to=; add 'degraded' there if it is a state",
        ),
        (
            PRIMARY,
            Goto("storage"),
            (
                "Cluster.primary returned Goto('storage'), but to= of this state names degraded; add 'storage' there if it is a"
                " state"
            ),
        ),
        (
            REPLICAS,
            Next(),
            ("Cluster.replicas returned Next(), but its annotation has no Next; write -> Next | ..., or return Done()"),
        ),
        (
            STORAGE,
            Wait(),
            (
                "Cluster.storage returned Wait() without a message and without a child to wait for;"
                ' declare one with out.apply(...), or write Wait("what for")'
            ),
        ),
    ],
)
def test_what_a_state_must_not_return(node, returned, words):
    with pytest.raises(TypeError) as caught:
        transition_of(GRAPH, node, returned, NOTHING)
    assert str(caught.value) == words


def test_what_a_finalizer_may_return():
    assert clean_up_transition(GRAPH, Done(), NOTHING) == Complete(None)
    assert clean_up_transition(GRAPH, Wait("for rain"), NOTHING) == Stopped("Waiting", "for rain")
    with pytest.raises(TypeError) as caught:
        clean_up_transition(GRAPH, Next(), NOTHING)
    assert str(caught.value) == (
        "Cluster.clean_up returned Next(wait=True), but no state follows a finalizer; return Done()"
        " when everything is cleaned up, Wait(...) until then"
    )


def test_a_machine_of_one_function_has_one_condition():
    node = StateNode(name="site", condition="Ready")
    graph = MachineGraph(name="site", kind="Site", states=(node,))
    for step in (Next(), Done()):
        transition = transition_of(graph, node, step, children(READY))
        assert transition == Complete(None, "its child is ready")
        said = observe_states(graph, [Visit(node, transition)], ())
        assert [(each.type, each.status, each.message) for each in said.set] == [
            ("Ready", "True", "its child is ready")
        ]


def observed(visits, present=()) -> dict[str, str]:
    said = observe_states(GRAPH, visits, present)
    return {each.type: each.status for each in said.set} | dict.fromkeys(said.removed, "-")


def test_the_conditions_of_a_pass():
    done = {name: Visit(node, Complete(node.next)) for name, node in zip("spr", GRAPH.states, strict=False)}
    waits = Stopped("Waiting", "for rain")
    assert observed([Visit(STORAGE, waits)]) == {
        "Ready": "False",
        "StorageReady": "False",
        "PrimaryReady": "Unknown",
        "ReplicasReady": "Unknown",
        "Degraded": "-",
        "Suspended": "-",
    }
    # a way aside that has been gone is not forgotten as long as it is open
    assert observed([Visit(STORAGE, waits)], {"Degraded"})["Degraded"] == "Unknown"
    assert observed([done["s"], done["p"], done["r"]]) == {
        "Ready": "True",
        "StorageReady": "True",
        "PrimaryReady": "True",
        "ReplicasReady": "True",
        "Degraded": "-",
        "Suspended": "-",
    }
    aside = [done["s"], Visit(PRIMARY, Complete("degraded")), Visit(DEGRADED, waits)]
    assert observed(aside, {"ReplicasReady"}) == {
        "Ready": "False",
        "StorageReady": "True",
        "PrimaryReady": "True",
        "ReplicasReady": "-",
        "Degraded": "False",
        "Suspended": "-",
    }
    assert not is_complete(aside)
    assert is_complete([done["s"], done["p"], done["r"]])


def test_what_is_complete_may_be_looked_at_again():
    assert transition_of(GRAPH, REPLICAS, RequeueAfter(60), NOTHING) == Complete(None, "", 60.0)
    unready = Readiness(ready=False, reason="Replicas", message="0 of 1 replica is ready")
    transition = transition_of(GRAPH, REPLICAS, RequeueAfter(60), children(unready))
    words = "Deployment web-0: 0 of 1 replica is ready"
    assert transition == Stopped("ChildrenNotReady", words, 60.0, finished=True), "a renewal does not wait for it"
    for step in (RequeueAfter(60), Wait("for a call", after=60)):
        transition = transition_of(GRAPH, REPLICAS, step, children(NOT_OURS))
        assert isinstance(transition, Stopped)
        assert transition.after == 60
    with pytest.raises(TypeError, match="no state follows a finalizer"):
        clean_up_transition(GRAPH, RequeueAfter(60), NOTHING)
