"""The locks cover what pyproject.toml asks for, with hashes, and name no place to fetch it from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


def packages(lock: Path) -> dict[str, int]:
    """Locked packages and how many hashes each has."""
    found: dict[str, int] = {}
    name = ""
    for line in lock.read_text(encoding="utf-8").splitlines():
        if pin := re.match(r"([A-Za-z0-9._-]+)==\S+", line):
            name = pin[1]
            found[name] = 0
        elif line.strip().startswith("--hash=sha256:"):
            found[name] += 1
        else:
            assert not line.strip() or line.lstrip().startswith("#"), f"{lock.name}: {line}"
    return found


def asked_for(requirements: list[str]) -> set[str]:
    """Names as an index spells them."""
    names = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    return {re.sub(r"[-_.]+", "-", name[0]).lower() for name in names if name}


def test_there_are_locks() -> None:
    assert [lock.name for lock in LOCKS] == [
        "bench-kopf.txt",
        "dev.txt",
        "docs.txt",
        "runtime.txt",
        "server.txt",
        "testing.txt",
        "uv.txt",
    ]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_has_a_hash(lock: Path) -> None:
    """A version alone is a promise, a hash is a check."""
    counted = packages(lock)
    assert counted
    assert [name for name, hashes in counted.items() if not hashes] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_no_lock_names_a_host(lock: Path) -> None:
    """Where packages come from is a setting of the machine."""
    assert "://" not in lock.read_text(encoding="utf-8")


def test_locks_follow_pyproject() -> None:
    """A dependency that was added without running tools/lock is found here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    runtime = asked_for(project["dependencies"])
    testing = runtime | asked_for(extras["testing"])
    everything = runtime.union(*(asked_for(extra) for extra in extras.values()))
    assert runtime <= packages(ROOT / "requirements" / "runtime.txt").keys()
    assert testing <= packages(ROOT / "requirements" / "testing.txt").keys()
    assert runtime | asked_for(extras["server"]) <= packages(ROOT / "requirements" / "server.txt").keys()
    assert everything <= packages(ROOT / "requirements" / "dev.txt").keys()


#: The oldest releases without a known advisory: see designs/dependencies.md.
SAFE = {"aiohttp": (3, 14, 3)}


@pytest.mark.parametrize("name", SAFE)
def test_no_user_gets_a_release_with_a_known_advisory(name: str) -> None:
    """The lower bound decides what an installation beside other packages may choose; the locks do not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (asked,) = [each for each in project["dependencies"] if asked_for([each]) == {name}]
    bound = re.search(r">=([0-9.]+)", asked)
    assert bound is not None, asked
    lowest = tuple(map(int, bound[1].split(".")))
    pinned = re.search(
        rf"^{name}==([0-9.]+)", (ROOT / "requirements/runtime.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert pinned is not None
    assert SAFE[name] <= lowest <= tuple(map(int, pinned[1].split(".")))
