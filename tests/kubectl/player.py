"""Plays a scenario on one server: the lines of a shell, in a folder of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from kubectl.normalization import Normalizer
from kubectl.scenario import Scenario, manifests

#: No line of a scenario takes nearly as long.
_LINE_SECONDS = 120.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Server:
    """A server that kubectl reaches by a kubeconfig; `home` keeps what kubectl remembers of it."""

    name: str
    kubeconfig: Path
    url: str
    home: Path
    #: The folder of kubectl and its plugins.
    programs: Path


@dataclass(frozen=True, slots=True)
class Printed:
    """What came of one line, as it is compared."""

    line: str
    code: int | None
    out: str
    err: str


@dataclass(slots=True)
class Play:
    """What came of all lines."""

    printed: list[Printed] = field(default_factory=list)

    def text(self) -> str:
        """All of it, to be read by people."""
        return "".join(f"{each.line}\n-> {each.code}\n{each.out}\n{each.err}\n" for each in self.printed)


class LineError(Exception):
    """A line could not be run as the scenario wants it."""


@dataclass(slots=True)
class _Background:
    line: str
    process: asyncio.subprocess.Process
    out: Path
    err: Path

    def printed_lines(self) -> int:
        return len(self.out.read_text(encoding="utf-8").splitlines())


class Player:
    """Runs the lines of one scenario on one server."""

    def __init__(self, server: Server, namespace: str, folder: Path, places: asyncio.Semaphore) -> None:
        self._server = server
        self._namespace = namespace
        self._folder = folder
        self._places = places
        self._background: _Background | None = None
        self._cache = server.home / "cache"

    async def play(self, scenario: Scenario) -> Play:
        """Run all lines; what they print is normalized."""
        texts = {name: text.replace("{ns}", self._namespace) for name, text in manifests().items()}
        for name, text in texts.items():
            (self._folder / name).write_text(text, encoding="utf-8")
        self._write_kubeconfig()
        if scenario.installs:
            # what kubectl remembers of kinds would else depend on the others' definitions
            self._cache = self._folder / ".cache"
        normalizer = Normalizer(
            {
                str(self._folder): "<folder>",
                self._server.url: "<server>",
                self._server.url.removeprefix("https://"): "<server>",
                self._namespace: "{ns}",
            },
            "\n".join([*scenario.lines, *texts.values()]),
        )
        play = Play()
        try:
            for step, line in enumerate(scenario.lines):
                result = await self._run(line.replace("{ns}", self._namespace))
                if result is not None:
                    code, out, err = result
                    ages = "--no-headers" in line
                    play.printed.append(
                        Printed(line, code, normalizer.text(out, step, ages=ages), normalizer.text(err, step))
                    )
        finally:
            await self._end_background()
            (self._folder / ".printed").write_text(play.text(), encoding="utf-8")
        return play

    async def _run(self, line: str) -> tuple[int | None, str, str] | None:
        if line.startswith("& "):
            await self._begin_background(line.removeprefix("& "))
            return None
        if line.startswith("&"):
            return await self._background_printed(int(line[1:]))
        preparing = line.startswith("$ ")
        async with self._places, self._started(line.removeprefix("$ ")) as process:
            try:
                async with asyncio.timeout(_LINE_SECONDS):
                    out, err = await process.communicate()
            except TimeoutError:
                raise LineError(f"on {self._server.name}, took longer than {_LINE_SECONDS:g} s: {line}") from None
        if not preparing:
            return process.returncode, out.decode(), err.decode()
        if process.returncode:
            raise LineError(f"on {self._server.name}, failed: {line}: {err.decode()}")
        return None

    async def _begin_background(self, line: str) -> None:
        out, err = self._folder / ".out", self._folder / ".err"
        process = await self._start(f"exec {line}", out=out, err=err)
        self._background = _Background(line, process, out, err)
        await self._wait_for_lines(1)

    async def _background_printed(self, count: int) -> tuple[None, str, str]:
        assert self._background is not None
        await self._wait_for_lines(count)
        background = self._background
        await self._end_background()
        return None, background.out.read_text(encoding="utf-8"), background.err.read_text(encoding="utf-8")

    async def _wait_for_lines(self, count: int) -> None:
        assert self._background is not None
        background = self._background
        try:
            async with asyncio.timeout(_LINE_SECONDS):
                while background.printed_lines() < count:
                    if background.process.returncode is not None:
                        raise LineError(
                            f"on {self._server.name}, ended before it had printed {count} lines: {background.line}: "
                            f"{background.out.read_text(encoding='utf-8')}{background.err.read_text(encoding='utf-8')}"
                        )
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise LineError(
                f"on {self._server.name}, did not print {count} lines: {background.line}: "
                f"{background.out.read_text(encoding='utf-8')}"
            ) from None

    async def _end_background(self) -> None:
        background, self._background = self._background, None
        if background is not None:
            await _end(background.process)

    @asynccontextmanager
    async def _started(self, line: str) -> AsyncGenerator[asyncio.subprocess.Process]:
        process = await self._start(line)
        try:
            yield process
        finally:
            await _end(process)

    async def _start(
        self, line: str, *, out: Path | None = None, err: Path | None = None
    ) -> asyncio.subprocess.Process:
        with contextlib.ExitStack() as files:
            return await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                line,
                cwd=self._folder,
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=files.enter_context(out.open("wb")) if out is not None else asyncio.subprocess.PIPE,
                stderr=files.enter_context(err.open("wb")) if err is not None else asyncio.subprocess.PIPE,
                # what the shell starts is ended with it
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self._server.programs}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "HOME": str(self._server.home),
            "KUBECACHEDIR": str(self._cache),
            "KUBECONFIG": str(self._folder / ".kubeconfig"),
            "TMPDIR": str(self._folder),
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "GOGC": "400",  # none of them lives long enough to collect garbage
        }

    def _write_kubeconfig(self) -> None:
        """The server's kubeconfig with the scenario's namespace, and names that tell nothing."""
        config = yaml.safe_load(self._server.kubeconfig.read_text(encoding="utf-8"))
        current = next(each for each in config["contexts"] if each["name"] == config["current-context"])
        current["context"]["namespace"] = self._namespace
        target = self._folder / ".kubeconfig"
        target.touch(mode=0o600)
        target.write_text(yaml.safe_dump(config), encoding="utf-8")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
