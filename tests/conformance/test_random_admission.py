"""Random webhook configurations and policies change and reject requests on the subject as on the engine.

`samples.portions` says how many sequences, and ``CONFORMANCE_SEED`` where they begin.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from conformance.random_admission import Block, random_admission, scenario_of
from conformance.report import Outcome, describe, describe_steps
from conformance.servers import Settings
from conformance.shrinking import fewest
from conformance.stage import Stage
from conformance.test_random import DEFAULT_SEED

from samples import portions

#: Each has about 120 steps.
SEQUENCES = portions.count(sample=1, of=5)
#: Sequences of one test.
BATCH = 10
BATCHES = [range(start, min(start + BATCH, SEQUENCES)) for start in range(0, SEQUENCES, BATCH)]


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: f"{batch.start}-to-{batch.stop - 1}")
async def test_random_admission(batch: range, stage: Stage, settings: Settings) -> None:
    """Whatever differs is shrunk to the fewest blocks that still differ."""
    seed = DEFAULT_SEED if settings.seed is None else settings.seed
    stage.totals.seed = seed
    made = dict(random_admission(seed, number) for number in batch)
    found = await stage.outcomes(scenario_of(name, blocks) for name, blocks in made.items())
    for name, blocks in made.items():
        outcome = found[name]
        if isinstance(outcome, Exception):
            raise outcome
        stage.totals.random_steps += len(outcome.scenario.steps)
        if outcome.unexplained:
            shrunk = await shrunk_outcome(stage, name, blocks)
            told = shrunk if shrunk.unexplained else outcome
            pytest.fail(f"{describe(told, *stage.names)}\nall of it: {describe_steps(told.scenario)}", pytrace=False)


async def shrunk_outcome(stage: Stage, name: str, blocks: Sequence[Block]) -> Outcome:
    # The last block deletes all configurations: without it, they would count for what is played later.
    *others, last = blocks

    async def differs(fewer: Sequence[Block]) -> bool:
        return bool((await stage.outcome(scenario_of(name, [*fewer, last]))).unexplained)

    return await stage.outcome(scenario_of(f"{name}, shrunk", [*await fewest(others, differs), last]))
