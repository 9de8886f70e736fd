"""A test that runs again: what its first run left in the fixtures of its module is gone."""

from __future__ import annotations

from pathlib import Path

from samples.inner_pytest import run_pytest

OPTIONS = """
[pytest]
addopts = --import-mode=importlib -p pytest_rerunfailures -p pytest_asyncio.plugin -p no:cacheprovider --reruns 1
asyncio_mode = auto
asyncio_default_fixture_loop_scope = session
asyncio_default_test_loop_scope = session
"""
SOURCE = """
import pytest
made, ended, runs = [], [], []

@pytest.fixture(scope="session")
def run(): return made.append("run")

@pytest.fixture(scope="module")
async def server(run):
    made.append("server")
    yield []
    ended.append("server")

@pytest.fixture(scope="module")
async def client(server): return server

async def test_first(client): pass

async def test_create(client):
    assert client == []
    client.append("object")
    runs.append("test_create")
    assert len(runs) == 2

async def test_last(client):
    assert client == ["object"]
    assert made == ["run", "server", "server"] and ended == ["server"]
"""


def test_a_test_that_runs_again_has_a_new_server(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(OPTIONS, encoding="utf-8")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["samples.reruns"]\n', encoding="utf-8")
    (tmp_path / "test_server.py").write_text(SOURCE, encoding="utf-8")
    done = run_pytest(tmp_path, ".")
    assert "3 passed, 1 rerun" in done.stdout, done.stdout + done.stderr
    *_, name, _ = done.stdout.splitlines()
    assert name == "test_server.py::test_create (call): AssertionError: assert 1 == 2", (
        "the summary ends with what ran twice"
    )
