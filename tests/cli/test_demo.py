"""``steersman demo``: it restores deleted objects, says why, survives the deletion of its CRD, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from pathlib import Path

import pytest

from steersman.cli.demo.command import fitted
from steersman.cli.demo.screen import Screen
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.kubectl import run_kubectl


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("rows", range(1, 12))
def test_what_is_shown_fits_into_any_terminal(rows):
    objects, log = [f"object {number}" for number in range(6)], [f"line {number}" for number in range(10)]
    shown = fitted(objects, log, rows)
    assert len(shown) <= rows
    assert shown[0] == ("object 0" if rows > 1 else "... and 6 more")
    if rows >= 4:
        assert shown[-1] == "line 9", "the newest line is shown"
    hidden = 6 - sum(line.startswith("object") for line in shown)
    assert (f"... and {hidden} more" in shown) == bool(hidden)


def test_a_terminal_that_changes_its_size_is_drawn_anew(monkeypatch):
    """What was drawn is wrapped by then, so that going up as many lines would leave some of it."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    with Screen(terminal) as screen:
        screen.draw(["one", "two"])
        screen.draw(["one", "three"])
        assert "\x1b[2A" in terminal.getvalue()
        monkeypatch.setenv("COLUMNS", "20")
        terminal.truncate(0)
        screen.draw(["one", "three"])
        assert "\x1b[2J\x1b[H" in terminal.getvalue()


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


async def test_a_deleted_object_comes_back_and_the_demo_prints_the_cause():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "steersman", "demo",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=os.environ | {"NO_COLOR": "1"},
    )  # fmt: skip
    demo = Demo(process)
    try:
        kubeconfig = Path((await demo.until("export KUBECONFIG=")).partition("=")[2])
        await demo.until("Site home", "3 of 3 ready")
        assert not [line for line in demo.lines if line.startswith(("ConfigMap", "Service", "Pod"))]

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
        await kubectl("delete", "crd", "sites.demo.steersman.dev")
        await demo.until("the definition of Site was deleted; restore it with")
        await kubectl("apply", "-f", str(kubeconfig.parent / "sites-crd.yaml"))
        await kubectl("wait", "--for=condition=Established", "crd/sites.demo.steersman.dev")
        await kubectl("apply", "-f", str(kubeconfig.parent / "home.yaml"))
        await demo.until("Site home", "3 of 3 ready")

        process.send_signal(signal.SIGINT)
        _, errors = await asyncio.wait_for(process.communicate(), timeout=60)
        assert process.returncode == 0, errors.decode()
        assert errors.decode().endswith("stopped; nothing is left behind\n")
        assert not kubeconfig.parent.exists()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
