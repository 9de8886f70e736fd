"""Where scenarios are played on both servers at once, many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from conformance.comparing import Difference
from conformance.known_differences import KNOWN, Known
from conformance.player import Play, Server, play
from conformance.recording import Recording
from conformance.report import Outcome, Totals, compare
from conformance.scenario import Scenario
from conformance.settlement import settle

#: Scenarios under way at a time: most of one is waiting for an answer.
AT_ONCE = 24


def _is_address(difference: Difference) -> bool:
    """Whether both servers have an address at a place, chosen in different steps."""
    return all(str(value).startswith("<address of step ") for value in (difference.reference, difference.subject))


@dataclass(slots=True)
class Stage:
    """The two servers, or one of them and a recording.

    Recording, there is no subject: what the reference says is compared with itself.
    """

    reference: Server | Recording
    subject: Server | None
    recording: Recording | None = None
    known: tuple[Known, ...] = KNOWN
    totals: Totals = field(default_factory=Totals)

    @property
    def names(self) -> tuple[str, str]:
        """What the reference and the subject are called."""
        reference = self.reference.name if isinstance(self.reference, Server) else "recorded engine"
        return reference, self.subject.name if self.subject else "recording"

    @property
    def _servers(self) -> list[Server]:
        return [server for server in (self.reference, self.subject) if isinstance(server, Server)]

    @property
    def can_repeat(self) -> bool:
        """Whether steps without a recording can be played."""
        return isinstance(self.reference, Server)

    async def outcome(self, scenario: Scenario) -> Outcome:
        """Play a scenario on both and compare; nothing is counted."""
        outcome = await self._played(scenario)
        # A server chooses the addresses of Services at random: one that is free again may be chosen again.
        if outcome.unexplained and self.can_repeat and all(map(_is_address, outcome.differences)):
            outcome = await self._played(scenario)
        return outcome

    async def _played(self, scenario: Scenario) -> Outcome:
        reference, subject = await asyncio.gather(self._reference(scenario), self._subject(scenario))
        if self.recording is not None:
            self.recording.add(scenario, reference)
        return compare(scenario, reference, subject or reference, self.known)

    async def outcomes(self, scenarios: Iterable[Scenario]) -> dict[str, Outcome | Exception]:
        """Play many, and count; one that cannot be played leaves its error."""
        places = asyncio.Semaphore(AT_ONCE)
        found: dict[str, Outcome | Exception] = {}

        async def one(scenario: Scenario) -> None:
            async with places:
                try:
                    found[scenario.name] = outcome = await self.outcome(scenario)
                    self.totals.add(outcome)
                except Exception as error:  # noqa: BLE001 - the test of this scenario raises it
                    found[scenario.name] = error

        chosen = list(scenarios)
        fresh = [scenario for scenario in chosen if not scenario.forgotten]
        await asyncio.gather(*(one(scenario) for scenario in fresh if not scenario.alone))
        alone = [scenario for scenario in fresh if scenario.alone]
        problems = await asyncio.gather(*map(settle, self._servers if alone else ()))
        for scenario in alone:
            if any(problems):
                found[scenario.name] = AssertionError("\n".join(filter(None, problems)))
            else:
                await one(scenario)
        forgotten = [scenario for scenario in chosen if scenario.forgotten]
        if forgotten and await self._forget():
            await asyncio.gather(*(one(scenario) for scenario in forgotten))
        return found

    async def _forget(self) -> bool:
        """Make both servers forget; whether they did."""
        # an engine against itself forgets once
        ways = {server.host: server.forget for server in self._servers}.values()
        if None in ways:
            return False
        for way in ways:
            assert way is not None
            await way()
        return True

    async def _reference(self, scenario: Scenario) -> Play:
        if isinstance(self.reference, Recording):
            return self.reference.play(scenario)
        return await play(self.reference, scenario)

    async def _subject(self, scenario: Scenario) -> Play | None:
        return await play(self.subject, scenario) if self.subject is not None else None
