"""Finds an object of a kind that the server accepts: values from the schema, varied until the rules are satisfied."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from itertools import combinations

from steersman.errors import BadRequest, Forbidden, InternalError, Invalid, ServiceUnavailable, StatusError
from steersman.objects import Object, Unstructured
from steersman.schemas import schema_for
from steersman.simulation.derivation.schema_values import WORDS, Schema, obstacle, valid_values
from steersman.simulation.derivation.spec_fields import SpecField, Tree, fields_of, merged, nested, value_at
from steersman.simulation.scenario import ScenarioUser

#: How many objects are tried at most.
_TRIES = 300
#: How often users repeat a request that fails because a webhook of the operator is down, once a second.
_RETRIES = 60


class NoValidObject(Exception):
    """No valid object of a kind could be derived: the scenario needs a workload of its own."""

    def __init__(self, subject: str, why: str, *, kind: str = "") -> None:
        kind = kind or subject
        super().__init__(
            f"{subject}: no valid object can be derived: {why}. Write a workload that creates one:"
            f" `async def workload(user): await user.client.create({kind}(...))`, or pass one as examples=[{kind}(...)],"
            " or put an Example(...) marker on the field"
        )


def first_tree(kind: type[Object]) -> Tree:
    """A tree of the kind that its schema alone accepts. Raises `NoValidObject`."""
    schema = spec_schema(kind)
    tree: Tree = {"apiVersion": kind.gvk().api_version, "kind": kind.gvk().kind, "metadata": {"name": WORDS[0]}}
    if not schema:
        return tree
    specs = valid_values(schema, "spec")
    if not specs:
        raise NoValidObject(kind.gvk().kind, obstacle(schema, "spec", "spec"))
    return {**tree, "spec": specs[0]}


def spec_schema(kind: type[Object]) -> Schema:
    """The schema of a kind's spec; empty if it has none."""
    return schema_for(kind).get("properties", {}).get("spec", {})


class SpecSearch:
    """Looks for an object that the server accepts, beginning with one that the schema accepts."""

    def __init__(self, user: ScenarioUser, kind: type[Object]) -> None:
        self._user = user
        self._kind = kind
        self._fields = list(fields_of(spec_schema(kind)))
        self._left = _TRIES

    async def accepted(self, tree: Tree) -> Tree:
        """A tree that a dry run of the server accepts. Raises `NoValidObject` with the server's first rejection."""
        refusal = first = await self._refusal(tree)
        while refusal is not None and self._left > 0:
            better = await self._better(tree, refusal)
            if better is None:
                break
            tree, refusal = better
        if refusal is not None:
            raise NoValidObject(self._kind.gvk().kind, f"the server rejects every candidate, the first with: {first}")
        return tree

    async def _better(self, tree: Tree, refusal: StatusError) -> tuple[Tree, StatusError | None] | None:
        """A tree with fewer problems, and what is left of them."""
        for other in self._variations(tree, refusal):
            if self._left <= 0:
                break
            now = await self._refusal(other)
            if now is None or len(now.causes) < len(refusal.causes):
                return other, now
        return None

    def _variations(self, tree: Tree, refusal: StatusError) -> Iterator[Tree]:
        """The tree with one field changed, then with two; those first that the refusal names."""
        words = str(refusal)
        fields = sorted(self._fields, key=lambda field: field.path[-1] not in words)
        for field in fields:
            yield from (_with(tree, field, value) for value in _others(tree, field))
        for one, other in combinations(fields, 2):
            for here in _others(tree, one)[:2]:
                yield from (_with(_with(tree, one, here), other, there) for there in _others(tree, other)[:2])

    async def _refusal(self, tree: Tree) -> StatusError | None:
        self._left -= 1
        return await refusal_of(self._user, lambda: self._user.client.create(Unstructured(tree), dry_run=True))


async def refusal_of(user: ScenarioUser, send: Callable[[], Awaitable[object]]) -> StatusError | None:
    """How the server refuses a request; None if it accepts it."""
    for attempt in range(_RETRIES + 1):
        try:
            await send()
        except (Invalid, Forbidden, BadRequest) as error:
            return error
        except (InternalError, ServiceUnavailable):
            if attempt == _RETRIES:
                raise
            await user.sleep(1.0)
        else:
            break
    return None


def _others(tree: Tree, field: SpecField) -> list[object]:
    present = value_at(tree, ("spec", *field.path))
    values = [value for value in field.values if value != present]
    return values if field.required or present is None else [*values, None]


def _with(tree: Tree, field: SpecField, value: object) -> Tree:
    return merged(tree, nested(("spec", *field.path), value))
