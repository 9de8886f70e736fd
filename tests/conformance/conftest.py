"""The two servers of a run, the scenarios played on both, and the line at its end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from conformance.hook_server import hook_server
from conformance.recording import Recording
from conformance.report import Outcome
from conformance.scenario import Scenario
from conformance.servers import OPTIONS, Settings, engine_server, gated_engine, subject_server
from conformance.stage import Stage

from samples.workers import summarize


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    for option, meaning in OPTIONS.items():
        group.addoption(option, help=meaning)


@pytest.fixture(scope="package")
def settings(pytestconfig: pytest.Config) -> Settings:
    return Settings.read(pytestconfig)


@pytest.fixture(scope="package")
async def stage(settings: Settings, request: pytest.FixtureRequest) -> AsyncGenerator[Stage]:
    """Both servers. An engine is started only when one is asked."""
    async with AsyncExitStack() as exits:
        await exits.enter_async_context(hook_server())

        def engine():
            return request.getfixturevalue("engine")

        recording = None
        if settings.replay is not None:
            reference = Recording.read(settings.replay)
        else:
            reference = await exits.enter_async_context(engine_server(engine()))
        if settings.record is not None:
            subject, recording = None, Recording()
            exits.callback(recording.write, settings.record)
        else:
            subject = await exits.enter_async_context(subject_server(settings, engine))
        made = Stage(reference, subject, recording)
        yield made
        summarize(request.config, made.totals.line(*made.names))


@pytest.fixture(scope="package")
async def outcomes(stage: Stage, settings: Settings, request: pytest.FixtureRequest) -> dict[str, Outcome | Exception]:
    """All scenarios that this run selected, played many at a time; each test looks at its own."""
    chosen: dict[str, Scenario] = {}
    for item in request.session.items:
        one = getattr(item, "callspec", None) and item.callspec.params.get("scenario")
        if isinstance(one, Scenario) and (settings.sets_gates or not one.gates):
            chosen[one.name] = one
    found = await stage.outcomes(one for one in chosen.values() if not one.gates)
    for gates in {one.gates for one in chosen.values() if one.gates}:
        async with _gated(stage, settings, gates) as gated:
            found |= await gated.outcomes(one for one in chosen.values() if one.gates == gates)
    return found


@asynccontextmanager
async def _gated(stage: Stage, settings: Settings, gates: tuple[str, ...]) -> AsyncGenerator[Stage]:
    """Both servers with feature gates on. They are started for this, and count with the others."""
    async with AsyncExitStack() as exits:
        reference, subject = stage.reference, stage.subject
        engine = None
        if not isinstance(reference, Recording) or settings.subject == "engine":
            engine = await exits.enter_async_context(gated_engine(gates))
        if engine is not None and not isinstance(reference, Recording):
            reference = await exits.enter_async_context(engine_server(engine))
        if subject is not None:
            subject = await exits.enter_async_context(subject_server(settings, lambda: engine, gates))
        yield Stage(reference, subject, stage.recording, totals=stage.totals)
