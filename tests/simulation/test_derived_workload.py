"""A workload from the schema: objects that the server accepts, each field changed once, everything deleted."""

from __future__ import annotations

from datetime import datetime
from importlib import import_module
from typing import Annotated, Any, Literal

import msgspec
import pytest

from steersman import Context, Done, Manager, ObjectMeta, Quantity, Request, Resource, Spec, Struct
from steersman.markers import (
    ExactlyOneOf,
    Example,
    Format,
    Immutable,
    ListMap,
    Maximum,
    Minimum,
    MinItems,
    MinLength,
    MultipleOf,
    Pattern,
    Rule,
)
from steersman.objects import IntOrString
from steersman.simulation import Scenario, simulate
from steersman.simulation.derivation import NoValidObject, derived_workload
from steersman.simulation.exploration.branches import Branches, Message
from steersman.simulation.runs.world import World

EXAMPLES = [
    "site_operator",
    "site_generator",
    "namespace_quota",
    "immutable_settings",
    "schedule",
    "postgres_cluster.operator",
    "postgres_cluster.bare",
    "application_namespace.operator",
    "application_namespace.bare",
]


def manager_of(name: str) -> Manager:
    return import_module(f"examples.{name}").manager


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_without_a_violation(name: str) -> None:
    """The examples have no workload of their own: this one creates, changes and deletes all of their kinds."""
    report = simulate(f"examples.{name}", derived_workload(manager_of(name)), faults=())
    assert report.without_faults == ()
    assert report.requests > 0


@pytest.mark.parametrize("name", ["external_job", "once"])
def test_a_program_that_starts_processes_has_a_workload_too(name: str) -> None:
    """What cannot be simulated is the program's call, not its kind."""
    assert derived_workload(manager_of(name))


@pytest.mark.parametrize(
    ("name", "words"), [("secret_reflector", "only kinds of others"), ("shop_webhooks", "reconciles no kinds")]
)
def test_a_manager_without_kinds_of_its_own_needs_a_workload(name: str, words: str) -> None:
    """Nothing says what users do with a Secret that an operator reacts to."""
    with pytest.raises(NoValidObject, match=f"{words}.*Write a workload"):
        derived_workload(manager_of(name))


# kinds of all sorts


async def reconcile(ctx: Context, request: Request) -> Done:
    return Done()


def operator_of(kind: type[Resource[Any, Any]]) -> Manager:
    manager = Manager(name="sample")
    manager.controller(kind).run_with(reconcile)
    return manager


class Told(msgspec.Struct):
    """What happened in a run."""

    failures: list[str]
    #: The specs of the first object, in their order.
    specs: list[dict[str, Any]]
    #: The names of the objects that were created, with their namespaces.
    created: list[str]
    #: The specs of the object in another namespace, in their order.
    elsewhere: list[dict[str, Any]]
    left: int


def told(kind: type[Resource[Any, Any]], **options: Any) -> Told:
    """Run the derived workload in a process of its own, as the simulator does."""
    messages: list[Message] = []
    branches = Branches(1, messages.append)
    if branches.branch("run"):
        branches.end(msgspec.json.encode(_run(kind, **options)))
    branches.finish()
    (message,) = messages
    assert not message.failure
    return msgspec.json.decode(message.data, type=Told)


def _run(kind: type[Resource[Any, Any]], **options: Any) -> Told:
    workload = derived_workload(operator_of(kind), **options)
    world = World(Scenario(lambda: operator_of(kind), workload), seed=1, decide=lambda _: None)
    world.run()
    (prefix,) = world.own_prefixes
    commits = [entry for entry in world.trace if entry.sort == "commit" and entry.key.startswith(prefix)]
    trees = [msgspec.json.decode(entry.after) for entry in commits if entry.after]
    specs: list[dict[str, Any]] = []
    for tree in trees:
        spec = tree.get("spec", {})
        if tree["metadata"]["uid"] == trees[0]["metadata"]["uid"] and (not specs or specs[-1] != spec):
            specs.append(spec)
    return Told(
        failures=world.failures,
        specs=specs,
        created=[entry.key.removeprefix(prefix) for entry in commits if entry.before is None],
        elsewhere=[tree["spec"] for tree in trees if tree["metadata"].get("namespace") == "elsewhere"],
        left=sum(key.startswith(prefix) for key in world.states[-1]),
    )


class Port(Struct):
    name: str
    number: Annotated[int, Minimum(1024), Maximum(65535)]


class Storage(Struct):
    size: Quantity
    tier: Literal["fast", "slow"] = "fast"


class ShopSpec(Spec):
    image: str
    region: Annotated[Literal["north", "south"], Immutable()]
    release: Annotated[str, Pattern("^v[0-9]+$")]
    started: datetime | None = None
    address: Annotated[str, Format("ipv4")] | None = None
    token: Annotated[str, MinLength(12)] | None = None
    replicas: Annotated[int, Minimum(1), Maximum(9)] = 1
    batch: Annotated[int, MultipleOf(16), Minimum(20)] | None = None
    ports: Annotated[list[Port], ListMap("name"), MinItems(2)] | None = None
    limits: dict[str, Quantity] | None = None
    surge: IntOrString | None = None
    storage: Storage | None = None
    open: bool = True


class Shop(Resource[ShopSpec, None], group="shops.example.com", version="v1"):
    """A kind with one field of each sort."""


def test_each_field_is_changed_once() -> None:
    """Operators fail at changes: each is a step of its own, and the object is valid in between."""
    run = told(Shop)
    assert run.failures == []
    first, *changed = run.specs
    assert first == {"image": "alpha", "region": "north", "release": "v1", "replicas": 1, "open": True}
    steps = [
        {name for name in {*before, *after} if before.get(name) != after.get(name)}
        for before, after in zip(run.specs, changed, strict=False)
    ]
    assert [*map(sorted, steps)] == [
        ["image"],
        ["release"],
        ["started"],
        ["address"],
        ["token"],
        ["replicas"],
        ["batch"],
        ["ports"],
        ["limits"],
        ["surge"],
        ["storage"],
        ["storage"],
        ["storage"],
        ["open"],
    ]


def test_everything_is_deleted_and_three_objects_live_at_once() -> None:
    """Several objects show what they share by mistake, also by name; deletion shows what is left behind."""
    run = told(Shop)
    assert run.created == ["default/alpha", "default/beta", "default/gamma", "elsewhere/beta", "default/delta"]
    assert run.left == 0


def test_objects_of_one_name_differ() -> None:
    """Equal objects would hide that one writes over the children of the other."""
    run = told(Shop)
    assert run.elsewhere[0] == run.specs[-1] != run.specs[0]


def test_an_immutable_field_stays() -> None:
    """The server refuses the change, so users cannot make it."""
    assert {spec["region"] for spec in told(Shop).specs} == {"north"}


class RangeSpec(Spec, rules=(Rule(rule="self.low < self.high", message="low must be below high"),)):
    low: int
    high: int
    label: Annotated[str, Rule(rule="self.startsWith('be')", message="must start with be")]


class Range(Resource[RangeSpec, None], group="shops.example.com", version="v1"):
    """A kind with rules."""


def test_rules_are_satisfied() -> None:
    """A rule in CEL says yes or no, not what to write: values are tried until the server accepts them."""
    run = told(Range)
    assert run.failures == []
    assert all(spec["low"] < spec["high"] and spec["label"].startswith("be") for spec in run.specs)
    assert len({spec["low"] for spec in run.specs}) == 2
    assert len({spec["high"] for spec in run.specs}) == 2


class SourceSpec(Spec, rules=(ExactlyOneOf("file", "url"),)):
    file: str | None = None
    url: str | None = None


class Source(Resource[SourceSpec, None], group="shops.example.com", version="v1"):
    """A kind whose fields exclude each other."""


def test_fields_that_exclude_each_other_take_turns() -> None:
    """A change from one to the other is what users do, and what operators forget."""
    run = told(Source)
    assert run.failures == []
    assert {frozenset(spec) for spec in run.specs} == {frozenset({"file"}), frozenset({"url"})}


class ClockSpec(Spec):
    zone: Annotated[str, Example("Europe/Berlin")]


class Clock(Resource[ClockSpec, None], group="shops.example.com", version="v1", scope="Cluster"):
    """A cluster-scoped kind whose schema has an example."""


def test_an_example_of_the_schema_is_used() -> None:
    """The author of a kind knows values that mean something."""
    assert told(Clock).specs[0] == {"zone": "Europe/Berlin"}


def test_an_example_object_is_created_as_it_is() -> None:
    """An object that the operator's author wrote is better than one from the schema."""
    example = Clock(metadata=ObjectMeta(name="noon"), spec=ClockSpec(zone="UTC"))
    run = told(Clock, examples=[example])
    assert run.specs[0] == {"zone": "UTC"}
    assert run.created == ["noon", "beta", "gamma", "delta"]


class WallSpec(Spec):
    inner: Annotated[str, Pattern(r"^a\bb$")]


class Wall(Resource[WallSpec, None], group="shops.example.com", version="v1"):
    """A kind without valid objects."""


def test_a_field_without_a_value_is_named() -> None:
    """The error says where to look and what to write."""
    with pytest.raises(NoValidObject) as failure:
        derived_workload(operator_of(Wall))
    words = str(failure.value)
    assert words.startswith(
        "Wall: no valid object can be derived: spec.inner: no value is found for string with pattern"
    )
    assert "user.client.create(Wall(...))" in words


class RiddleSpec(Spec):
    answer: Annotated[str, Rule(rule="self == 'forty-two'", message="that is not the answer")]


class Riddle(Resource[RiddleSpec, None], group="shops.example.com", version="v1"):
    """A kind whose rule no derived value satisfies."""


def test_a_rule_that_no_value_satisfies_is_quoted() -> None:
    """The run fails before any fault, with the rule that stands in the way."""
    report = simulate(lambda: operator_of(Riddle), derived_workload(operator_of(Riddle)), faults=())
    (violation,) = report.without_faults
    assert "Riddle: no valid object can be derived" in violation.words
    assert "spec.answer" in violation.words
    assert "that is not the answer" in violation.words


async def held(ctx: Context, request: Request) -> Done:
    """Hold an object with a finalizer that nothing removes."""
    clock = await ctx.client.find(Clock, request.key)
    if clock is not None and not clock.deleting and not clock.metadata.finalizers:
        clock.metadata.finalizers = ["example.com/held"]
        await ctx.client.update(clock)
    return Done()


def holder() -> Manager:
    manager = Manager(name="sample")
    manager.controller(Clock).run_with(held)
    return manager


def test_an_object_that_stays_is_not_deleted_early() -> None:
    """Whether it stayed would depend on how soon the operator saw it, which is no mistake."""
    simulate(holder, derived_workload(holder()), faults=("outage", "partition")).check()


def test_the_workload_is_the_same_in_each_run() -> None:
    """A schedule names requests by their number: another order would replay another run."""
    assert told(Shop) == told(Shop)
