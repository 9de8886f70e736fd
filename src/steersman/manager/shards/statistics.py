"""What a replica shows of its shards, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from steersman.controller import Blueprint, Request
from steersman.debug import Explanation, ShardStatistics
from steersman.manager.shards.holdings import request_hash
from steersman.manager.shards.kinds import is_shared
from steersman.wire import HASHES

if TYPE_CHECKING:
    from steersman.manager.shards.membership import Membership


def shard_statistics(membership: Membership) -> ShardStatistics:
    """The ranges of a replica."""
    state, holdings = membership.state, membership.holdings
    begun = holdings.begun
    beginning = tuple(each for held in holdings.ranges for each in held.without(begun))
    states = {"working": begun, "beginning": beginning, "draining": holdings.draining}
    return ShardStatistics(
        replica=state.identity,
        generation=state.assignment.generation,
        replicas=tuple(sorted({part.owner for part in state.assignment.parts if part.owner})),
        working=tuple(map(str, begun)),
        beginning=tuple(map(str, beginning)),
        draining=tuple(map(str, holdings.draining)),
        parts={name: sum(each.width for each in ranges) / HASHES for name, ranges in states.items()},
    )


def with_holders(
    explanations: Iterable[Explanation], blueprints: Iterable[Blueprint], membership: Membership | None
) -> list[Explanation]:
    """The explanations, each with the replica that has the key if that is another one."""
    if membership is None:
        return [*explanations]
    shared = {blueprint.name for blueprint in blueprints if is_shared(blueprint)}
    return [
        replace(each, elsewhere=_elsewhere(membership, Request(each.key))) if each.controller in shared else each
        for each in explanations
    ]


def _elsewhere(membership: Membership, request: Request) -> str:
    if membership.holdings.admits(request):
        return ""
    found = request_hash(request)
    for part in membership.assignment.parts:
        if part.range.contains(found):
            moving = f", which gives it to {part.next}" if part.next else ""
            return f"{part.owner or 'no replica'}{moving}"
    return "no replica"
