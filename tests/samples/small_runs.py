"""Small runs of benchmarks, which show that each still measures: a sample of them in a run, all in `.ci/full`."""

from __future__ import annotations

import pytest

from samples import portions

_CHOSEN = portions.some(("apiserver", "converge", "patterns", "referenced", "scale", "shards", "soak", "webhooks"), 2)


def small_run(benchmark: str) -> pytest.MarkDecorator:
    """Mark the small run of a benchmark."""
    return pytest.mark.skipif(benchmark not in _CHOSEN, reason="another small run's turn: .ci/full runs all")
