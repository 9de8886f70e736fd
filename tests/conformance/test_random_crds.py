"""Random CustomResourceDefinitions are taken, filled in and refused by the subject as by the engine.

`samples.portions` says how many, and ``CONFORMANCE_SEED`` where they begin.
"""

from __future__ import annotations

import pytest
from conformance.random_crds import LENGTH, random_crds
from conformance.servers import Settings
from conformance.stage import Stage
from conformance.test_random import DEFAULT_SEED, explain

from samples import portions

COUNT = portions.count(sample=25, of=150)


async def test_random_definitions(stage: Stage, settings: Settings) -> None:
    seed = DEFAULT_SEED if settings.seed is None else settings.seed
    scenarios = [random_crds(seed, number) for number in range(COUNT // LENGTH)]
    found = await stage.outcomes(scenarios)
    for scenario in scenarios:
        outcome = found[scenario.name]
        if isinstance(outcome, Exception):
            raise outcome
        if outcome.unexplained:
            pytest.fail(await explain(stage, outcome), pytrace=False)
