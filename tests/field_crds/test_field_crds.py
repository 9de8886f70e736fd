"""Definitions of the field behave here as they do there: those of well-known projects, installed on the embedded server and
on the engine, with objects of all sorts, valid and not; every answer is compared.

`samples.portions` says how many definitions are played, and with which objects. ``FIELD_CRDS_RECORD`` saves the
engine's answers to a file, and ``FIELD_CRDS_REPLAY`` takes them from there, without an engine: with the same ``STEERSMAN_SEED``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from field_crds.definitions import SHORT, definitions
from field_crds.servers import Outcomes, played

from samples import portions
from samples.tree_differences import differences
from steersman.golang.regexp.parser import SIZE_MAX, expression_problem, parsed

SEED = str(portions.seed_of("definitions of the field"))
RECORD, REPLAY = os.environ.get("FIELD_CRDS_RECORD", ""), os.environ.get("FIELD_CRDS_REPLAY", "")


@pytest.fixture(scope="module")
async def outcomes(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncGenerator[tuple[Outcomes, Outcomes]]:
    """What the engine and the embedded server answer about each definition of this run."""
    names = [item.callspec.params["name"] for item in request.session.items if _is_ours(item)]
    chosen = list((await asyncio.to_thread(definitions, names)).values())
    folder = tmp_path_factory.mktemp("embedded")
    async with played(chosen, seed=SEED, folder=folder, record=RECORD, replay=REPLAY) as both:
        yield both


def _is_ours(item: pytest.Item) -> bool:
    return item.path == Path(__file__) and hasattr(item, "callspec")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        # what there is in all is only known when it was read
        metafunc.parametrize("name", list(definitions()) if portions.ALL else portions.some(sorted(SHORT), 4))


@pytest.mark.slow
async def test_a_definition_of_the_field_behaves_alike(outcomes: tuple[Outcomes, Outcomes], name: str) -> None:
    there, here = await asyncio.gather(outcomes[0][name], outcomes[1][name])
    found: list[str] = []
    for engine, embedded in zip(there, here, strict=False):
        if (engine.label, engine.asked) != (embedded.label, embedded.asked):
            found.append(
                f"other requests from here on: {engine.label} {engine.asked}; {embedded.label} {embedded.asked}"
            )
            break
        lines = list(differences(engine.answer, embedded.answer))
        if lines:
            found.append(f"{engine.label} ({engine.asked})\n    " + "\n    ".join(lines[:10]))
    assert not found, f"{len(found)} of {len(there)} answers differ\n  " + "\n  ".join(found[:30])
    assert len(there) == len(here)


def test_no_pattern_of_the_field_is_refused() -> None:
    """Patterns have a limit on their size that is lower than Go's; those of well-known projects are far from it."""
    patterns = {pattern for each in definitions().values() for pattern in _patterns(each.tree)}
    assert len(patterns) > 40
    assert [pattern for pattern in patterns if expression_problem(pattern)] == []
    assert max(parsed(pattern).size for pattern in patterns) < SIZE_MAX // 50


def _patterns(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        if isinstance(tree.get("pattern"), str):
            yield tree["pattern"]
        tree = list(tree.values())
    if isinstance(tree, list):
        for inner in tree:
            yield from _patterns(inner)
