"""The fixtures, in a test run of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from statistics import median

import pytest

CONFTEST = """
import json, pathlib, pytest

FOLDER = pathlib.Path(__file__).parent

@pytest.fixture(scope="session")
def engine_options():
    return {"flags": {"kube-apiserver": ["--v=2"]}}

def pytest_runtest_logreport(report):
    with (FOLDER / "phases.jsonl").open("a") as file:
        file.write(json.dumps([report.nodeid, report.when, report.duration]) + "\\n")
"""

TESTS = """
import asyncio, pathlib, json
import pytest

FOLDER = pathlib.Path(__file__).parent
SEEN = []

def remember(engine, namespace):
    SEEN.append((engine.url, namespace))

@pytest.mark.parametrize("number", range(25))
def test_plain(engine, namespace, number):
    remember(engine, namespace)
    engine.submit(engine.create_namespace(f"baseline-{number}")).result()

@pytest.mark.parametrize("number", range(25))
async def test_with_a_loop(engine, namespace, number):
    remember(engine, namespace)

def test_A_very_long_name__with_Strange_CHARACTERS_that_no_namespace_could_ever_have(engine, namespace):
    remember(engine, namespace)

def test_each_test_has_its_own_namespace(engine):
    assert len({url for url, _ in SEEN}) == 1
    assert len({name for _, name in SEEN}) == len(SEEN) == 51
    listed = asyncio.run(engine.kubectl("get", "namespaces", "--output=name"))
    assert {f"namespace/{name}" for _, name in SEEN} <= set(listed.split())

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "spec": {
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
GROUPS = []

@pytest.mark.parametrize("number", range(2))
def test_each_test_has_its_own_group(engine, crd_group, number):
    GROUPS.append(crd_group)
    crd = CRD | {"metadata": {"name": f"boats.{crd_group}"}, "spec": CRD["spec"] | {"group": crd_group}}
    asyncio.run(engine.kubectl("create", "--filename=-", stdin=json.dumps(crd)))

def test_groups_are_cleaned_up(engine):
    assert len(set(GROUPS)) == 2
    names = [f"customresourcedefinition/boats.{group}" for group in GROUPS]
    asyncio.run(engine.kubectl("wait", "--for=delete", *names, "--timeout=20s"))
    (FOLDER / "engine").write_text(str(engine.kubeconfig.parent))

def test_that_fails(engine):
    assert engine is None
"""


def _pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Without an installed distribution, as in a source tree on the path, the plugin has to be named.
    installed = entry_points(group="pytest11", name="steersman")
    plugin = () if installed else ("-p", "steersman.testing.plugin")
    settings = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
    command = [sys.executable, "-m", "pytest", *plugin, *settings, *arguments, str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_run_shares_one_engine_and_a_namespace_costs_little(tmp_path) -> None:
    """A namespace of its own costs a test little more than its creation; a run that failed says where the logs are."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    done = _pytest(tmp_path, "-W", "error", "--basetemp", str(tmp_path / "base"))
    assert "1 failed, 55 passed" in done.stdout, done.stdout + done.stderr
    creation, overhead = _median_seconds(tmp_path / "phases.jsonl")
    assert overhead < 3 * creation + 0.050
    assert not Path((tmp_path / "engine").read_text()).exists()
    logs = tmp_path / "base" / "engine-logs"
    assert f"the engine's logs are in {logs}" in done.stdout
    # What the conftest asked for in `engine_options` was done.
    assert '--v="2"' in (logs / "kube-apiserver-0.log").read_text()
    assert (logs / "etcd-0.log").exists()


def test_a_run_chooses_the_version_of_its_engine(tmp_path) -> None:
    """The option goes before what the conftest asks for, and a version that is not built says how to build it."""
    (tmp_path / "conftest.py").write_text(CONFTEST.replace('{"flags"', '{"kubernetes": "0.2", "flags"'))
    (tmp_path / "test_it.py").write_text("def test_it(engine): pass")
    done = _pytest(tmp_path, "--steersman-kubernetes=0.1")
    assert "build it once with `tools/engine/build --kubernetes 0.1`" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("server", "said"), [("embedded", True), ("engine", False)])
def test_a_version_is_only_for_the_engine(tmp_path, server, said) -> None:
    """A run on the embedded server must not pass for one on that version of Kubernetes."""
    (tmp_path / "test_it.py").write_text("def test_it(): pass")
    done = _pytest(tmp_path, "-q", f"--steersman-server={server}", "--steersman-kubernetes=1.35")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    words = "--steersman-kubernetes=1.35 is only for the fixture engine: control_plane ran on embedded;"
    assert (words in done.stdout) is said, done.stdout


def _median_seconds(phases: Path) -> tuple[float, float]:
    """How long the creation of a namespace takes, and setup and teardown of a test that has one."""
    spent: dict[str, float] = {}
    creations: list[float] = []
    for line in phases.read_text().splitlines():
        test, when, duration = json.loads(line)
        # The first of each kind also pays for the engine's start or the loop's.
        if ("test_plain" not in test and "with_a_loop" not in test) or "[0]" in test:
            continue
        if when != "call":
            spent[test] = spent.get(test, 0) + duration
        elif "test_plain" in test:
            creations.append(duration)
    assert (len(creations), len(spent)) == (24, 48)
    return median(creations), median(spent.values())


def test_a_run_without_the_fixtures_pays_nothing() -> None:
    """Loading the plugin imports neither the engine nor what it needs."""
    code = (
        "import pytest, sys\n"
        "before = set(sys.modules)\n"
        "import steersman.testing.plugin\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = ("_lazy_names", "_version", "testing", "testing.plugin")
    assert done.stdout.split() == ["steersman", *(f"steersman.{name}" for name in own)]


async def test_the_namespace_tells_whose_it_is(engine, namespace, request) -> None:
    """Its name begins with the test's, so that what is left behind can be traced."""
    assert namespace.startswith("test-the-namespace-tells-whose-it-is-")
    phase = await engine.kubectl("get", "namespace", namespace, "--output=jsonpath={.status.phase}")
    assert phase == "Active"


@pytest.mark.parametrize("name", ["Ünïcode", "x" * 300, "../.."])
async def test_any_test_name_makes_a_namespace(namespace, name) -> None:
    """Whatever a test is called, its namespace is valid; the API server has accepted it."""
    assert len(namespace) <= 63
