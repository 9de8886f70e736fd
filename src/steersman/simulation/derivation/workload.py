"""The workload of a scenario that has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from steersman.client import MergePatch
from steersman.kinds.core_v1 import Namespace
from steersman.manager import Manager
from steersman.objects import Kind, Object, ObjectMeta, Unstructured, kind_name, to_json
from steersman.simulation.derivation.schema_values import WORDS
from steersman.simulation.derivation.spec_fields import SpecField, Tree, fields_of, merged, nested, value_at
from steersman.simulation.derivation.spec_search import (
    NoValidObject,
    SpecSearch,
    first_tree,
    refusal_of,
    spec_schema,
)
from steersman.simulation.scenario import ScenarioUser, Workload

#: The namespace of objects that have the name of another one.
_ELSEWHERE = "elsewhere"
#: Virtual seconds that a short life lasts: shorter than the restart of a crashed process.
_SHORT = 0.5


def derived_workload(manager: Manager, *, examples: Iterable[Object] = ()) -> Workload:
    """What users do with the kinds that an operator defines and reconciles.

    They create an object of each kind, change each field of its spec once, and delete it. Then they create three objects at
    once and delete them: two in one namespace, and one of the same name with other contents in another namespace. Last, they
    create an object and delete it half a second later, unless deleted objects stay. The run settles after each step. An object
    of ``examples`` is created as it is; without one, values come from the schema. The workload skips a change that the server
    refuses. Raises `NoValidObject`.
    """
    given = {type(example): to_json(example) for example in examples}
    kinds = _reconciled_kinds(manager)
    firsts = [(kind, given.get(kind) or first_tree(kind)) for kind in kinds]

    async def workload(user: ScenarioUser) -> None:
        trees = [await SpecSearch(user, kind).accepted(tree) for kind, tree in firsts]
        for tree in trees:
            await _create(user, tree)
            await user.settled()
        changed = [await _change_each_field(user, kind, tree) for kind, tree in zip(kinds, trees, strict=True)]
        for tree in reversed(trees):
            await _delete(user, tree)
            await user.settled()
        for kind, tree, other in zip(kinds, trees, changed, strict=True):
            await _live_together(user, kind, tree, other)
            await _live_shortly(user, tree)

    return workload


def _reconciled_kinds(manager: Manager) -> list[type[Object]]:
    primaries = dict.fromkeys(blueprint.primary for blueprint in manager.blueprints)
    kinds = [kind for kind in manager.own_kinds if kind in primaries]
    if not kinds:
        others = ", ".join(kind_name(kind) for kind in primaries)
        why = f"reconciles only kinds of others ({others})" if others else "reconciles no kinds"
        raise NoValidObject(f"manager {manager.name}", f"it {why}", kind="Site")
    return kinds


async def _live_together(user: ScenarioUser, kind: type[Object], tree: Tree, other: Tree) -> None:
    """Objects that must not touch each other's children: the last one is deleted while the others live."""
    objects = [merged(tree, {"metadata": {"name": name}}) for name in WORDS[1:3]]
    if kind.__resource__.namespaced:
        if await user.client.find(Namespace, _ELSEWHERE) is None:
            await user.client.create(Namespace(metadata=ObjectMeta(name=_ELSEWHERE)))
        place = {"name": WORDS[1], "namespace": _ELSEWHERE}
        objects.append(await SpecSearch(user, kind).accepted(merged(other, {"metadata": place})))
    for each in objects:
        await _create(user, each)
    await user.settled()
    *others, last = objects
    await _delete(user, last)
    await user.settled()
    for each in others:
        await _delete(user, each)
    await user.settled()


async def _live_shortly(user: ScenarioUser, tree: Tree) -> None:
    """An object that is deleted half a second later, under a new name: an operator that is late sees nothing of it."""
    # If the first object still waits for a finalizer, so would this one, unless the operator was late.
    if await user.client.find(_kind_of(tree), _key_of(tree)) is None:
        last = merged(tree, {"metadata": {"name": WORDS[3]}})
        await _create(user, last)
        await user.sleep(_SHORT)
        await _delete(user, last)
    await user.settled()


async def _change_each_field(user: ScenarioUser, kind: type[Object], tree: Tree) -> Tree:
    """Change one field after the other; returns the last tree."""
    fields = list(fields_of(spec_schema(kind)))
    left = fields
    # Once more for refused changes: a rule may allow them when another field has changed.
    for _ in range(2):
        refused: list[SpecField] = []
        for field in left:
            changed = await _changed(user, tree, field, fields)
            if changed is None:
                refused.append(field)
            else:
                tree = changed
                await user.settled()
        left = refused
    return tree


async def _changed(user: ScenarioUser, tree: Tree, field: SpecField, fields: Iterable[SpecField]) -> Tree | None:
    """The tree after a change of one field; None if the server refuses all of them."""
    beside = [other for other in fields if other.path[:-1] == field.path[:-1] and other is not field]
    for change in _changes(tree, field, beside):
        send = partial(user.client.patch, _kind_of(tree), _key_of(tree), MergePatch({"spec": change}))
        if await refusal_of(user, send) is None:
            return merged(tree, {"spec": change})
    return None


def _changes(tree: Tree, field: SpecField, beside: Iterable[SpecField]) -> Iterator[Tree]:
    """Another value of the field; then also without an optional field beside it, since fields may exclude each other."""
    spec = value_at(tree, ("spec",))
    present = value_at(spec, field.path)
    is_part = isinstance(present, dict) and "properties" in field.schema
    if is_part or not isinstance(value_at(spec, field.path[:-1]), dict):
        return
    values = [value for value in field.values if value not in (present, field.schema.get("default"))]
    yield from (nested(field.path, value) for value in values)
    for other in beside:
        if values and not other.required and value_at(spec, other.path) is not None:
            yield nested(field.path[:-1], {field.path[-1]: values[0], other.path[-1]: None})


async def _create(user: ScenarioUser, tree: Tree) -> None:
    refusal = await refusal_of(user, lambda: user.client.create(Unstructured(tree)))
    if refusal is not None:
        raise refusal


async def _delete(user: ScenarioUser, tree: Tree) -> None:
    refusal = await refusal_of(user, lambda: user.client.delete(_kind_of(tree), _key_of(tree)))
    if refusal is not None:
        raise refusal


def _kind_of(tree: Tree) -> Kind:
    return Kind(tree["apiVersion"], tree["kind"])


def _key_of(tree: Tree) -> str:
    namespace, name = tree["metadata"].get("namespace"), tree["metadata"]["name"]
    return f"{namespace}/{name}" if namespace else name
