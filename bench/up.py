"""`steersman up` beside a shell script, process-compose and podman-compose: start, stop, CPU at rest, memory.

The shop of examples/shop starts with ``steersman up`` and with a shell script that has the same order and the same
probes and polls every 50 ms. An application of six services starts, rests and stops with ``steersman up`` beside
process-compose, and as containers beside podman-compose. Contenders take turns; medians of warm runs count.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.busybox_image import IMAGE, make_image, write_containers_conf
from bench.contenders.preparing import CannotPrepare, say
from bench.devserver import free_port
from bench.report import Bar, BenchmarkFailed, Column, Report
from bench.report_page import add_doc_argument, fill_page
from bench.up_tools import (
    PATIENCE,
    PODMAN_COMPOSE,
    PROCESS_COMPOSE,
    SCRIPT,
    SERVICES,
    STEERSMAN,
    Tool,
    container_tools,
    process_tools,
    running,
    steersman,
)

SHOP = Path(__file__).parents[1] / "examples" / "shop"
CONTENDERS = (STEERSMAN, SCRIPT, PROCESS_COMPOSE, PODMAN_COMPOSE)
#: Seconds that ``up`` may need beyond the script.
LIMIT = 1.5
#: What ``up`` may use for six processes at rest: percent of a core, and MB.
REST, MEMORY = 0.8, 70.0
#: What the plain output of ``up`` says of each service of the shop that is ready.
READY = {"db": "is healthy", "redis": "is healthy", "api": "is healthy", "web": "is healthy", "worker": "runs"}
#: The ports of the shop, which other programs of this machine may use.
PORTS = ("15432", "16379", "18000", "18080", "18090")
#: Seconds after a start in which programs may still be busy.
SETTLING = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_doc_argument(parser)
    parser.add_argument("--starts", type=int, default=10, help="warm starts of the shop with each contender")
    parser.add_argument("--rounds", type=int, default=5, help="warm rounds of the six services with each contender")
    parser.add_argument("--rest", type=float, default=10.0, help="seconds of each measurement of CPU at rest")
    parser.add_argument(
        "--only", choices=("shop", "processes", "containers"), action="append", help="measure this part"
    )


@dataclass
class Measured:
    """One measure, with a value for each warm round of each contender that takes part."""

    name: str
    unit: str
    rounds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in CONTENDERS})

    def column(self) -> Column:
        """All values, side by side."""
        return Column(name=self.name, unit=self.unit, rounds={name: tuple(each) for name, each in self.rounds.items()})


async def run(options: argparse.Namespace) -> Report:
    """Run the benchmark."""
    parts = options.only or ("shop", "processes", "containers")
    measures: list[Measured] = []
    bars: list[Bar] = []
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="steersman-bench-up-") as name:
        folder = Path(name)
        environment = _environment(folder)
        has_containers = _has_containers(notes)
        if "shop" in parts:
            starts = await _shop(folder, environment, options.starts, has_container=has_containers)
            measures.append(starts)
            bars.append(difference(starts))
        if "processes" in parts:
            try:
                processes = await _side_by_side("processes", process_tools, folder, environment, options)
                measures += processes
                bars += at_rest(processes)
            except CannotPrepare as error:
                notes.append(f"Without process-compose: {error}")
        if "containers" in parts and has_containers:
            if shutil.which(PODMAN_COMPOSE):
                measures += await _side_by_side("containers", container_tools, folder, environment, options)
            else:
                notes.append("Without podman-compose, which is not installed.")
    report = Report(name="up", bars=tuple(bars), columns=tuple(each.column() for each in measures), notes=tuple(notes))
    fill_page(options.doc, report)
    return report


def difference(starts: Measured) -> Bar:
    """The median of the differences within a round."""
    pairs = zip(starts.rounds[STEERSMAN], starts.rounds[SCRIPT], strict=True)
    value = statistics.median(ours - theirs for ours, theirs in pairs)
    return Bar(name=f"{starts.name} - {SCRIPT}", value=value, bar=LIMIT, unit="s")


def at_rest(measures: Sequence[Measured]) -> list[Bar]:
    """The medians of CPU and memory at rest."""
    found = {each.name.partition(",")[0]: each for each in measures}
    return [
        Bar(name=each.name, value=statistics.median(each.rounds[STEERSMAN]), bar=bar, unit=each.unit)
        for each, bar in ((found["CPU at rest"], REST), (found["memory"], MEMORY))
    ]


def _environment(folder: Path) -> dict[str, str]:
    """The environment of all contenders, without the user's settings and state."""
    # The database's user looks for its files below this folder.
    folder.chmod(0o755)
    dropped = {"KUBECONFIG", "COMPOSE_PROFILES", "COMPOSE_PROJECT_NAME"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, **write_containers_conf(folder), "XDG_STATE_HOME": str(folder / "state")}


def _has_containers(notes: list[str]) -> bool:
    if os.geteuid() != 0 or shutil.which("podman") is None or not Path("/bin/busybox").exists():
        notes.append("Without containers, which need root, podman, runc and busybox-static.")
        return False
    make_image()
    return True


# the shop


async def _shop(folder: Path, environment: Mapping[str, str], count: int, *, has_container: bool) -> Measured:
    """Start the shop with both contenders in turns."""
    measured = Measured("start of the shop", "s")
    place = folder / "shop"
    copy_shop(place)
    user = "postgres" if os.geteuid() == 0 else ""
    values = {"DATA": str(folder / "data"), "DB_USER": user, "ASSETS_IMAGE": IMAGE if has_container else ""}
    _create_cluster(folder / "data", user)
    names = ("up", "--plain") if has_container else ("up", "--plain", "web", "worker")
    ready = {**READY, "assets": "is healthy"} if has_container else READY
    starts = {
        STEERSMAN: ((*steersman(), *names), {f"=> {name} {words}" for name, words in ready.items()}),
        SCRIPT: (("bash", "up_shop.sh"), {"ready"}),
    }
    for number in range(count + 1):
        say(f"shop, start {number} of {count}")
        for name in (STEERSMAN, SCRIPT) if number % 2 else (SCRIPT, STEERSMAN):
            command, wanted = starts[name]
            seconds = await _start(command, wanted, place, {**environment, **values})
            # The first start of all reads programs from the disk and compiles modules.
            if number:
                measured.rounds[name].append(seconds)
    return measured


def copy_shop(target: Path, new_port: Callable[[], int] = free_port) -> dict[str, int]:
    """Copy the shop and the script with free ports in place of its own; returns them by these."""
    shutil.copytree(SHOP, target, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(Path(__file__).with_name("up_shop.sh"), target)
    ports = {name: new_port() for name in PORTS}
    for file in target.iterdir():
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            file.write_text(re.sub("|".join(PORTS), lambda found: str(ports[found[0]]), text), encoding="utf-8")
    return ports


def _create_cluster(data: Path, user: str) -> None:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs or shutil.which("redis-server") is None:
        raise BenchmarkFailed("the shop needs PostgreSQL and Redis; install Debian's postgresql and redis-server")
    data.mkdir(mode=0o700)
    if user:
        shutil.chown(data, user)
    command = [str(programs[-1]), "-U", "shop", "--auth=trust", "-D", str(data)]
    done = subprocess.run(command, user=user or None, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkFailed(f"initdb failed:\n{done.stderr}")


async def _start(command: Sequence[str], wanted: set[str], folder: Path, environment: Mapping[str, str]) -> float:
    """Start the shop until it has printed what is wanted, and stop it; returns the seconds of the start."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdin=PIPE, stdout=PIPE, stderr=STDOUT
    )
    try:
        await _until_printed(process, wanted)
        return time.perf_counter() - began
    finally:
        process.terminate()
        async with asyncio.timeout(PATIENCE):
            await process.communicate()


async def _until_printed(process: asyncio.subprocess.Process, wanted: set[str]) -> None:
    """Read lines until each wanted one has begun one."""
    assert process.stdout is not None
    left, text = set(wanted), ""
    try:
        async with asyncio.timeout(PATIENCE):
            while left:
                line = (await process.stdout.readline()).decode(errors="replace")
                if not line:
                    raise BenchmarkFailed(f"the shop ended before {', '.join(sorted(left))}:\n{text[-3000:]}")
                text += line
                left -= {words for words in left if re.match(rf"{words}\b", line)}
    except TimeoutError:
        raise BenchmarkFailed(f"the shop did not print {', '.join(sorted(left))}:\n{text[-3000:]}") from None


# the six services


async def _side_by_side(
    what: str,
    make: Callable[[Mapping[str, int]], Sequence[Tool]],
    folder: Path,
    environment: Mapping[str, str],
    options: argparse.Namespace,
) -> list[Measured]:
    count = len(SERVICES)
    start, stop, cpu, memory = measures = (
        Measured(f"start of {count} {what}", "s"),
        Measured(f"stop of {count} {what}", "s"),
        Measured(f"CPU at rest, {count} {what}", "% of a core"),
        Measured(f"memory, {count} {what}", "MB"),
    )
    ports = {name: free_port() for name in SERVICES}
    tools = make(ports)
    for number in range(options.rounds + 1):
        say(f"{what}, round {number} of {options.rounds}")
        for tool in tools if number % 2 else tools[::-1]:
            began = time.perf_counter()
            async with running(tool, folder, environment) as session:
                await session.until_answers(list(ports.values()))
                started = time.perf_counter() - began
                await asyncio.sleep(SETTLING)
                values = (started, await session.rest(options.rest if number else 0.1), session.memory())
                stopped = await session.stop()
            if number:
                for each, value in zip((start, cpu, memory, stop), (*values, stopped), strict=True):
                    each.rounds[tool.name].append(value)
    return list(measures)
