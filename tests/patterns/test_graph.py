"""The graph of a state machine, and what is said where a class is written wrongly."""

from __future__ import annotations

import pytest

from samples.postgres import Postgres
from steersman.controller import Done
from steersman.kinds.apps_v1 import StatefulSet
from steersman.kinds.core_v1 import Service
from steersman.patterns import Failed, Goto, Next, Outputs, StateMachine, Step, Wait, finalizer, state
from steersman.patterns.machine import StateNode


class Cluster(StateMachine[Postgres], children=(StatefulSet, Service)):
    @state(condition="StorageReady")
    async def storage(self, pg: Postgres, out: Outputs) -> Next | Wait:
        """Room for the data.

        More words, which nobody sees.
        """
        return Next()

    @state(condition="PrimaryReady", to=("degraded",))
    async def primary(self, pg: Postgres, out: Outputs) -> Next | Goto | Wait:
        """The one that writes."""
        return Next()

    @state(condition="ReplicasReady")
    async def replicas(self, pg: Postgres, out: Outputs) -> Done | Wait | Failed:
        return Done()

    @state(condition="Degraded")
    async def degraded(self, pg: Postgres, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done | Wait:
        """A last backup."""
        return Done()


def test_a_class_of_states_is_a_graph():
    graph = Cluster.machine
    assert (graph.name, graph.kind, graph.finalizer, graph.finalizer_words) == (
        "Cluster",
        "Postgres",
        "clean_up",
        "A last backup.",
    )
    assert graph.states[:2] == (
        StateNode(
            name="storage",
            condition="StorageReady",
            next="primary",
            words="Room for the data.",
            returns=frozenset({"Next", "Wait"}),
        ),
        StateNode(
            name="primary",
            condition="PrimaryReady",
            to=("degraded",),
            next="replicas",
            words="The one that writes.",
            returns=frozenset({"Next", "Goto", "Wait"}),
        ),
    )
    assert graph.reachable("storage") == ("primary", "replicas", "degraded")
    assert graph.usual_way("storage") == ("primary", "replicas")
    assert graph.conditions == ("Ready", "StorageReady", "PrimaryReady", "ReplicasReady", "Degraded")


def test_a_derived_machine_has_the_states_of_the_one_it_derives_from():
    class Guarded(Cluster, name="guarded", ready="GuardReady"):
        @state(condition="GuardsReady")
        async def replicas(self, pg: Postgres, out: Outputs) -> Done | Wait:
            return Done()

    assert Guarded.machine.names == Cluster.machine.names
    assert Guarded.machine.node("replicas").condition == "GuardsReady"
    assert Guarded.machine.ready == "GuardReady"
    assert {each.kind for each in Guarded.children.kinds} == {StatefulSet, Service}


def test_a_machine_of_any_kind_is_checked_when_its_kind_is_known():
    from typing import TypeVar

    from steersman.objects import Object

    T = TypeVar("T", bound=Object)

    class Anything(StateMachine[T]):
        @state(condition="SomethingReady")
        async def something(self, obj: T, out: Outputs) -> Done:
            return Done()

    class Something(Anything[Postgres]): ...

    assert Something.machine.kind == "Postgres"
    assert not hasattr(Anything, "machine")


WHERE = "class Wrong(StateMachine[Postgres])"


def refused(define) -> str:
    with pytest.raises(TypeError) as caught:
        define()
    return str(caught.value)


def test_no_states():
    def define():
        class Wrong(StateMachine[Postgres]): ...

    assert refused(define) == (
        f"{WHERE} has no states; write at least one:"
        ' @state(condition="StorageReady") async def storage(self, obj, out) -> Done | Wait'
    )


def test_no_kind():
    def define():
        class Wrong(StateMachine): ...

    assert refused(define) == (
        "class Wrong does not say which kind it reconciles; write class Wrong(StateMachine[Postgres])"
    )


def test_a_kind_that_is_none():
    def define():
        class Wrong(StateMachine[int]): ...  # type: ignore[type-var]

    assert refused(define) == (
        "class Wrong: StateMachine[int] needs a kind, a class declared with group= and version=; int is none"
    )


def test_a_state_that_nothing_leads_to():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

            @state(condition="PrimaryReady")
            async def primary(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f'{WHERE}, state primary: no state leads there; let the one before return Next, or name it in another\'s to=("primary",)'
    )


def test_a_way_to_nowhere():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady", to=("primry",))
            async def storage(self, pg: Postgres, out: Outputs) -> Next | Goto: ...

            @state(condition="PrimaryReady")
            async def primary(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state storage: to= names 'primry', which is no state; there are storage, primary"
    )


def test_a_circle():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Next | Wait: ...

            @state(condition="PrimaryReady", to=("storage",))
            async def primary(self, pg: Postgres, out: Outputs) -> Done | Goto: ...

    assert refused(define) == (
        f"{WHERE}: the states storage -> primary -> storage go in a circle, so that a pass would never end; to try again later"
        " return Wait(...): the next pass begins with the first state anyway"
    )


def test_no_annotation():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg, out): ...

    assert refused(define) == (
        f"{WHERE}, state storage does not say which steps it returns, from which the graph is read; write -> Next | Wait"
    )


def test_an_annotation_that_names_something_else():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Next | None: ...  # type: ignore[type-var]

    assert refused(define) == (
        f"{WHERE}, state storage: its annotation names None, which is no step; there are"
        " Next, Goto, Wait, Done, RequeueAfter, Failed: write -> Next | Wait"
    )


def test_goto_without_a_target():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Step: ...

    assert refused(define) == (
        f"{WHERE}, state storage: its annotation names Goto, but to= is missing;"
        ' write @state(condition=..., to=("...",)), or leave Goto out'
    )


def test_targets_without_goto():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady", to=("primary",))
            async def storage(self, pg: Postgres, out: Outputs) -> Next: ...

            @state(condition="PrimaryReady")
            async def primary(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state storage: to= says where a Goto may lead, but its annotation names none; write -> ... | Goto, or leave out to="
    )


def test_next_after_the_last():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Next | Wait: ...

    assert refused(define) == (
        f"{WHERE}, state storage: it returns Next, but no state is written after it; return Done where all is done"
    )


def test_a_state_that_cannot_complete():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Wait | Failed: ...

    assert refused(define) == (
        f"{WHERE}, state storage: it can never complete, since its annotation names only Wait and Failed;"
        " write what follows: Next, Goto or Done"
    )


def test_a_finalizer_that_goes_on():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

            @finalizer  # type: ignore[type-var]
            async def clean_up(self, pg: Postgres, out: Outputs) -> Next | Wait: ...

    assert refused(define) == (
        f"{WHERE}, finalizer clean_up: its annotation names Next, but nothing follows a finalizer;"
        " return Done when everything is cleaned up, Wait until then"
    )


def test_two_finalizers():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

            @finalizer
            async def clean_up(self, pg: Postgres, out: Outputs) -> Done: ...

            @finalizer
            async def wipe(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == f"{WHERE}: clean_up and wipe are both finalizers; write one, which calls the other"


def test_two_states_with_one_condition():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Next: ...

            @state(condition="StorageReady")
            async def primary(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state primary: condition StorageReady is that of state storage already;"
        " give each state a condition of its own"
    )


@pytest.mark.parametrize("condition", ["storage-ready", "storageReady", "", "Storage Ready"])
def test_a_condition_in_another_case(condition):
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition=condition)
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state storage: condition={condition!r} is no name of a condition; write it in CamelCase,"
        ' such as "StorageReady"'
    )


@pytest.mark.parametrize("condition", ["Ready", "Suspended"])
def test_a_condition_that_is_the_machines_own(condition):
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition=condition)
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state storage: the machine sets condition {condition} itself; name the state's own after what it is about,"
        ' such as "StorageReady"'
    )


def test_a_state_that_is_not_async():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")  # type: ignore[type-var]
            def storage(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state storage is not async; write async def storage(self, obj, out) -> Next | Wait"
    )


def test_a_state_without_outputs():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state storage cannot be called with an object and outputs;"
        " write async def storage(self, obj, out) -> Next | Wait"
    )


def test_a_state_that_is_hidden_by_a_method():
    def define():
        class Wrong(Cluster):
            async def storage(self, pg: Postgres, out: Outputs) -> Next | Wait: ...

    assert refused(define) == (
        "class Wrong: storage is a state of a class that this one is derived from; write @state(...)"
        " above it here too, or give it another name"
    )


def test_a_state_with_a_name_that_every_machine_has():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="PlanReady")
            async def plan(self, pg: Postgres, out: Outputs) -> Done: ...  # type: ignore[override]

    assert refused(define) == (f"{WHERE}, state plan: every machine has a plan of its own; give the state another name")


def test_a_child_that_is_no_kind():
    def define():
        class Wrong(StateMachine[Postgres], children=(StatefulSet, "Service")):  # type: ignore[arg-type]
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define).startswith(f"{WHERE}: children")


def test_a_name_where_several_are_asked_for():
    assert refused(lambda: state(condition="StorageReady", to="degraded")) == (
        '@state(condition="StorageReady"): to= are several names; write to=("degraded",)'
    )


def test_a_state_without_a_condition():
    assert refused(lambda: state(condition=lambda: None)) == (  # type: ignore[arg-type]
        '@state needs the name of its condition: write @state(condition="StorageReady")'
    )


@pytest.mark.parametrize(("step", "name"), [(Wait, "Wait"), (Failed, "Failed")])
def test_a_reason_that_is_a_sentence(step, name):
    with pytest.raises(ValueError, match="the reason of a condition is one word") as caught:
        step("the image is missing", reason="image missing")
    assert str(caught.value) == (
        f"{name}(reason='image missing'): the reason of a condition is one word for programs, such as ImageMissing;"
        " the message is the place for a sentence"
    )
