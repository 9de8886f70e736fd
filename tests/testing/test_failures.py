"""What goes wrong is said with the end of the right log, and the log is still there."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from steersman.testing import Engine, EngineError


def _kept_logs(folder: Path) -> Path:
    """The one folder that is left, which holds logs and nothing else."""
    (kept,) = folder.iterdir()
    assert [entry.name for entry in kept.iterdir()] == ["logs"]
    return kept / "logs"


async def test_a_mistaken_flag_is_shown_with_the_log(engine_folders, processes_of) -> None:
    """The error has the program's own words, names the log and keeps it; nothing is left running."""
    with pytest.raises(EngineError, match=r"kube-apiserver-0 exited with status 1 before it was ready") as caught:
        async with Engine.start(flags={"kube-apiserver": ["--no-such-flag=1"]}):
            pass
    assert "unknown flag: --no-such-flag" in str(caught.value)
    log = _kept_logs(engine_folders) / "kube-apiserver-0.log"
    assert str(log) in str(caught.value)
    assert "unknown flag: --no-such-flag" in log.read_text()
    assert processes_of(engine_folders) == {}


async def test_a_start_that_takes_too_long_says_what_it_waited_for(engine_folders, processes_of, monkeypatch) -> None:
    """The time-out of the environment is honored, and the error tells the last answer."""
    monkeypatch.setenv("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "300ms")
    with pytest.raises(EngineError, match=r"-0 was not ready within 0\.3 s \(last check: http"):
        async with Engine.start():
            pass
    assert (_kept_logs(engine_folders) / "etcd-0.log").exists()
    assert processes_of(engine_folders) == {}


@pytest.mark.parametrize("variable", ["KUBEBUILDER_ASSETS", "STEERSMAN_ENGINE_CACHE"])
def test_programs_that_are_not_there_are_one_sentence(engine_folders, monkeypatch, variable) -> None:
    """Nothing is started, and the reader knows what to do."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv(variable, str(engine_folders))
    with pytest.raises(EngineError) as caught, Engine.start():
        pass
    text = str(caught.value)
    assert re.match(r"program etcd not found at .*: set KUBEBUILDER_ASSETS .* tools/engine/build", text)
    assert "\n" not in text
    assert list(engine_folders.iterdir()) == []


async def test_attached_output_is_shown_instead_of_kept(engine_folders, monkeypatch, capfd) -> None:
    """With KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT the programs write where the test does."""
    monkeypatch.setenv("KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT", "true")
    with pytest.raises(EngineError, match=r"etcd-0 exited with status \d+ before it was ready; its output is above"):
        async with Engine.start(flags={"etcd": ["--no-such-flag=1"]}):
            pass
    assert "flag provided but not defined: -no-such-flag" in capfd.readouterr().err


async def test_a_failing_test_keeps_the_logs_and_a_crash_is_reported(engine_folders) -> None:
    """The error of a block says where the logs are, and which part had ended by itself."""
    with pytest.raises(ZeroDivisionError) as caught:  # noqa: PT012 - it is the block that fails
        async with Engine.start() as engine:
            crashed = engine.api_servers[0]
            assert crashed.pid is not None
            os.kill(crashed.pid, signal.SIGKILL)
            with pytest.raises(EngineError, match="kube-apiserver-0 was killed by SIGKILL before it was ready"):
                await crashed.wait_ready()
            raise ZeroDivisionError
    logs = _kept_logs(engine_folders)
    kept, crash = caught.value.__notes__
    assert kept == f"the engine's logs are kept in {logs}"
    assert crash.startswith(f"kube-apiserver-0 exited by itself; its log {logs}/kube-apiserver-0.log ends with:")
