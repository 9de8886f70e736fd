"""The subresource ``log`` of Executables, Containers and ContainerExecs.

All followers share one watch of the files (`FileChanges`), and the informers of the controllers.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from steersman.cache import Informer, ObjectEvent
from steersman.controlplane import CustomSubresource, SubresourceRequest
from steersman.errors import ApiStatus, BadRequest, InternalError
from steersman.objects import Key, Object
from steersman.workloads.files import FileChanges
from steersman.workloads.kinds import Container, ContainerExec, Executable
from steersman.workloads.logs import InvalidLogOptions, LogOptions, read_log, read_options
from steersman.workloads.system_log import system_log_path

_log = logging.getLogger("steersman.workloads")
_KINDS: Final[tuple[type[Object], ...]] = (Executable, Container, ContainerExec)
#: States after which a workload writes nothing more.
_ENDED: Final = frozenset({"Finished", "Terminated", "FailedToStart", "Exited"})


class _Files(msgspec.Struct, rename="camel"):
    """The files of a workload's output in its status."""

    std_out_file: str | None = None
    std_err_file: str | None = None
    startup_std_out_file: str | None = None
    startup_std_err_file: str | None = None


class _Status(_Files, rename="camel"):
    state: str = ""
    steersman: _Files | None = None


class _Workload(msgspec.Struct):
    """What a log needs of an object: it changes often, so the rest is not decoded."""

    status: _Status | None = None

    @property
    def has_ended(self) -> bool:
        return self.status is not None and self.status.state in _ENDED

    def file(self, source: str) -> str:
        """The file of a source; empty while there is none."""
        field = f"{source.replace('stdout', 'std_out').replace('stderr', 'std_err')}_file"
        places = (self.status, self.status.steersman) if self.status is not None else ()
        return next((name for place in places if place is not None and (name := getattr(place, field))), "")


class Logs:
    """Answers requests for ``log``. Enter `following` while the controllers run."""

    def __init__(self, folder: Path, changes: FileChanges) -> None:
        self._folder = folder
        self.changes = changes
        self._informers: dict[type[Object], Informer[Any]] = {}
        self._is_following = asyncio.Event()
        #: The events of followers by the uid of their object.
        self._followers: dict[str, dict[asyncio.Event, None]] = {}

    def subresources(self) -> list[CustomSubresource]:
        """The subresource of each kind that has output."""
        return [_Kind(self, kind).subresource() for kind in _KINDS]

    @asynccontextmanager
    async def following(self, informers: Iterable[Informer[Any]]) -> AsyncGenerator[None]:
        """Wake followers by the informers of the controllers."""
        self._informers = {informer.kind: informer for informer in informers if informer.kind in _KINDS}
        handlers = [informer.add_handler(self._handle) for informer in self._informers.values()]
        self._is_following.set()
        try:
            yield
        finally:
            for handler in handlers:
                handler.remove()

    async def informer(self, kind: type[Object], version: str) -> Informer[Any]:
        """The informer of a kind, once it has reached a version."""
        await self._is_following.wait()
        await self._informers[kind].wait_reached(version)
        return self._informers[kind]

    @contextmanager
    def wake(self, uid: str, news: asyncio.Event) -> Generator[None]:
        """Set ``news`` whenever an object has changed, or is gone."""
        followers = self._followers.setdefault(uid, {})
        followers[news] = None
        try:
            yield
        finally:
            followers.pop(news, None)
            if not followers:
                self._followers.pop(uid, None)

    def system_log(self, metadata: Mapping[str, Any]) -> str:
        """The file of the control plane's own notes about a workload."""
        return str(system_log_path(self._folder, metadata))

    def _handle(self, event: ObjectEvent) -> None:
        for news in self._followers.get(event.latest.uid, ()):
            news.set()


class _Follower:
    """Waits for changes of one workload and of its file. Use it within its ``wake``."""

    def __init__(self, informer: Informer[Any], metadata: Mapping[str, Any]) -> None:
        self._informer = informer
        self._key, self._uid = Key(metadata.get("namespace", ""), metadata["name"]), metadata["uid"]
        self._version = ""
        self.latest = _Workload()
        #: Set by every change; the first look needs none.
        self.news = asyncio.Event()
        self.news.set()

    async def wait_for_more(self) -> bool:
        """Wait for a change; returns whether the workload has ended or is gone."""
        await self.news.wait()
        self.news.clear()
        stored = self._informer.store.get(self._key)
        if stored is None or stored.uid != self._uid:
            return True
        if stored.resource_version != self._version:
            self._version = stored.resource_version
            self.latest = msgspec.json.decode(stored.raw, type=_Workload)
        return self.latest.has_ended


class _Kind:
    def __init__(self, logs: Logs, kind: type[Object]) -> None:
        self._logs = logs
        self._kind = kind

    def subresource(self) -> CustomSubresource:
        return CustomSubresource(kind=self._kind, name="log", handler=self.answer)

    async def answer(self, request: SubresourceRequest) -> AsyncGenerator[bytes]:
        try:
            options = read_options(request.query)
        except InvalidLogOptions as error:
            raise _bad_request(str(error)) from None
        kind = self._kind.__name__
        if options.source.startswith("startup_") and self._kind is not Container:
            raise _bad_request(f"source {options.source} exists for Containers alone; {kind} has stdout and stderr")
        if "deletionTimestamp" in request.obj["metadata"]:
            raise _bad_request(f"{kind} {request.name} is being deleted, with its output")
        if options.follow:
            return self._read(request.obj, options)
        # Before the head of the response, which says whether the file can be read.
        pieces = self._read(request.obj, options)
        try:
            first = await anext(pieces, b"")
        except OSError as error:
            raise _unreadable(kind, request.name, error) from error
        return _joined(first, pieces)

    async def _read(self, obj: dict[str, Any], options: LogOptions) -> AsyncGenerator[bytes]:
        """Read a log, or follow it: then its file may have yet to appear."""
        metadata, source = obj["metadata"], options.source
        path = self._logs.system_log(metadata) if source == "system" else ""
        if not options.follow:
            if path := path or msgspec.convert(obj, _Workload).file(source):
                async for piece in read_log(path, options):
                    yield piece
            return
        informer = await self._logs.informer(self._kind, metadata["resourceVersion"])
        follower = _Follower(informer, metadata)
        with self._logs.wake(metadata["uid"], follower.news):
            ended = False
            while not path and not ended:
                ended = await follower.wait_for_more()
                path = follower.latest.file(source)
            if path:
                # The file may have changed, and its workload ended, before the watch began.
                follower.news.set()
                with self._logs.changes.wake(path, follower.news):
                    try:
                        async for piece in read_log(path, options, follower.wait_for_more):
                            yield piece
                    except OSError as error:
                        _log.warning("%s", _unreadable(self._kind.__name__, metadata["name"], error))


async def _joined(first: bytes, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with aclosing(pieces):
        if first:
            yield first
        async for piece in pieces:
            yield piece


def _unreadable(kind: str, name: str, error: OSError) -> InternalError:
    advice = "; allow more open files with ulimit -n" if error.errno in {errno.EMFILE, errno.ENFILE} else ""
    file = f" {error.filename}" if error.filename else ""
    message = f"{kind} {name}: cannot read its output{file}: {error.strerror or error}{advice}"
    return InternalError(ApiStatus(status="Failure", code=500, reason="InternalError", message=message))


def _bad_request(message: str) -> BadRequest:
    return BadRequest(ApiStatus(status="Failure", code=400, reason="BadRequest", message=message))
