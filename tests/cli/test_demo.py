"""``steersman demo``: what is deleted comes back, and why is told; nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from steersman.testing.environment import Environment
from steersman.testing.kubectl import run_kubectl


class Demo:
    """The demo as a program, its output read line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def until(self, *words: str) -> str:
        """Read on to the line with these words."""
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            while line := (await self.process.stdout.readline()).decode():
                self.lines.append(line.rstrip("\n"))
                if all(word in line for word in words):
                    return self.lines[-1]
        raise AssertionError(f"it ended before it said {words}: {self.lines}")


async def test_what_is_deleted_comes_back_and_the_cause_is_told():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "steersman", "demo",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=os.environ | {"NO_COLOR": "1"},
    )  # fmt: skip
    demo = Demo(process)
    try:
        kubeconfig = Path((await demo.until("export KUBECONFIG=")).partition("=")[2])
        await demo.until("Site home", "3 of 3 ready")

        async def kubectl(*arguments: str) -> str:
            program = Environment.read().program("kubectl")
            return await run_kubectl(program, arguments, kubeconfig=kubeconfig)

        await kubectl("delete", "pod", "home-1")
        await demo.until("kubectl deleted pods/home-1")
        await demo.until("reconciled Site home because Pod default/home-1 vanished")
        await demo.until("Site home", "3 of 3 ready")
        await kubectl("delete", "site", "home")
        await demo.until("the garbage collector deleted")
        await kubectl("apply", "-f", str(kubeconfig.parent / "home.yaml"))
        await demo.until("Site home", "3 of 3 ready")

        process.send_signal(signal.SIGINT)
        _, errors = await asyncio.wait_for(process.communicate(), timeout=20)
        assert process.returncode == 0, errors.decode()
        assert errors.decode().endswith("stopped; nothing is left behind\n")
        assert not kubeconfig.parent.exists()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
