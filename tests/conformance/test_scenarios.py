"""Every scenario is answered by the subject as by the engine."""

from __future__ import annotations

import pytest
from conformance.catalog import all_scenarios
from conformance.known_differences import KNOWN
from conformance.player import Play
from conformance.report import describe
from conformance.scenario import ROWS, Scenario, Until
from conformance.servers import Settings
from conformance.stage import Stage

from samples import portions


def check_expectations(scenario: Scenario, reference: Play) -> None:
    """A scenario expects what the engine sends: all of it, and nothing else. It waits for nothing that never comes."""
    # the last answer belongs to no step
    answers = zip(scenario.steps, reference.answers, strict=False)
    vain = [(step.status, got) for step, got in answers if isinstance(step, Until) and got != {"status": step.status}]
    assert vain == [], f"the engine never gives the answers that the scenario waits for: {vain}"
    surprises = reference.answers[-1]["unexpected frames"]
    assert surprises == [], f"the engine sends frames that the scenario should expect: {surprises}"
    missed = [index for index, answer in enumerate(reference.answers) if "nothing more came in time" in answer]
    assert missed == [], f"the engine does not send the frames that the scenario expects in steps {missed}"


#: Themes that every run plays: mistakes that were found at random, and requests of attackers.
ALWAYS = ("found_at_random/", "hostile_requests/", "spoofed_fields/")


def _always(scenario: Scenario) -> bool:
    """Whether every run plays it: a mistake that was found stays mended, and a known difference known."""
    return any(theme in scenario.name for theme in ALWAYS) or any(known.is_about(scenario.name) for known in KNOWN)


#: What this run plays: of each area at least one.
CHOSEN = [
    *filter(_always, all_scenarios()),
    *portions.some(
        (each for each in all_scenarios() if not _always(each)), 120, by=lambda each: each.name.partition("/")[0]
    ),
]


@pytest.mark.parametrize("scenario", CHOSEN, ids=lambda scenario: scenario.name)
async def test_scenario(scenario: Scenario, stage: Stage, outcomes) -> None:
    if scenario.forgotten and scenario.name not in outcomes:
        pytest.skip("history cannot be made old on a server that is not ours")
    if scenario.gates and scenario.name not in outcomes:
        pytest.skip("the feature gates of a server that is not ours cannot be chosen")
    outcome = outcomes[scenario.name]
    if isinstance(outcome, Exception):
        raise outcome
    check_expectations(scenario, outcome.reference)
    if outcome.unexplained:
        pytest.fail(describe(outcome, *stage.names), pytrace=False)


async def test_what_plays_alone_meets_no_policy_of_before(stage: Stage, outcomes) -> None:
    """kube-apiserver applies a policy for up to a second after its deletion; a namespace that is gone then counts as an error."""
    if not stage.can_repeat:
        pytest.skip("a recording answers what it was asked")
    del outcomes  # the hooks are served, and nothing else plays
    again, scenarios = Stage(stage.reference, stage.subject), {each.name: each for each in all_scenarios()}
    for name in ("policies/expression-delete", "found_at_random/left-behind-by-a-namespace") * 2:
        outcome = (await again.outcomes([scenarios[name]]))[name]
        assert not isinstance(outcome, Exception)
        assert not outcome.unexplained, describe(outcome, *stage.names)


async def test_known_differences_are_still_there(stage: Stage, outcomes, settings: Settings) -> None:
    """An entry that explains nothing hides the next difference at its place."""
    about = {each.name for each in all_scenarios() if any(known.is_about(each.name) for known in KNOWN)}
    if settings.subject == "embedded" and about <= outcomes.keys():
        assert [entry for entry in KNOWN if entry not in stage.totals.used] == []


def test_every_row_has_scenarios() -> None:
    assert ROWS - {row for scenario in all_scenarios() for row in scenario.rows} == set()
