"""Storage in a cloud that hands out ids of its own: whatever is killed, there is one bucket for one object, and none for none."""

from __future__ import annotations

import asyncio
import json
import random  # noqa: TID251 - a play is repeated by its seed
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import aiohttp
from crashes.plays import Part, Play
from crashes.victim import ROOT

from steersman import Object
from steersman.kinds.core_v1 import Secret

#: Seconds before a request has its effect: time to be killed in.
SLOW = 0.03


class StoragePlay(Play):
    """The cloud runs beside the operator, is never killed, and writes down every effect."""

    name = "secure_storage"
    kinds = (Secret,)
    namespace = "storages"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._state = folder / "cloud.jsonl"
        self._cloud: asyncio.subprocess.Process | None = None
        self._url = ""

    @property
    def environment(self) -> dict[str, str]:
        return {"SECURE_STORAGE_CLOUD": self._url}

    async def __aenter__(self) -> Self:
        self._cloud = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "examples.secure_storage.cloud", "--port=0", f"--state={self._state}",
            cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self._cloud.stdout is not None
        self._url = (await self._cloud.stdout.readline()).decode().strip()
        async with (
            aiohttp.ClientSession() as session,
            session.put(f"{self._url}/weather", json={"slow": SLOW}) as answer,
        ):
            assert answer.status == 200
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._cloud is not None:
            self._cloud.kill()
            await self._cloud.wait()

    @property
    def primary(self) -> type[Object]:
        return self.types.SecureStorage

    def spec(self, dice: random.Random) -> Any:
        return self.types.SecureStorageSpec(size=dice.randint(1, 100), retention=dice.randint(1, 90))

    def expected(self, name: str, spec: Any) -> Iterable[Part]:
        yield "Secret", self.namespace, name, ""

    def content(self, child: Any) -> str | None:
        return "" if child.key.namespace == self.namespace else None

    # what there is in the cloud

    def _journal(self) -> list[dict[str, Any]]:
        lines = self._state.read_text().splitlines() if self._state.exists() else []
        return [json.loads(line) for line in lines]

    def _things(self) -> list[tuple[str, dict[str, Any]]]:
        things: dict[str, tuple[str, dict[str, Any]]] = {}
        for entry in self._journal():
            if entry["verb"] == "delete":
                things.pop(entry["thing"]["id"], None)
            else:
                things[entry["thing"]["id"]] = (entry["kind"], entry["thing"])
        return list(things.values())

    def outside(self, wanted: dict[str, Any]) -> list[str]:
        """One of each for every object, as its spec says; nothing else; and nothing was ever made twice."""
        made = Counter((entry["kind"], entry["thing"]["tag"]) for entry in self._journal() if entry["verb"] == "create")
        wrong = [f"{kind} were made {count} times for {tag}" for (kind, tag), count in made.items() if count > 1]
        things = self._things()
        wrong += [f"left over in the cloud: {thing['id']}" for _, thing in things if thing["tag"] not in wanted]
        for uid, spec in wanted.items():
            found = {kind: thing for kind, thing in things if thing["tag"] == uid}
            if found.keys() != {"buckets", "keys", "policies"}:
                wrong.append(f"in the cloud for {uid}: {sorted(found)}")
                continue
            bucket, key, policy = found["buckets"], found["keys"], found["policies"]
            if bucket["size"] != spec.size or policy["retention"] != spec.retention:
                wrong.append(f"not up to date in the cloud: {uid}")
            if key["bucket"] != bucket["id"] or (policy["bucket"], policy["key"]) != (bucket["id"], key["id"]):
                wrong.append(f"ids do not fit in the cloud: {uid}")
        return wrong

    def effects_of(self, uid: str) -> list[str]:
        return [thing["id"] for _, thing in self._things() if thing["tag"] == uid]

    def figures(self) -> dict[str, int]:
        """How much was done in the cloud."""
        counted = Counter(f"cloud: {entry['verb']}" for entry in self._journal())
        last: dict[str, dict[str, Any]] = {}
        for entry in self._journal():
            thing = entry["thing"]
            counted["cloud: repeated update"] += entry["verb"] == "update" and last.get(thing["id"]) == thing
            last[thing["id"]] = thing
        return dict(counted)
