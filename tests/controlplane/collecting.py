"""Scenarios of the garbage collector: three policies by many shapes, and what is wrong with references."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from random import Random  # noqa: TID251 - seeded by the scenario

from controlplane.stage import COMET, CONFIG_MAP, PLANET, WIDGET, Policy, Stage, ref

from steersman import Kind, Unstructured

Scenario = Callable[[Stage], Awaitable[None]]

SECRET = Kind("v1", "Secret")
LEASE = Kind("coordination.k8s.io/v1", "Lease")
HOLD = "example.com/hold"
UNKNOWN_UID = "00000000-0000-4000-8000-000000000000"

# Shapes: each makes objects and gives back the one that is deleted.


async def _one_child(stage: Stage) -> Unstructured:
    owner = await stage.config_map("owner")
    await stage.config_map("child", ref(owner))
    return owner


async def _children_of_many_kinds(stage: Stage) -> Unstructured:
    owner = await stage.config_map("owner")
    await stage.config_map("child", ref(owner, block=False))
    await stage.make(SECRET, "secret", ref(owner, controller=True))
    await stage.make(LEASE, "lease", ref(owner, block=None))
    await stage.config_map("bystander")
    return owner


async def _chain(stage: Stage) -> Unstructured:
    first = await stage.config_map("first")
    second = await stage.config_map("second", ref(first))
    third = await stage.config_map("third", ref(second))
    await stage.config_map("fourth", ref(third))
    return first


async def _shared_child(stage: Stage) -> Unstructured:
    owner, other = await stage.config_map("owner"), await stage.config_map("other")
    await stage.config_map("child", ref(owner), ref(other))
    return owner


async def _diamond(stage: Stage) -> Unstructured:
    top = await stage.config_map("top")
    left, right = await stage.config_map("left", ref(top)), await stage.config_map("right", ref(top))
    await stage.config_map("bottom", ref(left), ref(right))
    return top


async def _child_that_does_not_block(stage: Stage) -> Unstructured:
    owner = await stage.config_map("owner")
    await stage.config_map("child", ref(owner, block=None), finalizers=(HOLD,))
    return owner


async def _held_child(stage: Stage) -> Unstructured:
    owner = await stage.config_map("owner")
    await stage.config_map("child", ref(owner), finalizers=(HOLD,))
    return owner


async def _held_grandchild(stage: Stage) -> Unstructured:
    owner = await stage.config_map("owner")
    child = await stage.config_map("child", ref(owner))
    await stage.config_map("grandchild", ref(child), finalizers=(HOLD,))
    return owner


async def _held_owner(stage: Stage) -> Unstructured:
    owner = await stage.config_map("owner", finalizers=(HOLD,))
    await stage.config_map("child", ref(owner))
    return owner


async def _child_that_goes_already(stage: Stage) -> Unstructured:
    owner = await stage.config_map("owner")
    child = await stage.config_map("child", ref(owner), finalizers=(HOLD,))
    await stage.delete(child)
    return owner


async def _circle_of_two(stage: Stage) -> Unstructured:
    first = await stage.config_map("first")
    second = await stage.config_map("second", ref(first))
    await stage.patch(first, {"ownerReferences": [ref(second)]})
    return first


async def _circle_of_three(stage: Stage) -> Unstructured:
    first = await stage.config_map("first")
    second = await stage.config_map("second", ref(first))
    third = await stage.config_map("third", ref(second))
    await stage.patch(first, {"ownerReferences": [ref(third)]})
    return first


async def _own_owner(stage: Stage) -> Unstructured:
    owner = await stage.config_map("owner")
    await stage.patch(owner, {"ownerReferences": [ref(owner)]})
    return owner


async def _cluster_scoped_owner(stage: Stage) -> Unstructured:
    owner = await stage.role("owner")
    await stage.config_map("child", ref(owner))
    await stage.role("child", ref(owner))
    return owner


async def _custom_resources(stage: Stage) -> Unstructured:
    owner = await stage.make(WIDGET, "owner")
    child = await stage.make(WIDGET, "child", ref(owner))
    await stage.config_map("grandchild", ref(child))
    await stage.config_map("child", ref(owner))
    return owner


async def _custom_and_cluster_scoped(stage: Stage) -> Unstructured:
    owner = await stage.make(PLANET, f"{stage.name}-owner")
    other = await stage.make(PLANET, f"{stage.name}-other")
    await stage.make(WIDGET, "child", ref(owner), ref(other))
    await stage.make(WIDGET, "lost", ref(owner, block=False))
    return owner


SHAPES = (
    _one_child,
    _children_of_many_kinds,
    _chain,
    _shared_child,
    _diamond,
    _child_that_does_not_block,
    _held_child,
    _held_grandchild,
    _held_owner,
    _child_that_goes_already,
    _circle_of_two,
    _circle_of_three,
    _own_owner,
    _cluster_scoped_owner,
    _custom_resources,
    _custom_and_cluster_scoped,
)
POLICIES: tuple[Policy, ...] = ("Background", "Foreground", "Orphan")


async def _deleted(stage: Stage, *, shape: Callable[[Stage], Awaitable[Unstructured]], policy: Policy) -> None:
    await stage.namespace()
    owner = await shape(stage)
    await stage.quiet()
    await stage.delete(owner, policy)


def shapes() -> Iterator[tuple[str, Scenario]]:
    """Each shape, deleted by each policy."""
    for shape in SHAPES:
        for policy in POLICIES:
            name = shape.__name__.strip("_").replace("_", "-")
            yield f"{name}-{policy.lower()}", partial(_deleted, shape=shape, policy=policy)


# References that lead nowhere.


async def dangling(stage: Stage) -> None:
    """An owner that never was."""
    await stage.namespace()
    owner = await stage.config_map("owner")
    await stage.config_map("child", ref(owner, name="nobody", uid=UNKNOWN_UID))


async def dangling_beside_a_solid_one(stage: Stage) -> None:
    """The reference goes, the object stays."""
    await stage.namespace()
    owner = await stage.config_map("owner")
    await stage.config_map("child", ref(owner, name="nobody", uid=UNKNOWN_UID), ref(owner))
    await stage.make(WIDGET, "child", ref(owner, name="nobody", uid=UNKNOWN_UID), ref(owner))


async def owner_under_another_name(stage: Stage) -> None:
    """The uid is right, the name is not."""
    await stage.namespace()
    owner = await stage.config_map("owner")
    await stage.config_map("child", ref(owner, name="nobody"))


async def owner_of_another_kind(stage: Stage) -> None:
    """The uid is right, the kind is not."""
    await stage.namespace()
    owner = await stage.config_map("owner")
    await stage.config_map("child", ref(owner, kind="Secret"))


async def owner_of_an_unknown_kind(stage: Stage) -> None:
    """No server can say whether it exists."""
    await stage.namespace()
    owner = await stage.config_map("owner")
    await stage.config_map("child", ref(owner, apiVersion="nowhere.example.com/v1", kind="Nothing", uid=UNKNOWN_UID))
    await stage.config_map("sibling", ref(owner, apiVersion="v7", uid=UNKNOWN_UID), ref(owner))


async def owner_in_another_namespace(stage: Stage) -> None:
    """An owner is looked for in the dependent's namespace."""
    await stage.namespace()
    await stage.namespace("-far")
    owner = await stage.config_map("owner", namespace=f"{stage.name}-far")
    await stage.config_map("child", ref(owner))


async def owner_in_another_namespace_beside_a_near_one(stage: Stage) -> None:
    """The wrong reference goes."""
    await stage.namespace()
    await stage.namespace("-far")
    owner = await stage.config_map("owner", namespace=f"{stage.name}-far")
    near = await stage.config_map("near")
    await stage.config_map("child", ref(near), ref(owner))


async def namespaced_owner_of_a_cluster_scoped_object(stage: Stage) -> None:
    """That is wrong and reported, and deletes nothing, even when the owner goes."""
    await stage.namespace()
    owner = await stage.config_map("owner")
    await stage.role("child", ref(owner))
    await stage.quiet()
    await stage.delete(owner, "Background")


async def absent_namespaced_owner_of_a_cluster_scoped_object(stage: Stage) -> None:
    """Nor when it never was."""
    await stage.namespace()
    owner = await stage.config_map("owner")
    await stage.role("child", ref(owner, name="nobody", uid=UNKNOWN_UID))


async def successor_of_an_owner(stage: Stage) -> None:
    """Another object under the owner's name is not the owner."""
    await stage.namespace()
    owner = await stage.config_map("owner", finalizers=(HOLD,))
    await stage.config_map("child", ref(owner))
    await stage.delete(owner, "Background")
    await stage.patch(owner, {"finalizers": None})
    await stage.config_map("owner")


async def owner_named_late(stage: Stage) -> None:
    """A reference to what is gone by then."""
    await stage.namespace()
    owner, child = await stage.config_map("owner"), await stage.config_map("child")
    await stage.delete(owner)
    await stage.gone(owner)
    await stage.patch(child, {"ownerReferences": [ref(owner)]})


# Changes on the way.


async def released_child(stage: Stage) -> None:
    """An owner waits for a child that gives up its reference."""
    await stage.namespace()
    owner = await _held_child(stage)
    child = await stage.exists(CONFIG_MAP, "child")
    await stage.delete(owner, "Foreground")
    await stage.deleting(child)
    await stage.patch(child, {"ownerReferences": None})
    await stage.gone(owner)


async def unblocked_child(stage: Stage) -> None:
    """An owner waits for a child that lets it go."""
    await stage.namespace()
    owner = await _held_child(stage)
    child = await stage.exists(CONFIG_MAP, "child")
    await stage.delete(owner, "Foreground")
    await stage.deleting(child)
    await stage.patch(child, {"ownerReferences": [ref(owner, block=False)]})
    await stage.gone(owner)


async def finished_child(stage: Stage) -> None:
    """An owner waits for a child that is finalized at last."""
    await stage.namespace()
    owner = await _held_grandchild(stage)
    grandchild = await stage.exists(CONFIG_MAP, "grandchild")
    await stage.delete(owner, "Foreground")
    await stage.deleting(grandchild)
    await stage.quiet()
    await stage.patch(grandchild, {"finalizers": None})
    await stage.gone(owner, grandchild)


async def child_born_while_its_owner_waits(stage: Stage) -> None:
    """It goes too."""
    await stage.namespace()
    owner = await _held_child(stage)
    child = await stage.exists(CONFIG_MAP, "child")
    await stage.delete(owner, "Foreground")
    await stage.deleting(child)
    late = await stage.config_map("late", ref(owner))
    await stage.quiet()
    await stage.patch(child, {"finalizers": None})
    await stage.gone(owner, child, late)


async def orphaned_and_adopted(stage: Stage) -> None:
    """A child that lost its owner, is given another, and goes with that."""
    await stage.namespace()
    owner = await _one_child(stage)
    child = await stage.exists(CONFIG_MAP, "child")
    await stage.delete(owner, "Orphan")
    await stage.gone(owner)
    other = await stage.config_map("other")
    await stage.patch(child, {"ownerReferences": [ref(other)]})
    await stage.quiet()
    await stage.delete(other, "Foreground")
    await stage.gone(other, child)


async def from_foreground_to_orphan(stage: Stage) -> None:
    """The last word counts."""
    await stage.namespace()
    owner = await _held_child(stage)
    child = await stage.exists(CONFIG_MAP, "child")
    await stage.delete(owner, "Foreground")
    await stage.deleting(child)
    await stage.delete(owner, "Orphan")
    await stage.gone(owner)


async def from_foreground_to_background(stage: Stage) -> None:
    """The owner goes at once."""
    await stage.namespace()
    owner = await _held_child(stage)
    child = await stage.exists(CONFIG_MAP, "child")
    await stage.delete(owner, "Foreground")
    await stage.deleting(child)
    await stage.delete(owner, "Background")
    await stage.gone(owner)


async def owners_one_after_the_other(stage: Stage) -> None:
    """A shared child loses one reference, then itself."""
    await stage.namespace()
    owner = await _shared_child(stage)
    other = await stage.exists(CONFIG_MAP, "other")
    child = await stage.exists(CONFIG_MAP, "child")
    await stage.delete(owner, "Background")

    async def has_one() -> bool:
        found = await stage.find(child)
        return found is not None and len(found.metadata["ownerReferences"]) == 1

    await stage.until("the child has one owner", has_one)
    await stage.delete(other, "Background")
    await stage.gone(child)


async def child_with_an_orphan_finalizer(stage: Stage) -> None:
    """What an object says of its own dependents is kept to when it is collected."""
    await stage.namespace()
    owner = await stage.config_map("owner")
    child = await stage.config_map("child", ref(owner), finalizers=("orphan",))
    await stage.config_map("grandchild", ref(child))
    await stage.quiet()
    await stage.delete(owner, "Background")
    await stage.gone(child)


async def all_at_once(stage: Stage) -> None:
    """A collection of owners, with many children."""
    await stage.namespace()
    for number in range(3):
        owner = await stage.make(SECRET, f"owner-{number}")
        for other in range(5):
            await stage.config_map(f"child-{number}-{other}", ref(owner))
    await stage.quiet()
    await stage.client.delete_collection(SECRET, namespace=stage.name, propagation="Foreground")


async def events_are_no_dependents(stage: Stage) -> None:
    """An Event that names an owner stays; nothing else happens either."""
    await stage.namespace()
    owner = await stage.config_map("owner")
    involved = {"kind": "ConfigMap", "name": "owner", "namespace": stage.name}
    event = await stage.make(Kind("v1", "Event"), "told", ref(owner), involvedObject=involved, reason="Told")
    await stage.delete(owner, "Background")
    await stage.gone(owner)
    await stage.quiet()
    assert await stage.find(event) is not None


async def a_definition_takes_along_what_its_instances_own(stage: Stage) -> None:
    """The owner goes with its kind; its dependents are collected all the same."""
    await stage.namespace()
    owner = await stage.make(COMET, "owner")
    child = await stage.config_map("child", ref(owner))
    await stage.make(COMET, "other", ref(owner))
    await stage.quiet()
    crd = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    await stage.client.delete(crd, "comets.collected.example.com")

    async def gone() -> bool:
        return await stage.client.find(crd, "comets.collected.example.com") is None

    await stage.until("the definition is gone", gone)
    await stage.gone(child)


async def _world(stage: Stage, *, seed: int) -> None:
    """Objects that own each other at random, some of them held; then one is deleted.

    No circles: in those the end may depend on who is quicker.
    """
    chance = Random(seed)
    await stage.namespace()
    made: list[Unstructured] = []
    for number in range(chance.randint(4, 8)):
        owners = chance.sample(made, min(len(made), chance.choice((0, 1, 1, 2))))
        references = [ref(each, block=chance.choice((True, True, False, None))) for each in owners]
        kind = chance.choice((CONFIG_MAP, CONFIG_MAP, SECRET, WIDGET))
        held = (HOLD,) if chance.random() < 0.15 else ()
        made.append(await stage.make(kind, f"object-{number}", *references, finalizers=held))
    await stage.quiet()
    # One that owns others, most likely.
    await stage.delete(chance.choice(made[:3]), chance.choice(POLICIES))


def worlds(count: int, *, seed: int) -> Iterator[tuple[str, Scenario]]:
    """So many worlds, each by its seed."""
    for number in range(count):
        yield f"world-{number}", partial(_world, seed=seed + number)


OTHERS: tuple[Scenario, ...] = (
    dangling,
    dangling_beside_a_solid_one,
    owner_under_another_name,
    owner_of_another_kind,
    owner_of_an_unknown_kind,
    owner_in_another_namespace,
    owner_in_another_namespace_beside_a_near_one,
    namespaced_owner_of_a_cluster_scoped_object,
    absent_namespaced_owner_of_a_cluster_scoped_object,
    successor_of_an_owner,
    owner_named_late,
    released_child,
    unblocked_child,
    finished_child,
    child_born_while_its_owner_waits,
    orphaned_and_adopted,
    from_foreground_to_orphan,
    from_foreground_to_background,
    owners_one_after_the_other,
    child_with_an_orphan_finalizer,
    all_at_once,
    events_are_no_dependents,
    a_definition_takes_along_what_its_instances_own,
)
