"""Schedules in files: their names, and their replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from samples.leaky_site import correct, leaky, workload, wrong
from steersman.simulation import FaultSchedule, Finding, Violation, keep_finding, read_regression, replayed, simulate
from steersman.simulation.regressions import regressions_in
from steersman.simulation.runs.faults import CrashReplied
from steersman.simulation.runs.places import Place
from steersman.simulation.runs.schedules import PlacedFault


def finding(words: str, *, seed: int = 1) -> Finding:
    return Finding(schedule=FaultSchedule(seed=seed), violations=(Violation("state", words),))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("at the end: Secret shop/home is left behind", "secret-left-behind.json"),
        (
            'after step 2: Site shop/home: status.phase is "Ready" and should be absent',
            "site-status-phase-ready-absent.json",
        ),
        ("!!!", "violation.json"),
    ],
)
def test_a_file_is_named_after_the_violation(tmp_path: Path, words: str, name: str) -> None:
    assert keep_finding(tmp_path / "kept", finding(words), scenario="shop").name == name


def test_the_same_schedule_is_kept_once_and_another_one_beside_it(tmp_path: Path) -> None:
    first = keep_finding(tmp_path, finding("lost"), scenario="shop")
    assert keep_finding(tmp_path, finding("lost"), scenario="shop") == first
    assert keep_finding(tmp_path, finding("lost", seed=2), scenario="shop").name == "lost-2.json"
    assert keep_finding(tmp_path, finding("lost"), scenario="other").name == "lost-3.json"
    assert [each.schedule.seed for each in regressions_in(tmp_path, "shop")] == [2, 1]
    assert all(path.suffix == ".json" for path in tmp_path.iterdir())


def test_a_kept_schedule_fails_again_until_the_mistake_is_corrected(tmp_path: Path) -> None:
    report = simulate(wrong, workload, faults=["crash-after-reply"])
    [found] = [each for each in report.findings if "create" in str(each.schedule)]
    regression = read_regression(keep_finding(tmp_path, found, scenario="leaky"))
    assert regression.schedule == found.schedule
    _, [again] = replayed(leaky, [regression.schedule])
    assert again.finding is not None
    assert again.finding.violations == found.violations
    assert again.complete
    _, [mended] = replayed(correct, [regression.schedule])
    assert mended.finding is None
    assert not mended.complete  # it applies, and no longer creates


def test_a_fault_at_a_request_that_is_never_sent_makes_a_replay_incomplete() -> None:
    place = Place(actor="operator", verb="create", resource="pods", key="default/none")
    _, [replay] = replayed(correct, [FaultSchedule(seed=1, faults=(PlacedFault(CrashReplied(), place),))])
    assert (replay.finding, replay.complete) == (None, False)
