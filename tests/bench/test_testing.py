"""The benchmark of testing measures what it says: a small run of its suite on the embedded control plane."""

from __future__ import annotations

from bench.testing import run_suite, seconds_until_ready
from bench.testing_imports import imported_modules, measured_imports


def test_a_small_suite_is_run_and_measured(tmp_path) -> None:
    run = run_suite("embedded", tmp_path, tests=3)
    # the first test, with the server's start, is no part of what is compared
    assert 0 < run.each <= run.tests < run.whole
    assert 0 < run.first < run.whole


async def test_a_control_plane_is_started_and_ended() -> None:
    assert 0 < await seconds_until_ready() < 60


def test_the_first_test_imports_no_network() -> None:
    """A test on the embedded control plane opens no socket, reads no YAML and makes no certificate."""
    loaded = {name.partition(".")[0] for name in imported_modules()}
    assert "steersman" in loaded
    assert loaded & {"aiohttp", "cryptography", "yaml"} == set()


def test_imports_are_counted_and_timed() -> None:
    found = measured_imports(1)
    assert 0 < found.own < found.modules
    assert found.seconds > 0
