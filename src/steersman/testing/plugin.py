"""The pytest plugin: one engine for the whole run, a namespace and an API group for each test.

Guarantees: nothing but pytest is imported until a fixture is used; the fixtures are plain functions, so they work with
every async plugin and with none; what a test made in its namespace or group is deleted after it, without waiting.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from steersman.testing.engine import Engine

_LOGS = pytest.StashKey[str]()
# A name has at most 63 characters; the suffix and its dash take six.
_NAME_CHARACTERS_MAX = 57


@pytest.fixture(scope="session")
def engine_options() -> dict[str, Any]:
    """The options of `Engine.start` for the run's engine; a conftest that overrides this fixture sets them."""
    return {}


@pytest.fixture(scope="session")
def engine(
    engine_options: dict[str, Any], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Engine]:
    """A real API server and etcd, shared by all tests of the run."""
    import shutil  # noqa: PLC0415 - see the module's guarantees

    from steersman.testing.engine import Engine  # noqa: PLC0415 - see the module's guarantees

    with Engine.start(**engine_options) as engine:
        yield engine
        if request.session.testsfailed and not engine.is_existing_cluster:
            # Where pytest keeps what the last few runs left, and removes what older ones did.
            logs = tmp_path_factory.getbasetemp() / "engine-logs"
            shutil.copytree(engine.logs, logs, dirs_exist_ok=True)
            request.config.stash[_LOGS] = str(logs)


@pytest.fixture
def namespace(engine: Engine, request: pytest.FixtureRequest) -> Generator[str]:
    """The name of a namespace that is this test's alone."""
    name = namespace_for(request.node.name)
    engine.submit(engine.create_namespace(name)).result()
    yield name
    _leave_behind(engine, engine.delete_namespace(name))


@pytest.fixture
def crd_group(engine: Engine) -> Generator[str]:
    """An API group that is this test's alone, such as ``t7fxk2.test.steersman.dev``."""
    from steersman.aio import name_suffix  # noqa: PLC0415 - see the module's guarantees

    group = f"t{name_suffix()}.test.steersman.dev"
    yield group
    _leave_behind(engine, engine.delete_crds(group))


def namespace_for(test: str) -> str:
    """A name for the namespace of a test, in which the test can be recognised."""
    from steersman.aio import name_suffix  # noqa: PLC0415 - see the module's guarantees

    words = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")
    return f"{words[:_NAME_CHARACTERS_MAX].strip('-') or 'test'}-{name_suffix()}"


def _leave_behind(engine: Engine, work: Coroutine[Any, Any, None]) -> None:
    """Clean up while the next test runs; a cluster that stays is cleaned before this one counts as done."""
    cleaned = engine.submit(work)
    if engine.is_existing_cluster:
        cleaned.result()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say where the engine's logs are when tests failed."""
    logs = config.stash.get(_LOGS, None)
    if logs is not None:
        terminalreporter.write_line(f"the engine's logs are in {logs}")
