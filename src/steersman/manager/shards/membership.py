"""The terms of one replica of shards, and what its Lease says about the present one."""

from __future__ import annotations

from collections.abc import Mapping

from steersman import aio
from steersman.manager.shards.assignment import Assignment, Weighed
from steersman.manager.shards.holdings import Holdings, RangeClaim
from steersman.manager.shards.records import REPLICA_ANNOTATION, Member, member_text
from steersman.manager.shards.settings import Shards
from steersman.manager.shards.state import State


class Membership:
    """The terms of one replica, one after the other."""

    def __init__(self, shards: Shards, identity: str, program: str) -> None:
        self._shards = shards
        self._program = program
        self._identity = identity
        #: The identity of the last term; its Lease names it when it is released.
        self._last = ""
        self._start()

    def begin(self) -> None:
        """Begin the next term, whose identity no term has had. The work of the last one must have ended."""
        self._last = self.state.identity
        self._start()

    def _start(self) -> None:
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
            return {REPLICA_ANNOTATION: member_text(Member(term=self._last))}
        member = Member(
            term=state.identity,
            generation=state.assignment.generation,
            released=state.released,
            weights=self.weights,
            program=self._program,
        )
        return {REPLICA_ANNOTATION: member_text(member)}
