"""Random requests are answered by the subject as by the engine; the seed of a run is in its last line."""

from __future__ import annotations

import pytest
from conformance.random_requests import LENGTH, random_scenario
from conformance.report import Outcome, describe, describe_steps
from conformance.scenario import Scenario
from conformance.servers import Settings
from conformance.shrinking import shrink
from conformance.stage import Stage

from samples import portions

#: A run plays new requests unless it is given a seed.
DEFAULT_SEED = portions.seed_of("conformance")
#: Sequences of one test.
BATCH = 12


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of a bounded length, as many as the steps need."""
    if "batch" in metafunc.fixturenames:
        sequences = -(-Settings.read(metafunc.config).steps // LENGTH)
        batches = [range(start, min(start + BATCH, sequences)) for start in range(0, sequences, BATCH)]
        metafunc.parametrize("batch", batches, ids=lambda batch: f"{batch.start}-to-{batch.stop - 1}")


async def test_random_sequences(batch: range, stage: Stage, settings: Settings) -> None:
    """Whatever differs is shrunk to the fewest steps that still differ."""
    seed = DEFAULT_SEED if settings.seed is None else settings.seed
    stage.totals.seed = seed
    scenarios = [random_scenario(seed, number) for number in batch]
    found = await stage.outcomes(scenarios)
    for scenario in scenarios:
        outcome = found[scenario.name]
        if isinstance(outcome, Exception):
            raise outcome
        stage.totals.random_steps += len(scenario.steps)
        if outcome.unexplained:
            pytest.fail(await explain(stage, outcome), pytrace=False)


async def explain(stage: Stage, outcome: Outcome) -> str:
    """The difference in the fewest steps; from a recording, nothing can be played again."""
    if stage.subject is None or not stage.can_repeat:
        return describe(outcome, *stage.names)

    async def differs(fewer: Scenario) -> bool:
        return bool((await stage.outcome(fewer)).unexplained)

    shrunk = await stage.outcome(await shrink(outcome.scenario, differs))
    told = shrunk if shrunk.unexplained else outcome
    return f"{describe(told, *stage.names)}\nall of it: {describe_steps(told.scenario)}"
