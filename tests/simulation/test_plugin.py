"""The fixture `simulation`, in a test run of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

WRONG = """
from samples.leaky_site import workload, wrong

def test_site(simulation):
    simulation(wrong, workload, faults=["crash-after-reply"])
"""
#: Of another length: pytest takes a compiled test of the same length and the same second for this one.
RIGHT = WRONG.replace("wrong", "right") + "# mended\n"


def run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_site.py").write_text(program, encoding="utf-8")
    installed = entry_points(group="pytest11", name="steersman-simulation")
    plugin = () if installed else ("-p", "steersman.simulation.plugin")
    settings = ("-o", f"pythonpath={TESTS}", "-p", "no:cacheprovider", "-p", "no:logging")
    command = [sys.executable, "-m", "pytest", *plugin, *settings, str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_violation_fails_the_test_with_its_story_and_is_replayed_first_until_it_is_mended(tmp_path: Path) -> None:
    first = run(tmp_path, WRONG)
    assert first.returncode == 1, first.stdout + first.stderr
    assert "crash after the reply to create Secret default/home-*" in first.stdout
    assert "-- the runs part here --" in first.stdout
    kept = sorted((tmp_path / "regressions").glob("*.json"))
    assert kept
    assert f"kept in {kept[0]}: the next run replays it first" in first.stdout

    again = run(tmp_path, WRONG)
    assert again.returncode == 1
    assert f"the regression {kept[0]} fails again:" in again.stdout
    assert "schedules," not in again.stdout
    assert sorted((tmp_path / "regressions").glob("*.json")) == kept

    mended = run(tmp_path, RIGHT)
    assert mended.returncode == 0, mended.stdout
    assert f"not all faults of {kept[0]} happen any more: delete the file" in mended.stdout


def test_a_run_without_the_fixture_pays_nothing() -> None:
    """Loading the plugin imports neither the simulation nor what it needs."""
    code = (
        "import pytest, sys\n"
        "before = set(sys.modules)\n"
        "import steersman.simulation.plugin\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = ("_lazy_names", "_version", "simulation", "simulation.plugin")
    assert done.stdout.split() == ["steersman", *(f"steersman.{name}" for name in own)]


@pytest.fixture
def simulation_of_this_test(request: pytest.FixtureRequest):
    from steersman.simulation import Simulation

    return Simulation(Path(request.node.path).parent / "regressions", request.node.name)


def test_an_operator_that_survives_passes(simulation_of_this_test) -> None:
    from samples.leaky_site import right, workload

    report = simulation_of_this_test(right, workload, faults=["crash-after-reply"])
    assert report.ok
    assert report.schedules > 0
