"""What the tests of engines share: looking at processes and asking the API without a client."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import aiohttp
import pytest

from steersman.testing import Engine


def _command_lines() -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
    return found


@pytest.fixture
def engine_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where engines started in this test have their folders."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def processes_of() -> Callable[[Path], dict[int, str]]:
    """The processes whose command line names something in a folder: those of the engines that live there."""

    def find(folder: Path) -> dict[int, str]:
        return {pid: line for pid, line in _command_lines().items() if f"{folder}/steersman-engine-" in line}

    return find


class Api:
    """Asks one API server, as the administrator by certificate."""

    def __init__(self, engine: Engine, number: int) -> None:
        context = ssl.create_default_context(cafile=str(engine.ca_file))
        context.load_cert_chain(engine.admin_cert_file, engine.admin_key_file)
        self._session = aiohttp.ClientSession(
            engine.api_servers[number].url, connector=aiohttp.TCPConnector(ssl=context, force_close=True)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def ask(self, method: str, path: str, body: Any = None, *, seconds: float = 30) -> tuple[int, Any]:
        timeout = aiohttp.ClientTimeout(total=seconds)
        async with self._session.request(method, path, json=body, timeout=timeout) as response:
            return response.status, await response.json(content_type=None)

    async def put_config_map(self, name: str, **data: str) -> str:
        """Create a ConfigMap in the default namespace and return its resourceVersion."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        status, answer = await self.ask("POST", "/api/v1/namespaces/default/configmaps", body)
        assert status == 201, answer
        return answer["metadata"]["resourceVersion"]

    async def config_map(self, name: str) -> dict[str, str]:
        status, answer = await self.ask("GET", f"/api/v1/namespaces/default/configmaps/{name}")
        assert status == 200, answer
        return answer["data"]


@pytest.fixture
def api() -> Callable[..., Api]:
    """Makes a plain connection to one of an engine's API servers."""

    def connect(engine: Engine, number: int = 0) -> Api:
        return Api(engine, number)

    return connect
