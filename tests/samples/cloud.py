"""The cloud of examples/secure_storage as a process, and what a test asks it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from samples.stage import EXAMPLES


class CloudProcess:
    """``async with CloudProcess(tmp_path / "cloud.jsonl") as cloud:`` operators find it by the environment's variable."""

    variable = "SECURE_STORAGE_CLOUD"

    def __init__(self, state: Path) -> None:
        self.state = state
        self.url = ""
        self._process: asyncio.subprocess.Process | None = None
        self._begin = 0
        self._before: str | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "examples.secure_storage.cloud", "--port=0", f"--state={self.state}",
            cwd=EXAMPLES.parent, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = (await self._process.stdout.readline()).decode().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.url
        self._before = os.environ.get(self.variable)
        os.environ[self.variable] = self.url
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.communicate()
        if self._before is None:
            del os.environ[self.variable]
        else:
            os.environ[self.variable] = self._before

    async def anew(self) -> Self:
        """Fair weather, and no record of earlier calls."""
        await self.weather()
        self._begin = 0
        self._begin = len(self.journal())
        return self

    async def weather(self, **weather: float) -> None:
        """How it behaves from now on; fair, unless something is said."""
        await self._call("PUT", "/weather", weather)

    async def things(self, kind: str) -> list[dict[str, Any]]:
        """What is there of a kind."""
        made = {entry["thing"]["id"] for entry in self.journal()}
        return [thing for thing in await self._call("GET", f"/{kind}") if thing["id"] in made]

    async def create(self, kind: str, tag: str, properties: dict[str, Any]) -> dict[str, Any]:
        """Make a thing, with its tag as a token."""
        return await self._call("POST", f"/{kind}", {"tag": tag, **properties}, {"Idempotency-Key": tag})

    async def delete(self, kind: str, name: str) -> None:
        """Remove a thing, behind the operator's back."""
        await self._call("DELETE", f"/{kind}/{name}")

    def journal(self) -> list[dict[str, Any]]:
        """Every effect so far, read from the file."""
        if not self.state.exists():
            return []
        lines = [line for line in self.state.read_text().splitlines() if line.endswith("}")]
        return [json.loads(line) for line in lines[self._begin :]]

    def effects(self) -> Counter[tuple[str, str]]:
        """How often what was done with what: ``("create", "buckets")``."""
        return Counter((entry["verb"], entry["kind"]) for entry in self.journal())

    def live(self) -> dict[tuple[str, str], list[str]]:
        """The ids of what is there, by kind and tag."""
        found: dict[str, tuple[str, str]] = {}
        for entry in self.journal():
            if entry["verb"] == "delete":
                del found[entry["thing"]["id"]]
            else:
                found[entry["thing"]["id"]] = (entry["kind"], entry["thing"]["tag"])
        there: dict[tuple[str, str], list[str]] = {}
        for name, place in found.items():
            there.setdefault(place, []).append(name)
        return there

    async def _call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.url + path, json=body, headers=headers, raise_for_status=True) as answer,
        ):
            return await answer.json()
