"""Watches files for containers: a change restarts a container, rebuilds its image, or copies files into it.

Guarantees
- An action begins when no watched file has changed for the debounce time.
- A rebuild replaces the containers of the service; all others keep running. It never undoes an edit.
- Files are also copied into a container that restarts, or is stopped.
- A file is copied only if the user who made a symbolic link in its path may read it.
- A failed action is reported, and the next change retries it, with all files.
"""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from steersman import aio
from steersman.application import SERVICE, Application, WatchRule
from steersman.client import Client, MergePatch
from steersman.errors import ApiError
from steersman.projects.changes import replace_containers
from steersman.workloads import ContainerRunner, ContainerRuntimeError, FileWatcher, Watched, open_readable
from steersman.workloads.kinds import RESTARTED_AT, Container


class ContainerWatches:
    """The watch rules of a project's containers. `run` performs their actions."""

    def __init__(
        self,
        client: Client,
        files: FileWatcher,
        runner: ContainerRunner,
        *,
        project: str,
        applying: asyncio.Lock,
        report: Callable[[str], None],
    ) -> None:
        """``applying`` is held while the objects of the project change."""
        self._client, self._files, self._runner = client, files, runner
        self._applying = applying
        self._project, self._report = project, report
        self._application: Application | None = None
        self._keys: set[str] = set()
        self._changed: dict[tuple[str, WatchRule], set[str]] = {}
        self._news = asyncio.Event()

    def follow(self, application: Application) -> None:
        """Watch the files of this application instead of those of the previous one."""
        self._application = application
        keys: set[str] = set()
        rules: set[tuple[str, WatchRule]] = set()
        for service in application.services.values():
            for number, watch in enumerate(() if service.is_process else service.watch):
                rules.add((service.name, watch))
                keys.add(key := f"container {service.name} {number}")
                watched = Watched(str(application.folder), watch.paths, watch.ignore)
                self._files.watch(
                    key, watched, partial(self._see, service.name, watch), partial(self._complain, service.name)
                )
        for key in self._keys - keys:
            self._files.forget(key)
        self._keys = keys
        self._changed = {rule: paths for rule, paths in self._changed.items() if rule in rules}

    async def run(self) -> None:
        """Perform the actions of changed files until cancelled."""
        while True:
            await self._news.wait()
            while self._news.is_set():
                self._news.clear()
                await asyncio.sleep(max((watch.debounce for _, watch in self._changed), default=0))
            changed, self._changed = self._changed, {}
            for (name, watch), paths in changed.items():
                try:
                    await self._act(name, watch, sorted(paths))
                except (ApiError, ContainerRuntimeError, OSError) as error:
                    self._report(f"{name}: the action {watch.action} failed: {error}")
                    self._changed.setdefault((name, watch), set()).update(paths)

    def _complain(self, name: str, problem: str) -> None:
        self._report(f"{name}: {problem}")

    def _see(self, name: str, watch: WatchRule, path: str) -> None:
        self._changed.setdefault((name, watch), set()).add(path)
        self._news.set()

    async def _act(self, name: str, watch: WatchRule, paths: list[str]) -> None:
        assert self._application is not None
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        self._report(f"{name}: {watch.action}, because {paths[0]}{more} changed")
        if watch.action == "rebuild":
            async with self._applying:
                await replace_containers(self._client, self._application, name, project=self._project)
            return
        containers = list(await self._client.list(Container, labels={SERVICE: name}))
        if watch.action.startswith("sync"):
            files = [self._application.folder / path for path in paths]
            archive, problems = await asyncio.to_thread(_archive, watch, files)
            for problem in problems:
                self._complain(name, problem)
            for each in containers:
                if each.status is not None and each.status.container_id:
                    await self._runner.copy(each.status.container_id, archive, "/")
        if watch.action in {"restart", "sync+restart"}:
            moment = aio.utc_now().isoformat()
            for each in containers:
                await self._client.patch(
                    Container, each.key, MergePatch({"metadata": {"annotations": {RESTARTED_AT: moment}}})
                )


def _archive(watch: WatchRule, files: list[Path]) -> tuple[bytes, list[str]]:
    """A tar archive of the changed files, with their paths inside the container, and why some cannot be read.

    Deleted files are omitted.
    """
    data, problems = io.BytesIO(), list[str]()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for file in files:
            if watch.target is None:
                continue
            below = file.relative_to(watch.root) if watch.root and file != Path(watch.root) else Path()
            try:
                _add(tar, file, str(Path(watch.target) / below).lstrip("/"))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                problems.append(f"cannot copy {file}: {error.strerror}")
    return data.getvalue(), problems


def _add(tar: tarfile.TarFile, file: Path, name: str) -> None:
    """Add a file, or a symbolic link to a file as a link.

    A link to a folder is omitted: where the container has a folder, such as a volume, it would fail the copy of all files.
    """
    if not file.is_file():
        return
    if file.is_symlink():
        link = tarfile.TarInfo(name)
        link.type, link.linkname = tarfile.SYMTYPE, str(file.readlink())
        tar.addfile(link)
    else:
        with open(open_readable(file), "rb") as opened:  # noqa: PTH123 - a descriptor
            facts, content = tar.gettarinfo(arcname=name, fileobj=opened), opened.read()
        # The size of the content, not that of a moment before: a header with another size would spoil the whole archive.
        facts.size = len(content)
        tar.addfile(facts, io.BytesIO(content))
