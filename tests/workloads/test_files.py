"""Files whose change restarts a workload: globs by table, and real files."""

from __future__ import annotations

import shutil
import sys

import pytest
from workloads.plane import workloads_plane

from samples.eventually import eventually
from steersman.workloads.files import InotifyWatcher, Watched, matches, roots
from steersman.workloads.kinds import FileWatch, ReplicaSetAdditions


@pytest.mark.parametrize(
    ("path", "glob", "matched"),
    [
        ("a.py", "*.py", True),
        ("src/a.py", "*.py", False),
        ("src/a.py", "**/*.py", True),
        ("a.py", "**/*.py", True),
        ("src/x/y/a.py", "src/**/*.py", True),
        ("src/a.py", "src/**", True),
        ("src/a.py", "./src", True),
        ("srca.py", "src", False),
        ("a1.py", "a[0-9].py", True),
        ("ab.py", "a[!0-9].py", True),
        ("src/.git/index", "**", False),
        ("a+b.py", "a+b.py", True),
    ],
)
def test_globs(path, glob, matched):
    assert matches(path, [glob], []) is matched


def test_ignored_files_match_no_glob():
    assert not matches("src/gen/a.py", ["src/**"], ["src/gen/**"])
    assert matches("src/a.py", ["src/**"], ["src/gen/**"])


def test_the_folders_to_watch():
    assert roots(["src/**/*.py", "*.toml", "conf/app.yaml"]) == [
        ("", False),
        ("conf", False),
        ("conf/app.yaml", True),
        ("src", True),
    ]


linux = pytest.mark.skipif(sys.platform != "linux", reason="files are watched on Linux alone")


@linux
async def test_changes_of_files_are_reported(tmp_path):
    (tmp_path / "src" / "old").mkdir(parents=True)
    (tmp_path / "src" / "old" / "a.py").write_text("1")
    seen: list[str] = []
    async with InotifyWatcher() as watcher:
        watcher.watch("x", Watched(str(tmp_path), ("src/**/*.py", "app.toml"), ("src/skip/**",)), seen.append)
        (tmp_path / "src" / "old" / "a.py").write_text("2")
        await eventually(lambda: seen == ["src/old/a.py"])
        (tmp_path / "src" / "skip").mkdir()
        (tmp_path / "src" / "skip" / "s.py").write_text("1")
        (tmp_path / "src" / "note.txt").write_text("1")
        (tmp_path / "src" / "new" / "deep").mkdir(parents=True)
        (tmp_path / "src" / "new" / "deep" / "b.py").write_text("1")
        await eventually(lambda: "src/new/deep/b.py" in seen)
        seen.clear()
        draft = tmp_path / "draft"
        draft.write_text("1")
        draft.rename(tmp_path / "app.toml")
        await eventually(lambda: seen == ["app.toml"])
        shutil.rmtree(tmp_path / "src" / "old")
        await eventually(lambda: "src/old/a.py" in seen)
        watcher.forget("x")
        seen.clear()
        watcher.watch("y", Watched(str(tmp_path), ("marker",)), seen.append)
        (tmp_path / "app.toml").write_text("2")
        (tmp_path / "marker").write_text("1")
        await eventually(lambda: seen == ["marker"])


@linux
async def test_an_edited_file_restarts_a_program(tmp_path):
    (tmp_path / "main.py").write_text("1")
    async with InotifyWatcher() as watcher, workloads_plane(tmp_path, files=watcher) as plane:
        await plane.replica_set(added=ReplicaSetAdditions(watch=FileWatch(paths=["*.py"], debounce="50ms")))
        await plane.until_set("api", lambda status: status.running_replicas == 1)
        (tmp_path / "main.py").write_text("2")
        status = await plane.until_set("api", lambda s: s.steersman.restarts == 1 and s.running_replicas == 1)
        assert status.steersman.last_restart_reason == "The file main.py has changed."
