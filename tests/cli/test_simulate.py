"""``steersman simulate``: what it runs, what it says, which files it writes, and how it ends."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.cli import main
from steersman.cli.console import Progress

MODULE = """
from samples.leaky_site import leaky, correct, operator, workload
from steersman import Client, Manager

manager = operator()

def make(client: Client) -> Manager:
    return manager

def plain() -> Manager:
    return operator(generated=False)

number = 3
"""
MANAGER = "from samples.leaky_site import right\nmanager = right()\n"
SECRETS = """
from steersman import Done, Manager
from steersman.kinds.core_v1 import Secret

async def reconcile(ctx, request):
    return Done()

manager = Manager(name="secrets")
manager.controller(Secret).run_with(reconcile)
"""
CRASH = ("--faults", "crash-after-reply")


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command in a folder with modules: its exit code, its output, and its messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name, text in (("sim_sites", MODULE), ("sim_manager", MANAGER), ("sim_secrets", SECRETS), ("sim_nothing", "")):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")

    def simulate(*arguments: str) -> tuple[int, str, str]:
        code = main(["simulate", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return simulate


def test_a_violation_is_reported_kept_and_replayed(run, tmp_path: Path) -> None:
    code, said, told = run("sim_sites:leaky", *CRASH, "--page", "story.html")
    assert code == 1
    head, uncompared, found, *lines = said.splitlines()
    assert re.fullmatch(r"\d+ schedules, \d+ requests, crash after reply at each; \d+ s", head)
    assert uncompared == "not compared, because they vary without faults: sites default/home: status.secretName"
    assert found == "1 violation, shrunk to 1 fault:"
    assert lines[0] == (
        "  crash after the reply to create Secret default/home-*, before the status of Site default/home is written"
    )
    assert lines[1].startswith("  -> ")
    [kept] = (tmp_path / "regressions").iterdir()
    assert lines[-1] == f"replay: steersman simulate sim_sites:leaky --replay regressions/{kept.name}"
    assert re.search(r"^\d+ of \d+ schedules$", told, re.MULTILINE)
    assert "the runs part here" in (tmp_path / "story.html").read_text(encoding="utf-8")

    code, said, _ = run("sim_sites:leaky", "--replay", f"regressions/{kept.name}")
    assert code == 1
    assert said.splitlines()[0] == lines[0].strip()
    assert "-- the runs part here --" in said

    code, said, _ = run("sim_sites:correct", "--replay", f"regressions/{kept.name}")
    assert (code, said) == (0, "no violation: not all faults of the schedule happen any more\n")


def test_an_operator_that_survives_ends_with_0(run, tmp_path: Path) -> None:
    code, said, _ = run("sim_sites:correct", *CRASH, "--pairs", "2", "--random", "2", "--seed", "7", "--jobs", "1")
    assert code == 0
    assert said.endswith("\nno violation\n")
    assert not (tmp_path / "regressions").exists()


def test_without_a_name_all_scenarios_of_the_module_run(run) -> None:
    code, said, _ = run("sim_sites", *CRASH, "--keep", "kept")
    assert code == 1
    assert said.count(" schedules, ") == 2
    assert said.count("no violation") == 1
    assert "replay: steersman simulate sim_sites:leaky --replay kept/" in said


def test_a_manager_without_a_scenario_runs_the_derived_workload(run) -> None:
    code, said, _ = run("sim_manager", *CRASH)
    assert (code, said.splitlines()[-1]) == (0, "no violation")
    assert run("sim_sites:plain", *CRASH)[0] == 0


def test_a_manager_whose_workload_cannot_be_derived_asks_for_a_scenario(run) -> None:
    code, _, told = run("sim_secrets")
    assert code == 1
    assert "sim_secrets: manager secrets: no valid object can be derived: it reconciles only kinds of others" in told
    assert "Write a workload that creates one" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sim_sites:leaky", "--faults", "crash-after-replay"), "did you mean crash-after-reply?"),
        (("sim_sites:leaky", "--faults", "x"), "'x' is no kind of fault; there is crash-before-sending, "),
        (("sim_sites:",), "names no scenario: write sim_sites for all its scenarios"),
        (("sim_sites", "--page", "story.html"), "--page is for one scenario; name one: sim_sites:leaky"),
    ],
)
def test_wrong_use_ends_with_2(run, arguments: tuple[str, ...], words: str) -> None:
    code, said, told = run(*arguments)
    assert (code, said) == (2, "")
    assert words in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sim_sites:make",), "sim_sites:make needs a client, and a simulation makes its own"),
        (("sim_sites:number",), "sim_sites:number is of type int"),
        (("sim_nothing",), "sim_nothing has no manager"),
        (("sim_sites:leaky", "--replay", "none.json"), "cannot read none.json: No such file or directory"),
        (("sim_sites:leaky", "--replay", "sim_sites.py"), "sim_sites.py is no schedule: "),
    ],
)
def test_what_cannot_be_run_is_one_sentence(run, arguments: tuple[str, ...], words: str) -> None:
    code, said, told = run(*arguments)
    assert (code, said) == (1, "")
    assert words in told


def test_a_schedule_of_no_scenario_of_the_module_asks_for_one(run, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"seed": 1, "scenario": "gone"}', encoding="utf-8")
    code, _, told = run("sim_sites", "--replay", "old.json")
    assert code == 2
    assert "name one: sim_sites:leaky, sim_sites:correct" in told


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Progress("schedules") as progress:
        progress.update(50, 100)
    told = capsys.readouterr().err
    assert "50 of 100 schedules" in told
    assert told.endswith("\r\x1b[K")


def test_elsewhere_progress_is_four_lines(capsys) -> None:
    with Progress("schedules") as progress:
        for number in range(1, 101):
            progress.update(number, 100)
    assert capsys.readouterr().err.splitlines() == [f"{number} of 100 schedules" for number in (25, 50, 75, 100)]
