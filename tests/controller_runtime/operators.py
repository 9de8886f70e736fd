"""The operator as a process, and servers to run it against."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from controller_manager.servers import Server

from samples.raw_api import raw_api
from steersman.controlplane import ControlPlane
from steersman.testing import Engine

#: What both servers do by themselves.
CONTROLLERS = ("garbage-collector-controller", "namespace-controller", "serviceaccount-controller")


@asynccontextmanager
async def engine_server() -> AsyncGenerator[Server]:
    """The engine, with the few controllers that its twin has as well."""
    flags = {"kube-controller-manager": [f"--controllers={','.join(CONTROLLERS)}"]}
    async with Engine.start(controller_manager=True, flags=flags) as engine, raw_api(engine.kubeconfig) as api:
        yield Server("engine", engine.kubeconfig, api, engine.controller_manager.log_file)


@asynccontextmanager
async def embedded_server(folder: Path) -> AsyncGenerator[Server]:
    """The embedded server with controllers of its own, on a port."""
    async with ControlPlane(
        controllers=CONTROLLERS, port=0, authorizer="rbac", kubeconfig=folder / "kubeconfig"
    ) as plane:
        assert plane.kubeconfig is not None
        async with raw_api(plane.kubeconfig) as api:
            yield Server("embedded", plane.kubeconfig, api, folder / "none")


class Operator:
    """One process of the operator, in a namespace."""

    def __init__(self, program: Path, kubeconfig: Path, namespace: str, log: Path) -> None:
        self._command = [str(program), "--namespace", namespace]
        self._kubeconfig = kubeconfig
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=os.environ | {"KUBECONFIG": str(self._kubeconfig)},
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end(signal.SIGKILL)

    async def leads(self, *, within: float = 30.0) -> None:
        """Wait until it says that it leads."""
        assert self._process is not None
        assert self._process.stdout is not None
        async with asyncio.timeout(within):
            line = await self._process.stdout.readline()
        assert line == b"leading\n", f"the operator ended: {self._log.read_text()[-3000:]}"

    async def end(self, how: signal.Signals) -> None:
        """End it, and wait until it is gone."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
            await self._process.wait()
