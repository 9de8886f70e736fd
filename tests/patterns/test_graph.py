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

        More words, which are not shown.
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
        "class Wrong: StateMachine[int] needs a kind, a class declared with group= and version=; int is not one"
    )


def test_a_state_that_nothing_leads_to():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

            @state(condition="PrimaryReady")
            async def primary(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f'{WHERE}, state primary: no state leads to it; let the state before it return Next, or add it to another state: to=("primary",)'
    )


def test_a_way_to_nowhere():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady", to=("primry",))
            async def storage(self, pg: Postgres, out: Outputs) -> Next | Goto: ...

            @state(condition="PrimaryReady")
            async def primary(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state storage: to= names 'primry', which is not a state; the states are storage, primary"
    )


def test_a_circle():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Next | Wait: ...

            @state(condition="PrimaryReady", to=("storage",))
            async def primary(self, pg: Postgres, out: Outputs) -> Done | Goto: ...

    assert refused(define) == (
        f"{WHERE}: the states storage -> primary -> storage form a cycle, so a reconcile would never end; to retry later,"
        " return Wait(...): the next reconcile starts with the first state"
    )


def test_no_annotation():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg, out): ...

    assert refused(define) == (
        f"{WHERE}, state storage has no return annotation, from which Steersman reads the graph; write -> Next | Wait"
    )


def test_an_annotation_that_names_something_else():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Next | None: ...  # type: ignore[type-var]

    assert refused(define) == (
        f"{WHERE}, state storage: its annotation has None, which is not a step; the steps are"
        " Next, Goto, Wait, Done, RequeueAfter, Failed: write -> Next | Wait"
    )


def test_goto_without_a_target():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Step: ...

    assert refused(define) == (
        f"{WHERE}, state storage: its annotation has Goto, but to= is missing;"
        ' write @state(condition=..., to=("...",)), or remove Goto'
    )


def test_targets_without_goto():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady", to=("primary",))
            async def storage(self, pg: Postgres, out: Outputs) -> Next: ...

            @state(condition="PrimaryReady")
            async def primary(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state storage: to= lists where a Goto may lead, but its annotation has no Goto; write -> ... | Goto, or remove to="
    )


def test_next_after_the_last():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Next | Wait: ...

    assert refused(define) == (f"{WHERE}, state storage: it returns Next, but no state follows it; return Done")


def test_a_state_that_cannot_complete():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Wait | Failed: ...

    assert refused(define) == (
        f"{WHERE}, state storage: it can never complete, because its annotation has only Wait and Failed;"
        " add Next, Goto or Done"
    )


def test_a_finalizer_that_goes_on():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

            @finalizer  # type: ignore[type-var]
            async def clean_up(self, pg: Postgres, out: Outputs) -> Next | Wait: ...

    assert refused(define) == (
        f"{WHERE}, finalizer clean_up: its annotation has Next, but no state follows a finalizer;"
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

    assert refused(define) == f"{WHERE}: clean_up and wipe are both finalizers; write one that calls the other"


def test_two_states_with_one_condition():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Next: ...

            @state(condition="StorageReady")
            async def primary(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state primary: state storage already has the condition StorageReady;"
        " give each state its own condition"
    )


@pytest.mark.parametrize("condition", ["storage-ready", "storageReady", "", "Storage Ready"])
def test_a_condition_in_another_case(condition):
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition=condition)
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state storage: condition={condition!r} is not the name of a condition; write it in CamelCase,"
        ' such as "StorageReady"'
    )


@pytest.mark.parametrize("condition", ["Ready", "Suspended"])
def test_a_condition_that_is_the_machines_own(condition):
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition=condition)
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define) == (
        f"{WHERE}, state storage: Steersman sets the condition {condition} itself; name the condition of a state after its subject,"
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
        "class Wrong: storage overrides a state of a base class; decorate it with @state(...) too, or rename it"
    )


def test_a_state_with_a_name_that_every_machine_has():
    def define():
        class Wrong(StateMachine[Postgres]):
            @state(condition="BlueprintReady")
            async def blueprint(self, pg: Postgres, out: Outputs) -> Done: ...  # type: ignore[override]

    assert refused(define) == (f"{WHERE}, state blueprint: every machine has an attribute blueprint; rename the state")


def test_a_child_that_is_no_kind():
    def define():
        class Wrong(StateMachine[Postgres], children=(StatefulSet, "Service")):  # type: ignore[arg-type]
            @state(condition="StorageReady")
            async def storage(self, pg: Postgres, out: Outputs) -> Done: ...

    assert refused(define).startswith(f"{WHERE}: children")


def test_a_name_where_several_are_asked_for():
    assert refused(lambda: state(condition="StorageReady", to="degraded")) == (
        '@state(condition="StorageReady"): to= must be a tuple of names; write to=("degraded",)'
    )


def test_a_method_where_its_name_is_needed():
    words = '@state(condition="StorageReady"): to= needs the names of states; write to=("storage"'
    storage, primary = Cluster.storage, Cluster.primary
    assert refused(lambda: state(condition="StorageReady", to=storage)) == f"{words},)"  # type: ignore[arg-type]
    assert refused(lambda: state(condition="StorageReady", to=(storage,))) == f"{words},)"  # type: ignore[arg-type]
    both = refused(lambda: state(condition="StorageReady", to=(storage, primary)))  # type: ignore[arg-type]
    assert both == f'{words}, "primary")'
    words = 'Goto({}): the name of a method names its state; write Goto("{}")'
    assert refused(lambda: Goto(Cluster().storage)) == words.format("storage", "storage")  # type: ignore[arg-type]
    assert refused(lambda: Goto(None)) == words.format("None", "storage")  # type: ignore[arg-type]


def test_a_state_without_a_condition():
    assert refused(lambda: state(condition=lambda: None)) == (  # type: ignore[arg-type]
        '@state needs the name of its condition: write @state(condition="StorageReady")'
    )


@pytest.mark.parametrize(("step", "name"), [(Wait, "Wait"), (Failed, "Failed")])
def test_a_reason_that_is_a_sentence(step, name):
    with pytest.raises(ValueError, match="the reason of a condition is one CamelCase word") as caught:
        step("the image is missing", reason="image missing")
    assert str(caught.value) == (
        f"{name}(reason='image missing'): the reason of a condition is one CamelCase word, such as ImageMissing;"
        " put a sentence into the message"
    )
