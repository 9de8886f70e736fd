"""The API server that a test talks to: the engine, the embedded one, or both, by the parameter of the fixture `api_server`.

In the rooms of ROOMS, a test that uses `api_server`, directly or through `client`, `namespace`, `sites` or `install`, runs
on the embedded server: ``[embedded]``. It also runs on the engine, as ``[engine]``, in three cases: its room is one of
ON_BOTH, or it is marked ``@pytest.mark.both_servers("why")``, or the run is a long one (`.ci/full`).
A test that needs what only the engine has uses `engine`, or is marked ``@pytest.mark.engine_only("aggregation")``.
With ``--servers=engine``, only tests that use the engine run, and all tests of these rooms run on it (`.ci/matrix`).
"""

from __future__ import annotations

import gc
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from steersman.aio import name_suffix
from steersman.testing import Engine, Operator, Plane, eventually
from steersman.testing.plugin import namespace_for

# Thousands of tests leave much that stays; looking through all of it as often as usual takes minutes of a run.
gc.set_threshold(20_000, 20, 50)

# A loaded machine is no failure: properties are about what is computed, not about how long that takes.
settings.register_profile("steersman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steersman")
# For a second Python: on the first one, the same properties meet ten times as many values.
settings.register_profile("few", settings.get_profile("steersman"), max_examples=10)
# Nor are ten seconds, the default for a test of an operator on a machine of its own, the patience of this run.
for wait in (eventually, Plane.drained, Operator.drained):
    wait.__kwdefaults__["within"] = 60.0

pytest_plugins = ["samples.portions", "samples.reruns", "samples.rooms", "samples.timings", "samples.workers"]

#: The rooms whose tests need an API server, whichever it is.
ROOMS = frozenset({"client", "cache", "controller", "manager", "guarantees", "patterns"})
#: Those of them that run on both servers in every run: the wire, and the guarantees.
ON_BOTH = frozenset({"client", "cache", "guarantees"})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--servers", choices=("engine",), help="only tests that use the engine, and each room on it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--servers") != "engine":
        return
    kept = [item for item in items if _uses_engine(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _uses_engine(item)])
    items[:] = kept


def _uses_engine(item: pytest.Item) -> bool:
    """Whether a test gets the engine: by a fixture of its own, as its server, or by a start in its function."""
    names: list[str] = getattr(item, "fixturenames", [])
    call = getattr(item, "callspec", None)
    parameters = {} if call is None else call.params
    return (
        "engine" in parameters.values()
        or any("engine" in name for name in names)
        or ("api_server" in names and "api_server" not in parameters)
        or "Engine.start" in inspect.getsource(getattr(item, "function", _uses_engine))
    )


def pytest_collection_finish() -> None:
    """Take modules and collected tests, which stay until the end, out of every later collection of garbage."""
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    room = metafunc.definition.path.parent.name
    if "api_server" not in metafunc.fixturenames or room not in ROOMS:
        return
    on_engine, on_both = (_reason(metafunc, name) for name in ("engine_only", "both_servers"))
    if on_engine or "engine" in metafunc.fixturenames:
        return
    from samples.portions import ALL  # a plugin, which pytest imports first

    both = ALL or room in ON_BOTH or on_both
    servers = ("engine", "embedded") if both else ("embedded",)
    chosen = metafunc.config.getoption("--servers")
    metafunc.parametrize("api_server", servers if chosen is None else (chosen,), indirect=True)


def _reason(metafunc: pytest.Metafunc, name: str) -> str:
    marker = metafunc.definition.get_closest_marker(name)
    if marker is not None and not marker.args:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {name} needs a reason")
    return "" if marker is None else marker.args[0]


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Restore the root logger: a command that runs in the process of the tests configures it."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(scope="module")
def _embedded(tmp_path_factory) -> Iterator:
    from samples.servers import Embedded

    with Embedded.start(tmp_path_factory.mktemp("embedded")) as embedded:
        yield embedded


@pytest.fixture
def api_server(request):
    """An API server: the run's engine, or the embedded one of the test's module."""
    # asked for here and not as a parameter: a test on the embedded server starts no engine
    return request.getfixturevalue("engine" if getattr(request, "param", "engine") == "engine" else "_embedded")


@pytest.fixture
def namespace(api_server, request) -> Iterator[str]:
    """The name of a namespace that is this test's alone."""
    name = namespace_for(request.node.name)
    api_server.submit(api_server.create_namespace(name)).result()
    yield name
    _leave_behind(api_server, lambda engine: engine.delete_namespace(name))


@pytest.fixture
def crd_group(api_server) -> Iterator[str]:
    """An API group that is this test's alone."""
    group = f"t{name_suffix()}.test.steersman.dev"
    yield group
    _leave_behind(api_server, lambda engine: engine.delete_crds(group))


@pytest.fixture
async def client(api_server) -> AsyncIterator:
    async with api_server.client(field_manager="tests") as client:
        yield client


@pytest.fixture(scope="session")
def _installed() -> set[type]:
    """What was installed on the run's engine."""
    return set()


@pytest.fixture
def install(api_server, _installed) -> Callable[..., Awaitable[None]]:
    """Has the server serve kinds: ``await install(Site)``. On the run's engine each is installed once."""

    async def install(*classes: type) -> None:
        if not isinstance(api_server, Engine):
            await api_server.install(*classes)
            return
        missing = [each for each in classes if each not in _installed]
        if missing:
            async with api_server.client(field_manager="tests") as client:
                await client.install(*missing)
            _installed.update(missing)

    return install


@pytest.fixture
async def sites(install) -> None:
    """The Site kind."""
    from samples.site import Site

    await install(Site)


def _leave_behind(api_server, clean_up: Callable[[Engine], Coroutine[Any, Any, None]]) -> None:
    """Clean up the engine while the next test runs; an embedded server goes with its test."""
    if isinstance(api_server, Engine):
        cleaned = api_server.submit(clean_up(api_server))
        if api_server.is_existing_cluster:
            cleaned.result()
