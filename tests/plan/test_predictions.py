"""What a plan predicts for a random state of a cluster is what the operator then does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from random import Random  # noqa: TID251 - seeded by the test
from typing import Any, TypeAlias

import pytest

from samples import portions
from steersman import (
    Context,
    Done,
    Key,
    Manager,
    MergePatch,
    Next,
    ObjectMeta,
    Outputs,
    Request,
    Resource,
    Spec,
    Status,
    Wait,
    generates,
    reconciles,
)
from steersman.controller import TerminalError
from steersman.errors import ApiError
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret, Service, ServicePort, ServiceSpec
from steersman.objects import tree_of
from steersman.patterns import Goto, StateMachine, child, finalizer, state
from steersman.plan import Plan, plan_changes

RUNS = portions.count(sample=2, of=125)
SEED = portions.seed_of("predictions")
NAMES = ("x", "y", "z")
PARTS = [f"{name}-{number}" for name in NAMES for number in range(3)]


class ThingSpec(Spec):
    count: int = 2
    secret: bool = True
    service: bool = False
    data: str = "a"
    second: bool = True
    stuck: bool = False
    #: How many ConfigMaps are in another namespace.
    far: int = 1
    #: The name of the state that waits, fails or ends the reconcile, and how.
    stops: str = ""
    how: str = "wait"


class Thing(Resource[ThingSpec, Status], group="predicted.plan.test.steersman.dev", version="v1"):
    """A thing with parts."""


KINDS = (Thing, ConfigMap, Secret, Service)


def parts_of(thing: Thing, release: int) -> list[Any]:
    """The children that a release of the operator declares."""
    name, spec = thing.key.name, thing.spec
    labels = {"release": str(release)} if release > 1 else None
    parts: list[Any] = [
        ConfigMap(metadata=ObjectMeta(name=f"{name}-{number}", labels=labels), data={"d": spec.data})
        for number in range(spec.count)
    ]
    if spec.secret:
        parts.append(Secret(metadata=ObjectMeta(name=f"{name}-secret"), string_data={"p": spec.data}))
    if spec.service:
        ports = ServiceSpec(ports=[ServicePort(port=80)], selector={"a": spec.data})
        parts.append(Service(metadata=ObjectMeta(name=f"{name}-service"), spec=ports))
    return parts


def generator(release: int) -> Manager:
    @generates(Thing, children=(ConfigMap, Secret, Service), name="thing")
    def things(thing: Thing) -> list[Any]:
        return parts_of(thing, release)

    return _added(things)


def machine(release: int) -> Manager:
    class Things(
        StateMachine[Thing],
        children=(ConfigMap, Secret, Service),
        name="thing",
        finalizer="example.com/thing",
        ordered_deletion=True,
    ):
        @state(condition="FirstReady")
        async def first(self, thing: Thing, out: Outputs) -> Next | Wait:
            for each in parts_of(thing, release):
                out.apply(each, adopt=release == 3, recreate=True)
            return Wait("it is stuck") if thing.spec.stuck else Next()

        @state(condition="SecondReady")
        async def second(self, thing: Thing, out: Outputs) -> Done:
            if thing.spec.second:
                out.apply(ConfigMap(metadata=ObjectMeta(name=f"{thing.key.name}-two"), data={"r": str(release)}))
            return Done()

        @finalizer
        async def clean_up(self, thing: Thing, out: Outputs) -> Done:
            return Done()

    return _added(Things())


def claims(release: int) -> Manager:
    claimed = child(ConfigMap, claims=lambda thing: {"thing": thing.key.name})

    @reconciles(Thing, children=(claimed, Secret, Service), name="thing")
    async def things(thing: Thing, out: Outputs) -> Done:
        for each in parts_of(thing, release):
            if isinstance(each, ConfigMap):
                each.metadata.labels = {**(each.metadata.labels or {}), "thing": thing.key.name}
            out.apply(each)
        return Done()

    return _added(things)


def bare(release: int) -> Manager:
    async def reconcile(ctx: Context, request: Request) -> Done:
        """Replaces its parts: each is deleted with the rest of the collection unless it is as it should be."""
        client, at = ctx.client, request.key.namespace
        thing = await client.find(Thing, request.key)
        mine = {"of": request.key.name}
        if thing is None or thing.deleting:
            await client.delete_collection(ConfigMap, namespace=at, labels=mine)
            return Done()
        names = [f"bare-{request.key.name}-{number}" for number in range(thing.spec.count)]
        there = {
            each.key.name: each.data
            for each in await client.list(ConfigMap, namespace=at, labels=mine)
            if not each.deleting
        }
        # a foreign object, or one that another program holds, keeps its name
        taken = {name for name in names if name not in there and await client.find(ConfigMap, (at, name))}
        wanted = {"d": thing.spec.data, "r": str(release)}
        if there != {name: wanted for name in names if name not in taken}:
            await client.delete_collection(ConfigMap, namespace=at, labels=mine)
            for name in names:
                metadata = ObjectMeta(name=name, namespace=at, labels=mine)
                if await client.find(ConfigMap, (at, name)) is None:
                    await client.create(ConfigMap(metadata=metadata, data=wanted), owner=thing)
        return Done()

    manager = Manager(name="predictions")
    manager.controller(Thing, name="thing").owns(ConfigMap).run_with(reconcile)
    return manager


def far_of(thing: Thing, release: int) -> list[Any]:
    """The ConfigMaps that a release declares in another namespace."""
    at = f"{thing.key.namespace}-far"
    labels = {"release": str(release)} if release > 1 else None
    return [
        ConfigMap(
            metadata=ObjectMeta(name=f"{thing.key.name}-{number}", namespace=at, labels=labels),
            data={"d": thing.spec.data},
        )
        for number in range(thing.spec.far)
    ]


def far(release: int) -> Manager:
    @generates(Thing, children=(child(ConfigMap, across_namespaces=True), Secret, Service), name="thing")
    def things(thing: Thing) -> list[Any]:
        return [*far_of(thing, release), *parts_of(thing, release)]

    return _added(things)


def near(release: int) -> Manager:
    """Release 3 has no children in another namespace anymore."""
    return far(release) if release < 3 else generator(release)


def ended(thing: Thing, name: str) -> Any:
    """The step of a state that the object stops; None for the others."""
    if thing.spec.stops != name:
        return None
    if thing.spec.how == "error":
        raise TerminalError(f"{name} fails")
    return Done() if thing.spec.how == "done" else Wait(f"{name} waits")


def states(release: int, *, ordered: bool) -> Manager:
    """Four states; release 3 moves a child of the third from another namespace."""

    class Things(
        StateMachine[Thing],
        children=(child(ConfigMap, across_namespaces=True), Secret, Service),
        name="thing",
        finalizer="example.com/thing",
        ordered_deletion=ordered,
    ):
        @state(condition="FarReady")
        async def far(self, thing: Thing, out: Outputs) -> Next | Wait:
            for each in far_of(thing, release):
                out.apply(each, adopt=release == 2)
            return ended(thing, "far") or Next()

        @state(condition="PartsReady", to=("moved", "last"))
        async def parts(self, thing: Thing, out: Outputs) -> Next | Goto | Wait | Done:
            for each in parts_of(thing, release):
                out.apply(each, recreate=True, prune=release != 2 or thing.spec.second)
            return ended(thing, "parts") or (Goto("last") if thing.spec.second else Next())

        @state(condition="MovedReady")
        async def moved(self, thing: Thing, out: Outputs) -> Next | Wait | Done:
            at = thing.key.namespace if release == 3 else f"{thing.key.namespace}-far"
            out.apply(ConfigMap(metadata=ObjectMeta(name=f"{thing.key.name}-moved", namespace=at)))
            return ended(thing, "moved") or Next()

        @state(condition="LastReady")
        async def last(self, thing: Thing, out: Outputs) -> Done | Wait:
            out.apply(ConfigMap(metadata=ObjectMeta(name=f"{thing.key.name}-two"), data={"r": str(release)}))
            return ended(thing, "last") or Done()

        @finalizer
        async def clean_up(self, thing: Thing, out: Outputs) -> Done | Wait:
            if thing.spec.stuck:
                out.apply(ConfigMap(metadata=ObjectMeta(name=f"{thing.key.name}-end")))
            return ended(thing, "clean_up") or Done()

    return _added(Things())


def ordered(release: int) -> Manager:
    return states(release, ordered=True)


def unordered(release: int) -> Manager:
    return states(release, ordered=False)


def _added(operator: Any) -> Manager:
    manager = Manager(name="predictions")
    manager.add(operator)
    return manager


SHAPES: dict[str, Callable[[int], Manager]] = {
    "generator": generator,
    "machine": machine,
    "claims": claims,
    "bare": bare,
    "far": far,
    "near": near,
    "ordered": ordered,
    "unordered": unordered,
}


def random_spec(chance: Random) -> ThingSpec:
    return ThingSpec(
        count=chance.randrange(4),
        secret=chance.random() < 0.5,
        service=chance.random() < 0.5,
        data=chance.choice("ab"),
        second=chance.random() < 0.6,
        stuck=chance.random() < 0.2,
        far=chance.randrange(3),
        stops=chance.choice(("", "", "", "far", "parts", "moved", "last", "clean_up")),
        how=chance.choice(("wait", "error", "done")),
    )


async def disturb(client: Any, chance: Random, namespaces: Sequence[str]) -> None:
    """Do one of the things that happen to a cluster while no operator runs."""
    name, part = chance.choice(NAMES), chance.choice([*PARTS, *(f"bare-{each}" for each in PARTS)])
    at = chance.choice(namespaces)
    key = Key(at, part)
    spec = random_spec(chance)
    owner = part.removeprefix("bare-").partition("-")[0]
    changes: list[Callable[[], Any]] = [
        lambda: client.patch(Thing, name, MergePatch({"spec": tree_of(spec)})),
        lambda: client.patch(Thing, name, MergePatch({"spec": {"count": spec.count, "stuck": False}})),
        lambda: client.delete(Thing, name),
        lambda: client.create(Thing(metadata=ObjectMeta(name=name), spec=spec)),
        lambda: client.patch(Thing, name, MergePatch({"metadata": {"labels": {"steersman.dev/suspend": "true"}}})),
        lambda: client.patch(Thing, name, MergePatch({"status": {"conditions": []}}), subresource="status"),
        lambda: client.delete(ConfigMap, key),
        lambda: client.patch(ConfigMap, key, MergePatch({"data": {"d": "drift", "e": "x"}})),
        lambda: client.patch(ConfigMap, key, MergePatch({"metadata": {"ownerReferences": None}})),
        lambda: client.patch(ConfigMap, key, MergePatch({"metadata": {"finalizers": ["example.com/held"]}})),
        lambda: client.patch(ConfigMap, key, MergePatch({"metadata": {"labels": {"steersman.dev/owner-uid": None}}})),
        lambda: client.patch(ConfigMap, key, MergePatch({"metadata": {"labels": {"thing": name}}})),
        lambda: client.create(
            ConfigMap(metadata=ObjectMeta(name=part, namespace=at, labels={"thing": name, "of": owner}))
        ),
        lambda: client.create(ConfigMap(metadata=ObjectMeta(name=part, namespace=at))),
    ]
    with suppress(ApiError):  # there is no such object, or there is one already
        await chance.choice(changes)()


#: By kind and key: the uid, the object without bookkeeping, and the status without times.
State: TypeAlias = dict[tuple[str, str], tuple[str, Any, Any]]
_NOISE = ("resourceVersion", "managedFields", "generation", "creationTimestamp")


async def state_of(client: Any, namespaces: Sequence[str]) -> State:
    found: State = {}
    for kind, namespace in product(KINDS, namespaces):
        for each in await client.list(kind, namespace=namespace):
            tree = tree_of(each)
            metadata = tree["metadata"]
            if metadata["name"] == "kube-root-ca.crt":
                continue
            for name in _NOISE:
                metadata.pop(name, None)
            status = dict(tree.pop("status", None) or {})
            status.pop("observedGeneration", None)
            conditions = [
                {name: value for name, value in one.items() if name not in ("lastTransitionTime", "observedGeneration")}
                for one in status.get("conditions") or ()
            ]
            found[kind.__name__, str(each.key)] = (metadata.pop("uid"), tree, {**status, "conditions": conditions})
    return found


def done(before: State, after: State) -> dict[tuple[str, str], set[str]]:
    """What the operator did to each object, in the words of a plan."""
    found: dict[tuple[str, str], set[str]] = {}
    for key in before.keys() | after.keys():
        was, now = before.get(key), after.get(key)
        if was is None:
            found[key] = {"create"}
        elif now is None:
            found[key] = {"delete"}
        elif now[0] != was[0]:
            found[key] = {"change"}  # deleted and made anew
        elif "deletionTimestamp" in now[1]["metadata"] and "deletionTimestamp" not in was[1]["metadata"]:
            found[key] = {"delete"}  # it waits for its finalizers
        else:
            actions = {"change"} if now[1] != was[1] else set[str]()
            found[key] = actions | ({"status"} if now[2] != was[2] else set())
    return {key: actions for key, actions in found.items() if actions}


def collected(before: State, after: State) -> set[tuple[str, str]]:
    """What the garbage collector deletes after the operator: a plan does not show the work of other controllers."""
    gone = {before[key][0] for key in before.keys() - after.keys()}
    return {
        key
        for key in before.keys() - after.keys()
        if any(owner["uid"] in gone for owner in before[key][1]["metadata"].get("ownerReferences") or ())
    }


def predicted(plan: Plan) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for each in plan.changes:
        if each.action != "deleteWhenReady":
            found.setdefault((each.kind, str(each.key)), set()).add(each.action)
    for actions in found.values():
        if actions & {"create", "delete"}:
            actions.discard("status")
    return found


@pytest.mark.parametrize("number", range(RUNS))
@pytest.mark.parametrize("shape", SHAPES)
async def test_what_is_predicted_is_done(control_plane, shape: str, number: int) -> None:
    chance = Random(f"{SEED}/{shape}/{number}")
    client, at, make = control_plane.client, control_plane.namespace, SHAPES[shape]
    both = (at, f"{at}-far")
    await control_plane.install(Thing)
    await client.create(Namespace(metadata=ObjectMeta(name=both[1])))
    for name in NAMES:
        if chance.random() < 0.8:
            await client.create(Thing(metadata=ObjectMeta(name=name), spec=random_spec(chance)))
    for _ in range(chance.randrange(4)):
        await disturb(client, chance, both)
    if chance.random() < 0.8:
        async with control_plane.running(make(chance.choice((1, 1, 2)))) as operator:
            await operator.drained()
    for _ in range(chance.randrange(8)):
        await disturb(client, chance, both)
    await control_plane.settled()

    release = chance.choice((1, 2, 3))
    before = await state_of(client, both)
    plan = await plan_changes(make(release), client, namespaces=[at])
    assert await state_of(client, both) == before
    assert ([each for each in plan.failed if "TerminalError" not in each.message], plan.rejected) == ([], ())
    async with control_plane.running(make(release)) as operator:
        await operator.drained()
    after, expected = await state_of(client, both), predicted(plan)
    others = collected(before, after) - expected.keys()
    assert expected == {key: actions for key, actions in done(before, after).items() if key not in others}
