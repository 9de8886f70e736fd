"""kubectl prints the same and ends the same way, whichever of the two servers it talks to.

`samples.portions` says which scenarios a run plays; more than half of the everyday ones are among them.
"""

from __future__ import annotations

import asyncio

import pytest
from kubectl.comparing import Outcome
from kubectl.known_differences import KNOWN
from kubectl.scenario import Scenario, all_scenarios

from samples import portions

#: In the order in which they are played.
CHOSEN = sorted(
    portions.some((scenario for scenario in all_scenarios() if scenario.is_everyday), 4)
    + portions.some((scenario for scenario in all_scenarios() if not scenario.is_everyday), 2),
    key=lambda scenario: scenario.installs,
)


@pytest.mark.parametrize("scenario", CHOSEN, ids=lambda scenario: scenario.name)
async def test_scenario(scenario: Scenario, outcomes) -> None:
    outcome = await outcomes[scenario.name]
    if outcome.reports:
        pytest.fail("\n".join(["- engine, + embedded", *outcome.reports]), pytrace=False)


async def test_known_differences_are_still_there(outcomes) -> None:
    """An entry that explains nothing hides the next difference at its place."""
    if len(outcomes) == len(all_scenarios()):
        found = await asyncio.gather(*outcomes.values(), return_exceptions=True)
        used = {known for outcome in found if isinstance(outcome, Outcome) for known in outcome.used}
        assert [entry for entry in KNOWN if entry not in used] == []
