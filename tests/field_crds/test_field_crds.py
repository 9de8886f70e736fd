"""Definitions of the field behave here as they do there: those of well-known projects, installed on the embedded server and
on the engine, with objects of all sorts, valid and not; every answer is compared.

``FIELD_CRDS=all`` plays all definitions, not a few; ``FIELD_CRDS_SEED`` makes other objects. ``FIELD_CRDS_RECORD`` saves the
engine's answers to a file, and ``FIELD_CRDS_REPLAY`` takes them from there, without an engine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from field_crds.definitions import SHORT, definitions
from field_crds.servers import Outcomes, played

from samples.tree_differences import differences

SEED = os.environ.get("FIELD_CRDS_SEED", "1")
WHOLE = os.environ.get("FIELD_CRDS") == "all"
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
        metafunc.parametrize("name", list(definitions()) if WHOLE else sorted(SHORT))


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
