"""The terms of one replica of shards: what its Lease says about the present one, and what the replica shows of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from steersman import aio
from steersman.controller import Blueprint, Request
from steersman.debug import Explanation, ShardStatistics
from steersman.manager.shards.assignment import Assignment, Weighed
from steersman.manager.shards.holdings import Holdings, RangeClaim, request_hash
from steersman.manager.shards.kinds import is_shared
from steersman.manager.shards.records import REPLICA_ANNOTATION, Member, member_text
from steersman.manager.shards.settings import Shards
from steersman.manager.shards.state import State
from steersman.wire import HASHES


class Membership:
    """The terms of one replica, one after the other."""

    def __init__(self, shards: Shards, identity: str, program: str) -> None:
        self._shards = shards
        self._program = program
        self._identity = identity
        #: The identity of the last term that was entered: the Lease names it until the next claim, also when it is released.
        self._entered = ""
        self.begin()

    def enter(self) -> None:
        """Let the Lease name the present term, as soon as it is renewed.

        A claim names none: if its answer is lost, others could give ranges to a term that begins after they count it as
        ended.
        """
        self._entered = self.state.identity

    def begin(self) -> None:
        """Prepare the next term, whose identity no term has had. The last one must have been left."""
        # A process that is started again with the identity of an earlier one has other terms.
        self.state = State(identity=f"{self._identity}.{aio.name_suffix(5)}", renew=self._shards.renew)
        self.holdings = Holdings(self._shards.lease)
        self.weights: tuple[Weighed, ...] = ()

    @property
    def assignment(self) -> Assignment:
        """The newest assignment that this replica has seen in its term."""
        return self.state.assignment

    def claim(self) -> RangeClaim | None:
        """What a write of the current reconcile needs; None outside a reconcile."""
        return self.holdings.claim()

    def annotations(self, holds: bool) -> Mapping[str, str]:  # noqa: FBT001 - see LeaseNotes
        """What the Lease of this replica says when it is renewed, or released after a term."""
        state = self.state
        if not holds:
            return {REPLICA_ANNOTATION: member_text(Member(term=self._entered))}
        if state.identity != self._entered:
            return {REPLICA_ANNOTATION: member_text(Member(term="", program=self._program))}
        member = Member(
            term=state.identity,
            generation=state.assignment.generation,
            released=state.released,
            weights=self.weights,
            program=self._program,
        )
        return {REPLICA_ANNOTATION: member_text(member)}

    # what the replica shows

    def statistics(self) -> ShardStatistics:
        """The ranges of this replica."""
        state, holdings = self.state, self.holdings
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

    def with_holders(self, explanations: Iterable[Explanation], blueprints: Iterable[Blueprint]) -> list[Explanation]:
        """The explanations, each with the replica that has the key if that is another one."""
        shared = {blueprint.name for blueprint in blueprints if is_shared(blueprint)}
        return [
            replace(each, elsewhere=self._elsewhere(Request(each.key))) if each.controller in shared else each
            for each in explanations
        ]

    def _elsewhere(self, request: Request) -> str:
        if self.holdings.admits(request):
            return ""
        found = request_hash(request)
        for part in self.assignment.parts:
            if part.range.contains(found):
                moving = f", which gives it to {part.next}" if part.next else ""
                return f"{part.owner or 'no replica'}{moving}"
        return "no replica"
