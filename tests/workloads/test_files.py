"""Files whose change restarts a workload: globs by table, and real files."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sys

import pytest
from workloads.plane import workloads_plane

from samples.eventually import eventually
from steersman.workloads.files import InotifyWatcher, Watched, escaped, matches, roots
from steersman.workloads.files.inotify import OVERFLOW, FolderEvent, Inotify
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


@pytest.mark.parametrize("path", ["[slug]/a.py", "a*b", "what?", "[[x]", "[!a]", "a]"])
def test_an_escaped_path_stands_for_itself(path):
    """A project's folder is no glob: [slug] is a folder of many web applications."""
    assert matches(path, [escaped(path)], [])
    assert matches(f"{path}/below", [escaped(path)], [])
    assert (
        not matches(path.replace("[slug]", "s").replace("*", "x").replace("?", "!"), [escaped(path)], []) or "]" in path
    )
    assert (path, True) in roots([escaped(path)])


linux = pytest.mark.skipif(sys.platform != "linux", reason="files are watched on Linux alone")


@linux
async def test_a_glob_of_one_folder_does_not_end_the_watch_of_those_below(tmp_path):
    (tmp_path / "src" / "static").mkdir(parents=True)
    seen: list[str] = []
    async with InotifyWatcher() as watcher:
        watcher.watch("x", Watched(str(tmp_path), ("**/*.py", "src/static/*.css"), ()), seen.append)
        (tmp_path / "src" / "package").mkdir()
        (tmp_path / "src" / "package" / "a.py").write_text("1")
        await eventually(lambda: "src/package/a.py" in seen)


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
@pytest.mark.parametrize("moved", ["src/pkg", "src"])
async def test_a_folder_that_is_moved_away_is_a_change_and_is_watched_no_longer(tmp_path, moved):
    """Its files are gone from the program. What happens to them in their new place is no change."""
    package = tmp_path / "top" / "src" / "pkg"
    package.mkdir(parents=True)
    (package / "a.py").write_text("1")
    seen: list[str] = []
    async with InotifyWatcher() as watcher:
        watcher.watch("x", Watched(str(tmp_path / "top"), ("src/**/*.py", "marker")), seen.append)
        watcher.watch("y", Watched(str(tmp_path), ("gone/**",)), seen.append)
        (tmp_path / "top" / moved).rename(tmp_path / "gone")
        await eventually(lambda: moved in seen and any(path.startswith("gone/") for path in seen))
        seen.clear()
        (next((tmp_path / "gone").rglob("a.py"))).write_text("2")
        (tmp_path / "top" / "marker").write_text("1")
        await eventually(lambda: "marker" in seen)
        assert not [path for path in seen if path.startswith("src")]
        assert [path for path in seen if path.startswith("gone/")]


@linux
@pytest.mark.parametrize("glob", ["app/src", "app/src/**/*.py", "app/src/a.py"])
@pytest.mark.parametrize("gone", ["app/src", "app"])
@pytest.mark.parametrize("is_link", [False, True])
async def test_a_folder_that_is_removed_and_made_again_is_watched(tmp_path, glob, gone, is_link):
    """A checkout of another branch, or a build, replaces folders."""
    source = tmp_path / "app" / "src"
    source.mkdir(parents=True)
    seen: list[str] = []
    async with InotifyWatcher() as watcher:
        watcher.watch("web", Watched(str(tmp_path), (glob,)), seen.append)
        shutil.rmtree(tmp_path / gone)
        # The watcher has forgotten the old folder before the new one appears.
        await eventually(lambda: not any(name == gone for name, _ in watcher._subscriptions["web"].folders.values()))
        if is_link:
            (tmp_path / "other" / "src").mkdir(parents=True)
            (tmp_path / gone).symlink_to(tmp_path / "other" / ("src" if gone.endswith("src") else ""))
        else:
            source.mkdir(parents=True)
        await eventually(lambda: any(name == "app/src" for name, _ in watcher._subscriptions["web"].folders.values()))
        seen.clear()
        (source / "a.py").write_text("1")
        await eventually(lambda: "app/src/a.py" in seen)


@linux
@pytest.mark.parametrize(("name", "shown"), [("main.py", "main.py"), ("caf\udce9.py", "caf\\xe9.py")])
async def test_an_edited_file_restarts_a_program(tmp_path, name, shown):
    """Also one whose name is not UTF-8, which no status can contain as it is."""
    (tmp_path / name).write_text("1")
    async with InotifyWatcher() as watcher, workloads_plane(tmp_path, files=watcher) as plane:
        await plane.replica_set(added=ReplicaSetAdditions(watch=FileWatch(paths=["*.py"], debounce="50ms")))
        await plane.until_set("api", lambda status: status.running_replicas == 1)
        (tmp_path / name).write_text("2")
        status = await plane.until_set("api", lambda s: s.steersman.restarts == 1 and s.running_replicas == 1)
        assert status.steersman.last_restart_reason == f"The file {shown} has changed."


@pytest.mark.parametrize("glob", ["**", "*", "src/**", "src", "./src/", "./", ".", "src/*", "**/*.py", "src/**/a.py"])
async def test_a_glob_of_folders_reports_changes_in_all_subfolders(tmp_path, glob):
    deep = tmp_path / "src" / "deep" / "er"
    deep.mkdir(parents=True)
    async with InotifyWatcher() as watcher:
        changed: asyncio.Queue[str] = asyncio.Queue()
        watcher.watch("web", Watched(str(tmp_path), (glob,)), changed.put_nowait)
        (deep / "a.py").write_text("1")
        assert await asyncio.wait_for(changed.get(), 60) == "src/deep/er/a.py"


@linux
async def test_new_folders_are_watched_after_lost_events(tmp_path, monkeypatch):
    """A checkout of a large branch changes more files than the kernel queues."""
    (tmp_path / "src").mkdir()
    seen: list[str] = []
    async with InotifyWatcher() as watcher:
        watcher.watch("web", Watched(str(tmp_path), ("src",)), seen.append)
        read = Inotify.read

        def lose(inotify: Inotify) -> list[FolderEvent]:
            return [FolderEvent(-1, OVERFLOW, "")] if list(read(inotify)) else []

        with monkeypatch.context() as patch:
            patch.setattr(Inotify, "read", lose)
            (tmp_path / "src" / "new").mkdir()
            (tmp_path / "src" / "new" / "a.py").write_text("1")
            await eventually(lambda: "src" in seen)
        assert "src/new/a.py" in seen
        (tmp_path / "src" / "new" / "b.py").write_text("1")
        await eventually(lambda: "src/new/b.py" in seen)


async def test_a_limit_that_leaves_files_unwatched_is_reported_once(tmp_path, monkeypatch):
    monkeypatch.setattr("steersman.workloads.files.inotify_watcher.FOLDERS_MAX", 3)
    for name in "abcde":
        (tmp_path / name).mkdir()
    problems: list[str] = []
    async with InotifyWatcher() as watcher:
        watcher.watch("web", Watched(str(tmp_path), ("**",)), print, problems.append)
        assert problems == [
            (
                "only 3 folders are watched, and changes in the others are missed:"
                " name fewer folders in watch, or more in its ignore"
            )
        ]
        watcher.watch("few", Watched(str(tmp_path), ("**",), ("a", "b", "[cd]")), print, problems.append)
        assert len(problems) == 1, "ignored folders do not count"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errno.ENOSPC, "fs.inotify.max_user_watches"),
        (errno.EACCES, "allow this user to read the folder"),
        (errno.ENOENT, ""),
    ],
)
async def test_a_folder_that_the_kernel_does_not_watch_is_reported(tmp_path, monkeypatch, error, words):
    problems: list[str] = []

    def refuse(*_: object) -> int:
        raise OSError(error, os.strerror(error))

    async with InotifyWatcher() as watcher:
        # The kernel's limit belongs to the whole machine, so a test cannot lower it.
        monkeypatch.setattr(Inotify, "add", refuse)
        watcher.watch("web", Watched(str(tmp_path), ("**",)), print, problems.append)
        assert [words in each for each in problems] == [True] * bool(words)
