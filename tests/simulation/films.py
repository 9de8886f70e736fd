"""An operator that keeps a diary: each Film has a ConfigMap, its poster, with the same title.

The same operator runs in a simulation and as a process that talks to the engine. It writes what it reads and how each of its
writes ends to a file, which a crash does not take with it.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from steersman import Client, Context, Done, Key, Manager, ObjectMeta, Request, RequeueAfter, Resource, Spec
from steersman.aio import bind, randomness, utc_now
from steersman.client import Bookmark, Config
from steersman.errors import ApiError, ConnectionFailed, DeadlineExceeded, NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection

Sleep = Callable[[float], Awaitable[None]]

#: Seconds until the operator tries again after a failed write: its cache shows by then what became of the write.
AGAIN = 2.0
#: The name of the one Film and of its poster.
NAME = "home"
LEASE = "films"
#: With this title, all scenes of a film are deleted: ConfigMaps with these labels.
END, SCENES = "end", {"part": "scene"}
#: With this title, the operator reads a state of the poster that may be old.
RECALL = "recall"
#: With these titles, it watches posters for so many seconds: servers may send a bookmark two seconds before the end.
WATCH, GLANCE = "watch", "glance"
WATCH_SECONDS = {WATCH: 4, GLANCE: 1}


class FilmSpec(Spec):
    title: str


class Film(Resource[FilmSpec, None], group="films.test.steersman.dev", version="v1"):
    """A film, which needs a poster."""


class Diary:
    """What an operator has read and written, in a file."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def write(self, *words: object) -> None:
        """Add a line, at once: the process may be killed after it."""
        with self._path.open("ab", buffering=0) as file:
            file.write(json.dumps(words).encode() + b"\n")

    @contextmanager
    def outcome(self, what: str) -> Iterator[None]:
        """Write what is tried, and how it ends."""
        self.write(what)
        try:
            yield
        except ApiError as error:
            # What a client says of a write without an answer: that its outcome is unknown, and what failed.
            causes = [type(error).__name__]
            if isinstance(cause := error.__cause__, ConnectionFailed | DeadlineExceeded):
                causes += [type(cause).__name__, f"sent={cause.sent}"]
            self.write(what, *causes)
            raise
        self.write(what, "ok")

    def read(self) -> list[tuple[Any, ...]]:
        """All lines, without repetitions and looks after the operator's own write: how often it looks is chance."""
        if not self._path.exists():
            return []
        lines = [tuple(json.loads(line)) for line in self._path.read_text(encoding="utf-8").splitlines()]
        lines = [line for line, _ in groupby(lines)]
        return [line for before, line in zip([(), *lines], lines, strict=False) if not _is_echo(before, line)]


def _is_echo(before: tuple[Any, ...], line: tuple[Any, ...]) -> bool:
    """Whether the operator has been shown its own write, and found nothing to do."""
    return before[-1:] == ("ok",) and line[0] == "sees" and line[1] == line[2]


def operator(namespace: str, diary: Diary, *, leads: bool = False) -> Manager:
    """The operator for one namespace."""
    election = LeaderElection(LEASE, namespace=namespace, lease=6.0, renew=4.0, retry=0.3) if leads else None
    manager = Manager(name="films", leader=election, namespaces=(namespace,))

    async def reconcile(ctx: Context, request: Request) -> Done | RequeueAfter:
        film = await ctx.client.find(Film, request.key)
        poster = await ctx.client.find(ConfigMap, request.key)
        diary.write("sees", film and film.spec.title, poster and poster.data and poster.data["title"])
        if film is None:
            return Done()
        title = {"title": film.spec.title}
        try:
            if film.spec.title == END:
                with diary.outcome("clear"):
                    await ctx.client.delete_collection(ConfigMap, namespace=namespace, labels=SCENES)
            elif film.spec.title == RECALL:
                recalled = await _recalled(ctx.client, request.key)
                diary.write("recalls", recalled)
                return Done() if recalled else RequeueAfter(AGAIN)
            elif poster is not None and (seconds := WATCH_SECONDS.get(film.spec.title)):
                diary.write("watched", await _bookmarks(ctx.client, poster, seconds))
            elif poster is None:
                wanted = ConfigMap(metadata=ObjectMeta(name=request.key.name, namespace=namespace), data=title)
                with diary.outcome("create"):
                    await ctx.client.create(wanted, owner=film)
            elif poster.data != title:
                poster.data = title
                with diary.outcome("update"):
                    await ctx.client.update(poster)
        except ApiError:
            return RequeueAfter(AGAIN)
        return Done()

    manager.controller(Film).owns(ConfigMap).run_with(reconcile)
    return manager


async def _recalled(client: Client, key: Key) -> str | None:
    """The title of the poster in any state that a server has cached."""
    try:
        poster = await client.get(ConfigMap, key, resource_version="0")
    except NotFound:
        return None
    return poster.data and poster.data["title"]


async def _bookmarks(client: Client, poster: ConfigMap, seconds: int) -> int:
    """How many bookmarks a watch of posters has that begins after this one."""
    version, namespace = poster.metadata.resource_version, poster.key.namespace
    watch = client.watch(
        ConfigMap, namespace=namespace, resource_version=version, bookmarks=True, timeout_seconds=seconds
    )
    async with watch as events:
        return sum([isinstance(event, Bookmark) async for event in events])


# as a process


class SkewedClock:
    """The wall clock of a process, which a signal moves."""

    def __init__(self, skew: float) -> None:
        self._time = asyncio.get_running_loop().time
        self._began = utc_now() - timedelta(seconds=self._time())
        self._ahead = 0.0
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "_ahead", skew))

    def now(self) -> datetime:
        """See `steersman.aio.WallClock`."""
        return self._began + timedelta(seconds=self._time() + self._ahead)


def operate(server: str, namespace: str, diary: str, *, timeout: float, skew: float, leads: bool) -> None:
    """Run the operator until the process ends."""

    async def run() -> None:
        if skew:
            seed = randomness().getrandbits(63)
            bind(asyncio.get_running_loop(), clock=SkewedClock(skew), seed=seed)
        async with Client.connect(Config(server, namespace=namespace), timeout=timeout) as client:
            await operator(namespace, Diary(diary), leads=leads).run(client, signals=False)

    asyncio.run(run())


# what users do


class Audience:
    """The user of a run, in a simulation or on the engine, and what the user saw."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        diary: Diary,
        sleep: Sleep,
        heal: Callable[[], Awaitable[None]],
    ) -> None:
        self.client = client
        self.namespace = namespace
        self.diary = diary
        self.sleep = sleep
        #: Waits until a fault that lasts has ended, or ends it.
        self.heal = heal
        #: What the user noticed.
        self.notes: list[tuple[Any, ...]] = []

    @property
    def key(self) -> str:
        """The key of the Film and of its poster."""
        return f"{self.namespace}/{NAME}"

    async def create(self, title: str) -> None:
        """Create the Film."""
        await self.client.create(
            Film(metadata=ObjectMeta(name=NAME, namespace=self.namespace), spec=FilmSpec(title=title))
        )

    async def retitle(self, title: str) -> None:
        """Change the Film's title."""
        film = await self.client.get(Film, self.key)
        film.spec.title = title
        await self.client.update(film)

    async def poster(self) -> str | None:
        """The title on the poster that the server has."""
        found = await self.client.find(ConfigMap, self.key)
        return None if found is None or not found.data else found.data["title"]

    async def create_scenes(self) -> None:
        """Create scenes, which the operator deletes all at once."""
        for number in range(4):
            meta = ObjectMeta(name=f"scene-{number}", namespace=self.namespace, labels=SCENES)
            await self.client.create(ConfigMap(metadata=meta))

    async def scenes(self) -> int:
        """How many scenes there are."""
        return len(await self.client.list(ConfigMap, namespace=self.namespace, labels=SCENES))

    async def until_poster(self, title: str) -> None:
        """Wait until the server has a poster with a title."""

        async def has_title() -> bool:
            return await self.poster() == title

        await self.until(has_title)

    async def until_written(self, *words: object) -> None:
        """Wait until the operator has written a line into its diary."""

        async def is_written() -> bool:
            return words in self.diary.read()

        await self.until(is_written)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds, for two minutes at most."""
        for _ in range(2400):
            if await condition():
                return
            await self.sleep(0.05)
        raise AssertionError(f"it did not come about; the poster is {await self.poster()}: {self.diary.read()}")

    def note(self, *words: object) -> None:
        """Note something that must be the same in both runs."""
        self.notes.append(words)
