"""The tools that the benchmark of ``steersman up`` compares: their files for one application, and their processes.

The application has six services that answer HTTP: two stores, an API after both, and three clients after the API.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.apiserver_subjects import cpu_clock
from bench.busybox_image import IMAGE
from bench.contenders.preparing import go_program
from bench.devserver import free_port
from bench.memory import proportional
from bench.report import BenchmarkFailed

STEERSMAN, SCRIPT, PROCESS_COMPOSE, PODMAN_COMPOSE = "steersman", "shell script", "process-compose", "podman-compose"
#: The services, and those that each waits for.
SERVICES: Mapping[str, tuple[str, ...]] = {
    "db": (),
    "cache": (),
    "api": ("db", "cache"),
    "web": ("api",),
    "admin": ("api",),
    "worker": ("api",),
}
#: Seconds that a start or a stop may take.
PATIENCE = 120.0
#: Seconds between two looks at services that do not answer yet.
LOOK = 0.01
#: Processes that are not part of a tool: the services, and Podman's monitor of each container.
NOT_TOOLS = ("busybox", "sleep", "conmon")
_MARK = "STEERSMAN_BENCH_UP"


# files


def steersman_file(ports: Mapping[str, int]) -> str:
    """The application as processes, in steersman.yaml."""
    services = {
        name: {
            "command": f"/bin/busybox httpd -f -p 127.0.0.1:{ports[name]} -h .",
            "depends_on": {each: {"condition": "service_healthy"} for each in needs},
            "healthcheck": {"http": f"http://127.0.0.1:{ports[name]}/", "interval": "1s"},
        }
        for name, needs in SERVICES.items()
    }
    return json.dumps({"name": "six", "services": services})


def process_compose_file(ports: Mapping[str, int]) -> str:
    """The same for process-compose, whose shortest period of a probe is a second."""
    processes = {
        name: {
            "command": f"exec /bin/busybox httpd -f -p 127.0.0.1:{ports[name]} -h .",
            "depends_on": {each: {"condition": "process_healthy"} for each in needs},
            "readiness_probe": {
                "http_get": {"host": "127.0.0.1", "port": str(ports[name]), "path": "/"},
                "period_seconds": 1,
            },
        }
        for name, needs in SERVICES.items()
    }
    return json.dumps({"version": "0.5", "processes": processes})


def compose_file(ports: Mapping[str, int]) -> str:
    """The application as containers, for every tool that reads compose.yaml."""
    # The shell is process 1, and has a handler for SIGTERM.
    script = "trap 'exit 0' TERM; httpd -f -p 8080 -h /www & wait"
    services = {
        name: {
            "image": IMAGE,
            "command": ["sh", "-c", script],
            "depends_on": list(needs),
            "ports": [f"127.0.0.1:{ports[name]}:8080"],
            "volumes": [".:/www:ro"],
        }
        for name, needs in SERVICES.items()
    }
    return json.dumps({"name": "six", "services": services})


# tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """How one tool starts and stops an application."""

    name: str
    file: str
    text: str
    up: Sequence[str]
    #: The command that stops it; without one, Ctrl-C does.
    down: Sequence[str] = ()


def process_tools(ports: Mapping[str, int]) -> list[Tool]:
    """The tools that run the application as processes."""
    program = go_program(
        Path(__file__).with_name("process_compose"), PROCESS_COMPOSE, "github.com/f1bonacc1/process-compose/src"
    )
    options = ("--tui=false", "--ordered-shutdown", "--port", str(free_port()))
    return [
        Tool(name=STEERSMAN, file="steersman.yaml", text=steersman_file(ports), up=(*steersman(), "up", "--plain")),
        Tool(
            name=PROCESS_COMPOSE,
            file="process-compose.yaml",
            text=process_compose_file(ports),
            up=(str(program), "up", *options),
        ),
    ]


def container_tools(ports: Mapping[str, int]) -> list[Tool]:
    """The tools that run the application as containers."""
    text = compose_file(ports)
    return [
        Tool(name=STEERSMAN, file="compose.yaml", text=text, up=(*steersman(), "up", "--plain")),
        Tool(
            name=PODMAN_COMPOSE,
            file="compose.yaml",
            text=text,
            up=("podman-compose", "up"),
            down=("podman-compose", "down"),
        ),
    ]


def steersman() -> tuple[str, ...]:
    """The command, as its console script runs it."""
    return (sys.executable, "-P", "-m", "steersman")


# sessions


@dataclass(slots=True)
class Session:
    """A tool that runs an application."""

    tool: Tool
    process: asyncio.subprocess.Process
    folder: Path
    environment: Mapping[str, str]
    mark: str
    output: Path

    async def until_answers(self, ports: Sequence[int]) -> None:
        """Wait until every port has answered an HTTP request."""
        left = set(ports)
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    left -= {port for port in left if await _answers(port)}
                    if not left:
                        return
                    if self.process.returncode is not None:
                        raise BenchmarkFailed(f"{self.tool.name} ended before its services answered:\n{self.tail()}")
                    await asyncio.sleep(LOOK)
        except TimeoutError:
            raise BenchmarkFailed(f"{self.tool.name}: no answer from {sorted(left)}:\n{self.tail()}") from None

    async def rest(self, seconds: float) -> float:
        """The CPU of the tool's processes while nothing changes, in percent of a core."""
        before, began = self._cpu(), time.perf_counter()
        await asyncio.sleep(seconds)
        after, passed = self._cpu(), time.perf_counter() - began
        return 100 * sum(after[pid] - before.get(pid, 0.0) for pid in after) / passed

    def memory(self) -> float:
        """The memory of the tool's processes, in MB."""
        total = 0
        for pid in self.pids():
            with suppress(OSError, RuntimeError):
                total += proportional(pid)
        return total / 1e6

    async def stop(self) -> float:
        """Stop the application; returns the seconds until its tool has ended."""
        began = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                if self.tool.down:
                    down = await _started(self.tool.down, self.folder, self.environment, self.output)
                    await down.wait()
                else:
                    self.process.send_signal(signal.SIGTERM)  # a program started in the background may ignore SIGINT
                await self.process.wait()
        except TimeoutError:
            raise BenchmarkFailed(f"{self.tool.name} did not stop:\n{self.tail()}") from None
        return time.perf_counter() - began

    def pids(self) -> list[int]:
        """The processes of the tool, without the services."""
        return [pid for pid in _marked(self.mark) if _program(pid) not in NOT_TOOLS]

    def tail(self) -> str:
        """The last lines that the tool printed."""
        return self.output.read_text(encoding="utf-8", errors="replace")[-2000:]

    def _cpu(self) -> dict[int, float]:
        found: dict[int, float] = {}
        for pid in self.pids():
            with suppress(OSError):
                found[pid] = time.clock_gettime(cpu_clock(pid))
        return found


@asynccontextmanager
async def running(tool: Tool, folder: Path, environment: Mapping[str, str]) -> AsyncGenerator[Session]:
    """Start a tool in a folder of its own; what is left of it is killed at the end."""
    mark = f"{tool.name}-{time.monotonic_ns()}"
    place = folder / mark
    place.mkdir()
    (place / tool.file).write_text(tool.text, encoding="utf-8")
    (place / "index.html").write_text("ready\n", encoding="utf-8")
    output = folder / f"{mark}.log"
    environment = {**environment, _MARK: mark}
    process = await _started(tool.up, place, environment, output)
    try:
        yield Session(tool, process, place, environment, mark, output)
    finally:
        for pid in _marked(mark):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        await process.wait()


async def _started(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], output: Path
) -> asyncio.subprocess.Process:
    with output.open("ab") as file:
        return await asyncio.create_subprocess_exec(
            *command, cwd=folder, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=file, stderr=file
        )


async def _answers(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            return (await reader.readline()).partition(b" ")[2].startswith(b"200 ")
        finally:
            writer.transport.abort()
    except OSError:
        return False


def _marked(mark: str) -> Iterator[int]:
    """The living processes whose environment has a mark."""
    wanted = f"{_MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)


def _program(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/exe").readlink().name
    return ""
