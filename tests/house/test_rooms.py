"""A fixture of a room ends with it: a server that stays for the whole run costs CPU time until its end."""

from __future__ import annotations

from pathlib import Path

from samples.inner_pytest import run_pytest

FIXTURE = """
import pytest

@pytest.fixture(scope="package")
def server(pytestconfig):
    with (pytestconfig.rootpath / "events").open("a") as events:
        events.write("starts ")
    yield
    with (pytestconfig.rootpath / "events").open("a") as events:
        events.write("ends ")
"""
FILES = {
    "pytest.ini": "[pytest]\naddopts = --import-mode=importlib -p no:cacheprovider\n",
    "conftest.py": 'pytest_plugins = ["samples.rooms"]\n',
    "tests/one/conftest.py": FIXTURE,
    "tests/one/test_a.py": "def test_a(server): pass\n",
    "tests/one/test_b.py": "def test_b(server, pytestconfig):\n"
    "    assert (pytestconfig.rootpath / 'events').read_text() == 'starts '\n",
    "tests/two/test_c.py": "def test_c(pytestconfig):\n"
    "    assert (pytestconfig.rootpath / 'events').read_text() == 'starts ends '\n",
}


def test_a_fixture_of_a_room_ends_before_the_next_room(tmp_path: Path) -> None:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    done = run_pytest(tmp_path, "tests")
    assert "3 passed" in done.stdout, done.stdout + done.stderr
