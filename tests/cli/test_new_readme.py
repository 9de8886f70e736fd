"""The README of a new project: its commands work as they are written, in three terminals."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steersman.cli import main
from steersman.testing.engine.environment import Environment

_log = logging.getLogger(__name__)

pytestmark = pytest.mark.slow

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def by_hand(readme: str) -> list[tuple[str, str]]:
    """The blocks to try by hand: the commands of each as a script, and the output that the page shows."""
    section = readme.partition("To try it by hand")[2].partition("\n## ")[0]
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(section):
        typed = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
        shown = [line for line in block.splitlines() if not line.startswith("$ ")]
        found.append(("\n".join(["set -e", *typed]), "\n".join(shown)))
    return found


class Terminals:
    """Shells in the project's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        tools = [Path(sys.executable).parent, Environment.read().program("kubectl").parent]
        path = os.pathsep.join([*map(str, tools), os.environ["PATH"]])
        hidden = ("PYTEST", "COV", "KUBECONFIG")
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith(hidden)} | {"PATH": path}

    async def start(self, script: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *("bash", "-c", script),
            cwd=self._folder,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )

    async def run(self, script: str) -> tuple[int | None, str]:
        process = await self.start(script)
        async with asyncio.timeout(120):
            output, _ = await process.communicate()
        return process.returncode, output.decode()

    @asynccontextmanager
    async def running(self, script: str) -> AsyncGenerator[asyncio.subprocess.Process]:
        """A script that runs until Ctrl-C."""
        process = await self.start(script)
        try:
            yield process
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGINT)
            async with asyncio.timeout(60):
                output, _ = await process.communicate()
            _log.info("%s:\n%s", script, output.decode())


@pytest.mark.parametrize("options", [(), ("--webhooks",)], ids=["plain", "webhooks"])
async def test_the_commands_to_try_it_by_hand(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first thing that an author types: the example becomes ready, and the webhooks are called."""
    monkeypatch.chdir(tmp_path)
    name = f"{'checked' if options else 'plain'}-operator"
    assert main(["new", name, *options]) == 0
    project = tmp_path / name
    (serve, _), (run, _), (use, _), *denied = by_hand((project / "README.md").read_text(encoding="utf-8"))
    terminals = Terminals(project)
    async with terminals.running(serve) as server:
        async with asyncio.timeout(60):
            while not (project / "kubeconfig").exists():
                assert server.returncode is None
                await asyncio.sleep(0.05)
        async with terminals.running(run) as operator:
            code, output = await terminals.run(use)
            assert code == 0, output
            assert "pod/example-" in output
            for script, shown in denied:
                # typed in the third terminal, too
                code, output = await terminals.run(f"export KUBECONFIG=$PWD/kubeconfig\n{script}")
                assert (code, output.strip()) == (1, shown)
            assert operator.returncode is None
        assert operator.returncode in {0, 130}
    assert len(denied) == len(options)
    ignored = (project / ".gitignore").read_text(encoding="utf-8").split()
    assert {"kubeconfig", "tls.key"} <= set(ignored), "credentials are not committed"
