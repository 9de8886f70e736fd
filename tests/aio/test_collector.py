"""The pause of the garbage collector."""

import gc

import pytest

from steersman.aio import collector_paused


@pytest.fixture(autouse=True)
def _collector():
    yield
    gc.enable()


def test_the_collector_is_paused_and_runs_again_after_an_error():
    pause = collector_paused()
    pause.__enter__()
    assert not gc.isenabled()
    assert not pause.__exit__(ValueError, ValueError("x"), None)
    assert gc.isenabled()


def test_a_collector_that_the_program_disabled_stays_disabled():
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()
