"""Project: runs an application in this process, with a developer control plane, its objects and its watched files.

Guarantees
- ``async with`` owns everything. When the block begins, the objects are applied; when it ends, nothing is left running.
- An edit of a file is applied once no file has changed for `DEBOUNCE` seconds. An edit with an error is reported and
  changes nothing.
- The session applies the scales that a command writes to its record. A later edit of ``scale`` replaces them.
- The start ends the processes of a killed session and removes its logs and state.
- The session ends if its record is removed or replaced, and never removes the files of a later session.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from steersman.aio import Supervisor
from steersman.application import Application, ApplicationError
from steersman.client import Client
from steersman.errors import ApiError
from steersman.projects.changes import AppliedChanges, apply_application
from steersman.projects.container_watches import ContainerWatches
from steersman.projects.identity import ProjectIdentity
from steersman.projects.session_record import (
    RECORD,
    SessionRecord,
    clean_session,
    locked,
    read_record,
    write_record,
)
from steersman.projects.source import ApplicationSource, ServiceSelection, with_scales
from steersman.projects.state_guard import StateGuard
from steersman.workloads import DeveloperControlPlane, PartsFactory, Watched, real_parts, start_time

#: Seconds without a further edit before an edit is applied.
DEBOUNCE: Final = 0.3
#: Called with a sentence for the user.
Report = Callable[[str], None]


class Project:
    """The session of an application: ``async with Project(source, selection) as project: ...``.

    Raises `ApplicationError` for invalid files and `SessionRunning` if another process runs the project.
    """

    def __init__(
        self,
        source: ApplicationSource,
        selection: ServiceSelection | None = None,
        *,
        report: Report = lambda _: None,
        runtime: Literal["podman", "docker"] = "podman",
        parts: PartsFactory | None = None,
        is_detached: bool = False,
    ) -> None:
        self._source = source
        self._selection = selection or ServiceSelection()
        self._report = report
        self._runtime: Literal["podman", "docker"] = runtime
        self._parts = parts or partial(real_parts, runtime=runtime)
        self._is_detached = is_detached
        self._stack: AsyncExitStack | None = None
        self._edited = asyncio.Event()
        self._watched: set[str] = set()
        self._scales = dict(self._selection.scales)
        declared = source.read(self._selection)
        self._declared_scales = _scales_of(declared)
        self.application = with_scales(declared, self._scales)
        self.identity = ProjectIdentity(self.application.folder.resolve(), self.application.name)
        self.state = self.identity.state_folder(source.environment)
        self.plane = DeveloperControlPlane(
            folder=self.state,
            parts=self._parts,
            working_folder=self.application.folder,
            ambient=source.environment,
        )

    @property
    def client(self) -> Client:
        """The administrator's client."""
        return self.plane.client

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the session must end: a client requested it, or a controller failed."""
        return self.plane.stopping

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.enter_context(locked(self.state))
            self._clean()
            await stack.enter_async_context(self.plane)
            await self._apply(self.application)
            self.record = self._new_record()
            write_record(self.record)
            self._guard = StateGuard(self.record, self._report)
            stack.callback(self._clean_own)
            tasks = await stack.enter_async_context(Supervisor())
            stack.callback(tasks.cancel)
            assert self.plane.parts is not None
            self._container_watches = ContainerWatches(
                self.client,
                self.plane.parts.files,
                self.plane.parts.containers,
                project=self.identity.name,
                report=self._report,
            )
            self._watch(self.application)
            tasks.start(self._follow_edits(), name="project: edits")
            tasks.start(self._guard_state(), name="project: state folder")
            tasks.start(self._container_watches.run(), name="project: watched files of containers")
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._stack = self._stack, None
        assert stack is not None
        await stack.__aexit__(kind, error, trace)

    async def stop(self) -> None:
        """Delete all objects, dependents first; the block then ends at once."""
        assert self.plane.shutdown is not None
        await self.plane.shutdown.finish()

    def set_page(self, address: str, key: str) -> None:
        """Record the page, for other processes of this user."""
        self.record.page, self.record.page_key = address, key
        write_record(self.record)

    def _clean(self) -> None:
        """Remove the files of a killed session."""
        clean_session(self.state)
        shutil.rmtree(self.state / "logs", ignore_errors=True)

    def _clean_own(self) -> None:
        """Remove the record, unless another session has replaced it."""
        if not self._guard.is_lost():
            clean_session(self.state)

    async def _guard_state(self) -> None:
        await self._guard.run()
        self.stopping.set()

    def _new_record(self) -> SessionRecord:
        pid = os.getpid()
        return SessionRecord(
            name=self.identity.name,
            folder=str(self.identity.folder),
            state=str(self.state),
            pid=pid,
            start=start_time(pid) or 0,
            kubeconfig=str(self.plane.kubeconfig),
            url=self.plane.url,
            container_runtime=self._runtime,
            is_detached=self._is_detached,
            names=self._selection.names,
            profiles=self._selection.profiles,
            scales=dict(self._selection.scales),
        )

    async def _apply(self, application: Application) -> AppliedChanges:
        return await apply_application(self.client, application, project=self.identity.name)

    # edits

    def _watch(self, application: Application) -> None:
        """Watch the folders of the application's files."""
        assert self.plane.parts is not None
        folders: dict[Path, list[str]] = {}
        for file in application.files:
            folders.setdefault(file.absolute().parent, []).append(file.name)
        keys = {"project record"}
        record = Watched(str(self.state), (RECORD,))
        self.plane.parts.files.watch("project record", record, lambda _: self._see_record())
        for folder, names in folders.items():
            keys.add(key := f"project {folder}")
            watched = Watched(str(folder), tuple(sorted(set(names))))
            self.plane.parts.files.watch(key, watched, lambda _: self._edited.set())
        for key in self._watched - keys:
            self.plane.parts.files.forget(key)
        self._watched = keys
        self._container_watches.follow(application)

    def _see_record(self) -> None:
        self._guard.look()
        if self._latest_selection().scales != self._scales:
            self._edited.set()

    async def _follow_edits(self) -> None:
        while True:
            await self._edited.wait()
            while self._edited.is_set():
                self._edited.clear()
                await asyncio.sleep(DEBOUNCE)
            await self._take_edit()

    async def _take_edit(self) -> None:
        """Apply an edit of the files."""
        selection = self._latest_selection()
        self._scales = dict(selection.scales)
        try:
            declared = self._source.read(selection, is_edit=True)
            if declared.main_file != self.application.main_file:
                # Another file was found in its place: a save or a checkout may have removed it for a moment.
                self._report(f"{self.application.main_file} is gone, so nothing changes until it is back")
                return
            if declared.name != self.identity.name:
                self._report(
                    f"the edit changes the project name to {declared.name}: run steersman down and up to use it"
                )
                return
            self._drop_outdated_scales(declared)
            application = with_scales(declared, self._scales)
            self._watch(application)
            changes = await self._apply(application)
        except ApplicationError as error:
            self._report(f"the edit has errors and was not applied:\n{self._local(error)}")
        except (ApiError, OSError) as error:
            # A server that stops rejects new objects.
            if not self.stopping.is_set():
                self._report(f"cannot apply the edit: {error}")
        else:
            self.application = application
            self._report(f"edit applied: {changes.words()}" if changes else "edit applied: no service changes")
            for warning in application.warnings:
                self._report(self._local(warning))

    def _local(self, problem: object) -> str:
        """A problem with the paths of files relative to the project: a line of the terminal view is short."""
        return str(problem).replace(f"{self.application.folder}{os.sep}", "")

    def _drop_outdated_scales(self, declared: Application) -> None:
        """Replace the scales of earlier commands by those that the edit changes."""
        before, self._declared_scales = self._declared_scales, _scales_of(declared)
        application = with_scales(declared, self._scales)
        for name, scale in self._declared_scales.items():
            number = application.services[name].scale
            if before.get(name, scale) != scale != number:
                self._scales[name] = scale
                self._report(f"{name}: scale {scale} from the file replaces {number} from an earlier command")
        record = read_record(self.state)
        if record is not None and record.scales != self._scales:
            record.scales = dict(self._scales)
            write_record(record)

    def _latest_selection(self) -> ServiceSelection:
        """The selected services: another command may have added some."""
        record = read_record(self.state) or self.record
        return ServiceSelection(names=record.names, profiles=record.profiles, scales=record.scales)


def _scales_of(application: Application) -> dict[str, int]:
    return {name: each.scale for name, each in application.services.items()}
