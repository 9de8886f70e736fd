"""`steersman up` with many services: CPU at rest, and seconds to stop, for 200 services side by side and in chains of 10.

Every service is ``sleep``. The CPU and the memory are those of all processes of Steersman, without the services.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
from pathlib import Path

from bench.contenders.preparing import say
from bench.report import Bar, BenchmarkFailed, Figure, Report
from bench.up_tools import PATIENCE, STEERSMAN, Session, Tool, running, steersman

#: The largest share of a core at rest, in percent, and the longest stop, in seconds.
REST, STOP = 3.0, 3.0
#: Seconds after a start in which the session may still be busy.
SETTLING = 5.0
#: The program of every service; it is not part of the tool.
PROGRAM = "/bin/sleep"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--services", type=int, default=200, help="the number of services; 200 unless given")
    parser.add_argument("--chain", type=int, default=10, help="the length of a chain; 10 unless given")
    parser.add_argument("--rounds", type=int, default=3, help="sessions of each shape; 3 unless given")
    parser.add_argument("--rest", type=float, default=10.0, help="seconds of each measurement of CPU at rest")


def application(count: int, chain: int) -> str:
    """The file of services in chains: each service of a chain waits until the one before it has started."""
    services = {
        f"s{number}": {
            "command": f"{PROGRAM} {100_000 + number}",
            **({"depends_on": [f"s{number - 1}"]} if number % chain else {}),
        }
        for number in range(count)
    }
    return json.dumps({"name": "many", "services": services})


async def run(options: argparse.Namespace) -> Report:
    """Run the benchmark."""
    bars: list[Bar] = []
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="steersman-bench-up-many-") as name:
        for chain in (1, options.chain):
            shape = f"{options.services} services" + (f" in chains of {chain}" if chain > 1 else "")
            rounds = [await _measure(Path(name), shape, chain, options) for _ in range(options.rounds)]
            rest, memory, stop = (statistics.median(each) for each in zip(*rounds, strict=True))
            bars.append(Bar(name=f"{shape}: CPU at rest", value=rest, bar=REST, unit="% of a core"))
            bars.append(Bar(name=f"{shape}: stop", value=stop, bar=STOP, unit="s"))
            figures.append(Figure(name=f"{shape}: memory", value=memory, unit="MB"))
    return Report(name="up_many", bars=tuple(bars), figures=tuple(figures))


async def _measure(folder: Path, shape: str, chain: int, options: argparse.Namespace) -> tuple[float, float, float]:
    """The CPU at rest, the memory and the seconds of the stop of one session."""
    say(shape)
    text = application(options.services, chain)
    tool = Tool(name=STEERSMAN, file="steersman.yaml", text=text, up=(*steersman(), "up", "--plain"))
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    async with running(tool, folder, environment) as session:
        await _until_all_run(session, options.services)
        await asyncio.sleep(SETTLING)
        return await session.rest(options.rest), session.memory(), await session.stop()


async def _until_all_run(session: Session, count: int) -> None:
    """Wait until the session has reported that every service runs."""
    try:
        async with asyncio.timeout(PATIENCE):
            while session.output.read_text(encoding="utf-8").count(" runs\n") < count:
                if session.process.returncode is not None:
                    raise BenchmarkFailed(f"the session ended before all services ran:\n{session.tail()}")
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise BenchmarkFailed(f"not all services ran in time:\n{session.tail()}") from None
