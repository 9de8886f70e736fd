"""Project: runs an application in this process, with a developer control plane, its objects and its watched files.

Guarantees
- ``async with`` owns everything. When the block begins, the objects are applied; when it ends, nothing is left running.
- An edit of a file is applied once no file has changed for `DEBOUNCE` seconds. An edit with an error is reported and
  changes nothing.
- A command sets scales by a PATCH of `SCALES`. The session rejects those that do not fit, and keeps the previous ones.
- A later edit replaces the scales that it changes, and those that no longer fit.
- A second ``up`` adds its services by a PATCH of `SELECTION`.
- The start ends the processes of a killed session and removes its logs and state.
- The session ends if its record is removed or replaced, and never removes the files of a later session.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final, Literal, Self, TypeVar

import msgspec

from steersman.aio import Supervisor
from steersman.application import SCALE_MAX, Application, ApplicationError, Problem, is_edited
from steersman.client import Client
from steersman.controlplane import PathRequest
from steersman.errors import ApiError, ApiStatus, Invalid, MethodNotAllowed
from steersman.projects.changes import AppliedChanges, apply_application
from steersman.projects.container_watches import ContainerWatches
from steersman.projects.identity import ProjectIdentity
from steersman.projects.scales import outdated_scales, scale_numbers, with_scales
from steersman.projects.session_record import (
    RECORD,
    SCALES,
    SELECTION,
    SessionRecord,
    clean_session,
    locked,
    write_record,
)
from steersman.projects.source import ApplicationSource, ServiceSelection
from steersman.projects.state_guard import StateGuard
from steersman.workloads import DeveloperControlPlane, PartsFactory, Watched, escaped, real_parts, start_time

#: Seconds without a further edit before an edit is applied.
DEBOUNCE: Final = 0.3
#: Called with a sentence for the user.
Report = Callable[[str], None]
_Body = TypeVar("_Body")


class Project:
    """The session of an application: ``async with Project(source, selection) as project: ...``.

    ``whole`` is the application that `ApplicationSource.read` returned before; without it, this reads the files. Raises
    `ApplicationError` for invalid files and `SessionRunning` if another process runs the project.
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
        whole: Application | None = None,
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
        self._rescaled = asyncio.Event()
        #: Held while an edit, a scale or a rebuild is applied.
        self._applying = asyncio.Lock()
        #: The application with the scales of its files.
        self._declared = self._selection.started(source.read() if whole is None else whole)
        self.application = with_scales(self._declared, self._selection.scales)
        self.identity = ProjectIdentity(self.application.folder.resolve(), self.application.name)
        self.state = self.identity.state_folder(source.environment)
        self.plane = DeveloperControlPlane(
            folder=self.state,
            parts=self._parts,
            working_folder=self.application.folder,
            ambient=source.environment,
            paths={SCALES: self._answer_scales, SELECTION: self._answer_selection},
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
                applying=self._applying,
                report=self._report,
            )
            self._watch(self.application)
            if is_edited(self._declared):
                # Before the watch began.
                self._edited.set()
            tasks.start(self._follow_edits(), name="project: edits")
            tasks.start(self._follow_scales(), name="project: scales")
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
        try:
            write_record(self.record)
        except OSError as error:
            # The disk may be full: the services run, and only the command that prints a new link does not work.
            self._report(f"cannot record the page, so steersman page finds none: {error}")

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
        """Watch the files of the application, and those that its containers watch."""
        self._watch_files(application.files)
        self._container_watches.follow(application)

    def _watch_files(self, files: Iterable[Path]) -> None:
        """Watch files. Below the project's folder, a folder may be removed and made again."""
        assert self.plane.parts is not None
        folders: dict[Path, list[str]] = {}
        top = self.application.folder.absolute()
        # A symbolic link changes if its target does, which may be in another folder.
        for file in {path for each in files for path in (each.absolute(), _target(each))}:
            folder = top if file.is_relative_to(top) else file.parent
            folders.setdefault(folder, []).append(escaped(str(file.relative_to(folder))))
        keys = {"project record"}
        record = Watched(str(self.state), (RECORD,))
        self.plane.parts.files.watch("project record", record, lambda _: self._guard.look())
        for folder, names in folders.items():
            keys.add(key := f"project {folder}")
            watched = Watched(str(folder), tuple(sorted(set(names))))
            self.plane.parts.files.watch(key, watched, lambda _: self._edited.set(), self._report)
        for key in self._watched - keys:
            self.plane.parts.files.forget(key)
        self._watched = keys

    async def _follow_edits(self) -> None:
        while True:
            await self._edited.wait()
            while self._edited.is_set():
                self._edited.clear()
                await asyncio.sleep(DEBOUNCE)
            async with self._applying:
                await self._take_edit()

    async def _take_edit(self) -> None:
        """Apply an edit of the files."""
        selection = ServiceSelection.recorded(self.record)
        try:
            whole = self._source.read()
            # Also without a success: what mends an error may be an edit of a file that is new.
            self._watch_files((*self.application.files, *whole.files))
            declared = selection.declared(whole, is_edit=True)
            if hindrance := self._hindrance(declared):
                self._report(hindrance)
                return
            replaced, notes = self._replaced_scales(declared, selection.scales)
            application = with_scales(declared, {**selection.scales, **replaced})
            self._watch(application)
            changes = await self._apply(application)
        except ApplicationError as error:
            if error.files:
                self._watch_files((*self.application.files, *error.files))
            self._report(f"the edit has errors and was not applied:\n{self._local(error)}")
        except (ApiError, OSError) as error:
            # A server that stops rejects new objects.
            if not self.stopping.is_set():
                self._report(f"cannot apply the edit: {error}")
        else:
            scaled = self._take(declared, selection, application, replaced)
            for note in (*notes, *scaled):
                self._report(note)
            if changes or not scaled:
                self._report(f"edit applied: {changes.words() or 'no service changes'}")
            for warning in application.warnings:
                self._report(self._local(warning))

    def _hindrance(self, declared: Application) -> str:
        """Why an edit cannot be applied to this session; empty if it can."""
        if declared.main_file != (main := self.application.main_file):
            if main is not None and main.exists():
                return (
                    f"{declared.main_file} now comes before {main.name}, which this session runs, so nothing changes: remove"
                    " it, or run steersman down and up to use it"
                )
            # Another file was found in its place: a save or a checkout may have removed it for a moment.
            return f"{main} is gone, so nothing changes until it is back"
        if declared.name != self.identity.name:
            return f"the edit changes the project name to {declared.name}: run steersman down and up to use it"
        return ""

    def _local(self, problem: object) -> str:
        """A problem with the paths of files relative to the project: a line of the terminal view is short."""
        return str(problem).replace(f"{self.application.folder}{os.sep}", "")

    # scales

    def _replaced_scales(self, declared: Application, scales: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
        """The scales of the edited file that replace those of commands, and a sentence for each that the user set.

        The file wins if the edit changes the scale of a service, or if the number of a command no longer fits.
        """
        before, numbers = _scales_of(self._declared), scale_numbers(declared, scales)
        replaced = {
            name: scale
            for name, scale in _scales_of(declared).items()
            if before.get(name, scale) != scale != numbers[name]
        }
        notes = [
            f"{name}: scale {scale} from the file replaces {numbers[name]} from an earlier command"
            for name, scale in replaced.items()
            if numbers[name] != before[name]
        ]
        outdated, warnings = outdated_scales(declared, {**scales, **replaced})
        return {**replaced, **outdated}, [*notes, *map(self._local, warnings)]

    async def _answer_scales(self, request: PathRequest) -> dict[str, int]:
        """Answer a PATCH of `SCALES`, a map from services to numbers. Raises `Invalid` if one of them does not fit.

        Only the session knows the files with which it was started, so only it can decide.
        """
        wanted = _patch(request, dict[str, Annotated[int, msgspec.Meta(ge=0, le=SCALE_MAX)]])
        try:
            self._check_scales(wanted)
        except ApplicationError as error:
            raise Invalid(_failure(422, "Invalid", str(error))) from None
        before = self.record.scales
        try:
            self._record_scales(wanted)
        except OSError as error:
            self.record.scales = before
            text = f"cannot record it in {self.state}: {error.strerror}; free space on that disk, or mend the folder"
            raise Invalid(_failure(422, "Invalid", text)) from None
        self._rescaled.set()
        return self.record.scales

    async def _answer_selection(self, request: PathRequest) -> dict[str, int]:
        """Answer a PATCH of `SELECTION`: the services and scales of a second ``up``, which has applied them itself."""
        before = self.record.scales
        joined = ServiceSelection.recorded(self.record).joined(_patch(request, ServiceSelection))
        self.record.names, self.record.profiles, self.record.scales = joined.names, joined.profiles, dict(joined.scales)
        self.record.beside = joined.beside
        self._write_record()
        if self.record.scales != before:
            self._edited.set()
        return self.record.scales

    def _check_scales(self, wanted: Mapping[str, int]) -> None:
        """Raise `ApplicationError` if a service cannot have its number of replicas."""
        services = (declared := self._declared_now()).services
        for name, number in wanted.items():
            if name not in services:
                raise ApplicationError(Problem(f"no service {name}; the services are: {', '.join(services)}"))
            if not number and not services[name].is_process:
                text = f"service {name} is a container, which cannot be scaled to 0: use steersman stop {name}"
                raise ApplicationError(Problem(text, services[name].place))
        before = self.record.scales
        with_scales(declared, {**before, **outdated_scales(declared, before)[0], **wanted})

    async def _follow_scales(self) -> None:
        while True:
            await self._rescaled.wait()
            self._rescaled.clear()
            async with self._applying:
                await self._take_scales()

    async def _take_scales(self) -> None:
        """Apply the scales of commands."""
        try:
            declared, selection = self._declared_now(), ServiceSelection.recorded(self.record)
            # An edit may have been applied since the command.
            replaced, warnings = outdated_scales(declared, selection.scales)
            application = with_scales(declared, {**selection.scales, **replaced})
            self._watch(application)
            await self._apply(application)
        except (ApplicationError, ApiError, OSError) as error:
            if not self.stopping.is_set():
                self._report(f"cannot apply the scale: {self._local(error)}")
            return
        new = [each for each in application.warnings if each not in self.application.warnings]
        scaled = self._take(declared, selection, application, replaced)
        for words in (*scaled, *map(self._local, (*warnings, *new))):
            self._report(words)

    def _declared_now(self) -> Application:
        """The application with the scales of its files, without later edits: these may have errors.

        The files are read again only if a second ``up`` has added services. Raises `ApplicationError` if the session cannot
        take them.
        """
        selection = ServiceSelection.recorded(self.record)
        if msgspec.structs.replace(selection, scales={}) == msgspec.structs.replace(self._selection, scales={}):
            return self._declared
        declared = selection.declared(self._source.read(), is_edit=True)
        if hindrance := self._hindrance(declared):
            raise ApplicationError(Problem(hindrance))
        return declared

    def _take(
        self,
        declared: Application,
        selection: ServiceSelection,
        application: Application,
        replaced: Mapping[str, int],
    ) -> list[str]:
        """Store what was applied; returns a sentence for each service that a command has scaled."""
        before, running = _scales_of(self._declared), _scales_of(self.application)
        scaled = [
            f"scaled {name} to {each.scale}"
            for name, each in application.services.items()
            if running.get(name, each.scale) != each.scale
            # Not the file.
            and name not in replaced
            and before.get(name) == declared.services[name].scale
        ]
        self.application, self._declared, self._selection = application, declared, selection
        latest = self.record.scales
        # A command may have set another scale meanwhile, which is applied next.
        replaced = {name: number for name, number in replaced.items() if latest.get(name) == selection.scales.get(name)}
        try:
            if replaced:
                self._record_scales(replaced)
        except OSError as error:
            self._report(f"cannot record the scales of {', '.join(replaced)}: {error}")
        return scaled

    def _record_scales(self, scales: Mapping[str, int]) -> None:
        self.record.scales = {**self.record.scales, **scales}
        self._write_record()

    def _write_record(self) -> None:
        # The record of another session is not ours to write.
        if not self._guard.is_lost():
            write_record(self.record)


def _target(file: Path) -> Path:
    try:
        return file.resolve()
    except (OSError, RuntimeError):
        # Links in a circle.
        return file.absolute()


def _scales_of(application: Application) -> dict[str, int]:
    return {name: each.scale for name, each in application.services.items()}


def _patch(request: PathRequest, expected: type[_Body]) -> _Body:
    """The body of a PATCH. Raises `MethodNotAllowed` for another method, and `Invalid` for another body."""
    if request.method != "PATCH":
        raise MethodNotAllowed(_failure(405, "MethodNotAllowed", f"use PATCH for {request.path}"))
    try:
        return msgspec.json.decode(request.body, type=expected)
    except msgspec.MsgspecError as error:
        raise Invalid(_failure(422, "Invalid", str(error))) from None


def _failure(code: int, reason: str, message: str) -> ApiStatus:
    return ApiStatus(status="Failure", code=code, reason=reason, message=message)
