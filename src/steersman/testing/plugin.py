"""The pytest plugin: a control plane for each test, on the server chosen for the run.

Guarantees: only pytest is imported until a fixture is used. The fixtures are plain functions, so they work with every
async plugin and without one. Objects in a test's namespace or group are deleted after it, without waiting.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

if TYPE_CHECKING:
    from steersman.testing.clock import Clock
    from steersman.testing.engine.engine import Engine
    from steersman.testing.hosts import Host
    from steersman.testing.plane import Plane

Scope = Literal["function", "module", "session"]

_LOGS = pytest.StashKey[str]()
# A name has at most 63 characters; the dash and the suffix take six.
_NAME_CHARACTERS_MAX = 57
_SCOPES = ("function", "module", "session")


def _spare_rewriting(pluginmanager: pytest.PytestPluginManager) -> None:
    """Exempt Steersman from assert rewriting: pytest would rewrite the plugin's whole distribution, for seconds."""
    hook = getattr(pluginmanager, "rewrite_hook", None)
    must: set[str] = getattr(hook, "_must_rewrite", set())
    must.difference_update({name for name in must if name.partition(".")[0] == "steersman"})


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the options of a test run."""
    _spare_rewriting(pluginmanager)
    group = parser.getgroup("steersman", "tests of Kubernetes operators")
    group.addoption(
        "--steersman-server",
        metavar="SERVER",
        help="where control_plane runs: embedded (in this process), engine (kube-apiserver, etcd and "
        "kube-controller-manager), or the address or kubeconfig of a cluster; default: the ini option, else embedded",
    )
    group.addoption(
        "--steersman-kubernetes",
        metavar="MINOR",
        help="the version of Kubernetes of the engine, such as 1.35, which tools/engine/build --kubernetes 1.35 has built; "
        "default: the programs of the environment. It has no effect on an embedded server",
    )
    group.addoption(
        "--steersman-scope",
        choices=_SCOPES,
        help="the lifetime of an embedded server: one per test (function), module or session",
    )
    parser.addini("steersman_server", "the default of --steersman-server", default="embedded")
    parser.addini("steersman_scope", "the default of --steersman-scope", default="function")


def _server(config: pytest.Config) -> str:
    return cast("str", config.getoption("--steersman-server") or config.getini("steersman_server"))


def _scope(config: pytest.Config) -> Scope:
    scope = config.getoption("--steersman-scope") or config.getini("steersman_scope")
    if scope not in _SCOPES:
        raise pytest.UsageError(f"steersman_scope is {scope!r}; write one of {', '.join(_SCOPES)}")
    return scope


# the engine


@pytest.fixture(scope="session")
def engine_options() -> dict[str, Any]:
    """The options of `Engine.start` for the run's engine; override this fixture in a conftest to set them."""
    return {}


@pytest.fixture(scope="session")
def engine(
    engine_options: dict[str, Any], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Engine]:
    """A real API server and etcd, shared by all tests of the run."""
    import shutil  # noqa: PLC0415 - see the module's guarantees

    from steersman.testing.engine.engine import Engine  # noqa: PLC0415 - see the module's guarantees

    options = {**_controllers(), **engine_options} if _server(request.config) == "engine" else engine_options
    version = request.config.getoption("--steersman-kubernetes")
    with Engine.start(**options if version is None else {**options, "kubernetes": version}) as engine:
        yield engine
        if request.session.testsfailed and not engine.is_existing_cluster:
            # pytest keeps this directory for the last few runs and removes older ones.
            logs = tmp_path_factory.getbasetemp() / "engine-logs"
            shutil.copytree(engine.logs, logs, dirs_exist_ok=True)
            request.config.stash[_LOGS] = str(logs)


def _controllers() -> dict[str, Any]:
    """The controllers of the embedded control plane, so that a suite finds the same on both."""
    from steersman.controlplane import CONTROLLERS  # noqa: PLC0415 - see the module's guarantees

    names = ",".join(CONTROLLERS)
    return {"controller_manager": True, "flags": {"kube-controller-manager": [f"--controllers={names}"]}}


# servers, by lifetime


@pytest.fixture(scope="session")
def control_plane_options() -> dict[str, Any]:
    """The options of `ControlPlane` for embedded servers; override this fixture in a conftest to set them."""
    return {}


@pytest.fixture(scope="session")
def _steersman_session_host(request: pytest.FixtureRequest, control_plane_options: dict[str, Any]) -> Generator[Host]:
    yield from _host(request, control_plane_options)


@pytest.fixture(scope="module")
def _steersman_module_host(request: pytest.FixtureRequest, control_plane_options: dict[str, Any]) -> Generator[Host]:
    yield from _host(request, control_plane_options)


def _host(request: pytest.FixtureRequest, options: dict[str, Any]) -> Generator[Host]:
    host = _made_host(request, options)
    yield host
    host.end()


def _made_host(request: pytest.FixtureRequest, options: dict[str, Any]) -> Host:
    server = _server(request.config)
    if server == "embedded":
        from steersman.testing.embedded_host import EmbeddedHost  # noqa: PLC0415 - see the module's guarantees

        return EmbeddedHost(options, in_thread=True)
    from steersman.testing.remote_hosts import EngineHost, ExistingHost  # noqa: PLC0415 - as above

    return EngineHost(request.getfixturevalue("engine")) if server == "engine" else ExistingHost(server)


def _host_of(request: pytest.FixtureRequest, scope: Scope) -> Generator[Host]:
    """The server of a test: its own, if it is embedded and no wider scope is set."""
    own_clock = "clock" in request.fixturenames
    if _server(request.config) != "embedded" or (scope != "function" and not own_clock):
        wider = scope if _server(request.config) == "embedded" else "session"
        yield request.getfixturevalue(f"_steersman_{wider}_host")
        return
    from steersman.testing.embedded_host import EmbeddedHost  # noqa: PLC0415 - see the module's guarantees

    # A plain function has no loop for a server; an async test is fastest if it shares its own.
    is_async = inspect.iscoroutinefunction(getattr(request.node, "obj", None))
    options = request.getfixturevalue("control_plane_options")
    host = EmbeddedHost(options, in_thread=not is_async, lasting=False)
    yield host
    host.end()


# fixtures for tests


@pytest.fixture
def control_plane(request: pytest.FixtureRequest) -> Generator[Plane]:
    """A Kubernetes control plane with a namespace for this test alone."""
    from steersman.testing.plane import Plane  # noqa: PLC0415 - see the module's guarantees

    hosts = _host_of(request, _scope(request.config))
    plane = Plane(next(hosts), namespace=namespace_for(request.node.name))
    yield plane
    plane.end()
    next(hosts, None)


@pytest.fixture(scope="module")
def module_control_plane(_steersman_module_host: Host) -> Generator[Plane]:
    """A control plane for the fixtures and tests of a module; bare names are in namespace default."""
    yield from _wide(_steersman_module_host)


@pytest.fixture(scope="session")
def session_control_plane(_steersman_session_host: Host) -> Generator[Plane]:
    """A control plane for the fixtures and tests of a whole run; bare names are in namespace default."""
    yield from _wide(_steersman_session_host)


def _wide(host: Host) -> Generator[Plane]:
    from steersman.testing.plane import Plane  # noqa: PLC0415 - see the module's guarantees

    plane = Plane(host)
    yield plane
    plane.end()


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> Generator[Clock]:
    """Skips time for the test, its operators and its control plane, which has to be embedded."""
    from steersman.testing.clock import clock_in_use  # noqa: PLC0415 - see the module's guarantees

    if _server(request.config) != "embedded":
        pytest.skip("cannot skip the time of another process: tests with a clock run on the embedded server only")
    with clock_in_use() as clock:
        yield clock


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Generator[str]:
    """The name of a namespace for this test alone, on the engine if the test uses that."""
    if not _uses_engine(request):
        yield request.getfixturevalue("control_plane").namespace
        return
    engine: Engine = request.getfixturevalue("engine")
    name = namespace_for(request.node.name)
    engine.submit(engine.create_namespace(name)).result()
    yield name
    _leave_behind(engine, engine.delete_namespace(name))


@pytest.fixture
def crd_group(request: pytest.FixtureRequest) -> Generator[str]:
    """An API group for this test alone, such as ``t7fxk2.test.steersman.dev``."""
    from steersman.aio import name_suffix  # noqa: PLC0415 - see the module's guarantees

    group = f"t{name_suffix()}.test.steersman.dev"
    if _uses_engine(request):
        engine: Engine = request.getfixturevalue("engine")
        yield group
        _leave_behind(engine, engine.delete_crds(group))
    else:
        plane: Plane = request.getfixturevalue("control_plane")
        yield group
        plane.forget_group(group)


def _uses_engine(request: pytest.FixtureRequest) -> bool:
    return "engine" in request.fixturenames and "control_plane" not in request.fixturenames


def namespace_for(test: str) -> str:
    """A name for the namespace of a test, derived from the test's name."""
    from steersman.aio import name_suffix  # noqa: PLC0415 - see the module's guarantees

    words = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")
    return f"{words[:_NAME_CHARACTERS_MAX].strip('-') or 'test'}-{name_suffix()}"


def _leave_behind(engine: Engine, work: Coroutine[Any, Any, None]) -> None:
    """Clean up while the next test runs; an existing cluster is cleaned before this test counts as done."""
    cleaned = engine.submit(work)
    if engine.is_existing_cluster:
        cleaned.result()


# output


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Show compared writes one by one: ``assert writes == []``."""
    if op != "==" or type(left).__name__ != "Writes" or right != []:
        return None
    writes = cast("list[object]", left)
    return [
        f"{len(writes)} {'write was' if len(writes) == 1 else 'writes were'} made:",
        *(f"  {each}" for each in writes),
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report where the engine's logs are if tests failed, and a version that control planes did not have."""
    version, server = config.getoption("--steersman-kubernetes"), _server(config)
    if version is not None and server != "engine":
        terminalreporter.write_line(
            f"--steersman-kubernetes={version} is only for the fixture engine: control_plane ran on {server};"
            " add --steersman-server=engine"
        )
    logs = config.stash.get(_LOGS, None)
    if logs is not None:
        terminalreporter.write_line(f"the engine's logs are in {logs}")
