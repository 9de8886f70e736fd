"""Files that are watched for containers, at odd moments: restarts, edits, failures and links, in a simulated world."""

import asyncio
import io
import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from samples.eventually import eventually
from steersman.projects import ApplicationSource, Project
from steersman.ui import Board
from steersman.workloads import ContainerRuntimeError, simulated_parts
from steersman.workloads.kinds import Container

API = """\
  api:
    build: src
    develop: {watch: [{action: %s, path: src, target: /srv}]}
"""
DB = """\
  db:
    image: "app:1"
    develop: {watch: [{action: restart, path: db.conf}]}
"""
OTHER = 65534


class Shop:
    """A session, and its two containers."""

    def __init__(self, project: Project, folder: Path, reports: list[str]) -> None:
        self.project, self.folder, self.reports = project, folder, reports
        assert project.plane.parts is not None
        self.runtime, self.files = project.plane.parts.containers, project.plane.parts.files

    def change(self, name: str) -> None:
        self.files.change(str(self.folder / name), key="container api 0")

    def container(self, service: str = "api") -> str:
        return next(each.id for each in self.runtime.containers.values() if each.name == f"shop-{service}-1")

    def copied(self) -> dict[str, bytes | str]:
        """The files of the latest copy: the content of each, or where a link leads."""
        with tarfile.open(fileobj=io.BytesIO(self.runtime.copied[self.container(), "/"])) as tar:
            return {
                each.name: each.linkname if each.issym() else (tar.extractfile(each) or io.BytesIO()).read()
                for each in tar
            }

    async def until_running(self) -> None:
        await eventually(lambda: [each.state for each in self.runtime.containers.values()] == ["running", "running"])

    async def until_ended(self) -> None:
        async with asyncio.timeout(60), Board(self.project.client, project="shop") as board:
            while board.row("api").state != "finished":
                await board.wait_changed()

    async def until_reported(self, words: str) -> None:
        await eventually(lambda: any(words in each for each in self.reports))


@pytest.fixture
def action() -> str:
    return "sync"


@pytest.fixture
async def shop(tmp_path: Path, action: str) -> AsyncIterator[Shop]:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    for name in ("a.py", "b.py"):
        (folder / "src" / name).write_text(name)
    (folder / "db.conf").touch()
    (folder / "steersman.yaml").write_text("services:\n" + API % action + DB)
    source = ApplicationSource(folder=folder, environment={"XDG_STATE_HOME": str(tmp_path / "state")})
    reports: list[str] = []
    async with Project(source, report=reports.append, parts=simulated_parts) as project:
        made = Shop(project, folder, reports)
        await made.until_running()
        yield made


async def test_a_file_is_copied_into_a_container_that_does_not_run(shop: Shop) -> None:
    """An edit while the container restarts would otherwise never arrive."""
    shop.runtime.exit(shop.container(), 0)
    await shop.until_ended()
    shop.change("src/a.py")
    await eventually(lambda: (shop.container(), "/") in shop.runtime.copied)
    assert shop.copied() == {"srv/a.py": b"a.py"}


async def test_a_change_after_a_failed_copy_copies_all_files(shop: Shop) -> None:
    shop.runtime.failures["copy"] = ContainerRuntimeError("no space left on device")
    shop.change("src/a.py")
    await shop.until_reported("the action sync failed: no space left on device")
    shop.change("src/b.py")
    await eventually(lambda: (shop.container(), "/") in shop.runtime.copied)
    assert shop.copied() == {"srv/a.py": b"a.py", "srv/b.py": b"b.py"}


@pytest.mark.skipif(os.geteuid() != 0, reason="makes links of another user")
async def test_a_link_of_another_user_copies_nothing_that_it_may_not_read(shop: Shop, tmp_path: Path) -> None:
    """The user of a service may own the folder, and replace a folder in it before the copy. Other files are copied."""
    secret = tmp_path / "private" / "key"
    secret.parent.mkdir(mode=0o700)
    secret.write_text("secret")
    link = shop.folder / "src" / "data"
    link.symlink_to(secret.parent)
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    shop.change("src/data/key")
    shop.change("src/a.py")
    await shop.until_reported("src/data/key: user 65534 made a symbolic link in its path")
    await eventually(lambda: (shop.container(), "/") in shop.runtime.copied)
    assert shop.copied() == {"srv/a.py": b"a.py"}


async def test_a_link_to_a_folder_is_not_copied(shop: Shop) -> None:
    """The container may have a folder there, such as a volume: every copy of every file would fail from then on."""
    (shop.folder / "src" / "data").symlink_to(shop.folder)
    (shop.folder / "src" / "main.py").symlink_to("a.py")
    for name in ("data", "main.py", "a.py"):
        shop.change(f"src/{name}")
    await eventually(lambda: (shop.container(), "/") in shop.runtime.copied)
    assert shop.copied() == {"srv/main.py": "a.py", "srv/a.py": b"a.py"}


async def test_a_file_that_shrinks_while_it_is_copied_spoils_no_other(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor truncates a file, then writes it."""
    facts_of = tarfile.TarFile.gettarinfo

    def shrink(*args: Any, **options: Any) -> tarfile.TarInfo:
        facts = facts_of(*args, **options)
        (shop.folder / "src" / "a.py").write_text("")
        return facts

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", shrink)
    shop.change("src/a.py")
    shop.change("src/b.py")
    await eventually(lambda: (shop.container(), "/") in shop.runtime.copied)
    assert shop.copied() == {"srv/a.py": b"", "srv/b.py": b"b.py"}


@pytest.mark.parametrize("action", ["rebuild"])
async def test_a_rebuild_does_not_undo_an_edit(shop: Shop) -> None:
    """The edit removes the service while the rebuild waits for the end of its container."""
    gate = shop.runtime.gates["stop"] = asyncio.Event()
    shop.change("src/a.py")
    await eventually(lambda: ("stop", "shop-api-1") in shop.runtime.calls)
    (shop.folder / "steersman.yaml").write_text("services:\n" + DB)
    shop.files.change("steersman.yaml")
    lock = shop.project._applying
    await eventually(lambda: "waiters" in repr(lock) or any("edit applied" in each for each in shop.reports))
    gate.set()
    await shop.until_reported("api deleted")
    # Actions follow one another: the rebuild has ended.
    shop.files.change(str(shop.folder / "db.conf"), key="container db 0")
    await shop.until_reported("db: restart")
    assert [each.key.name for each in await shop.project.client.list(Container)] == ["db"]
