"""What the examples use of the machine, on paper: child processes, and the cloud of secure_storage.

Both belong to the outside of the operator: what they hold is compared, and each call of the cloud can meet a fault.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import examples.secure_storage.outside

from steersman import Manager
from steersman.patterns import ServiceRefused
from steersman.simulation import ExternalSystem

#: Seconds that a long program runs.
LONG = 1000.0

machine = ExternalSystem("machine")
cloud = ExternalSystem("cloud")


class ChildProcess:
    """A process on paper: ``sleep`` takes long, ``false`` fails, and any other program ends soon and well.

    Its pid follows from its program, since a comparison would see another one.
    """

    def __init__(self, argv: tuple[str, ...]) -> None:
        self.returncode: int | None = None
        self.pid = 1000 + sum(map(ord, " ".join(argv)))
        self._code = 1 if argv[0] == "false" else 0
        self._over = asyncio.Event()
        asyncio.get_running_loop().call_later(LONG if argv[0] == "sleep" else 0.5, self.end, self._code)

    def end(self, code: int) -> None:
        """End it, unless it has ended."""
        if self.returncode is None:
            self.returncode = code
            self._over.set()

    def kill(self) -> None:
        self.end(-9)

    async def wait(self) -> int:
        await self._over.wait()
        assert self.returncode is not None
        return self.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        await self._over.wait()
        return b"done\n", b""


def with_processes(setup: Callable[[], Manager], *, compared: bool = False) -> Callable[[], Manager]:
    """A setup whose operator starts processes on paper, and whether their starts are compared.

    Only runs call it, and each ends with its process.
    """

    def made() -> Manager:
        children: list[ChildProcess] = []

        async def create(*argv: str, **_: Any) -> ChildProcess:
            if compared:
                machine.add(list(argv))
            children.append(child := ChildProcess(argv))
            return child

        def kill_group(pid: int, number: int) -> None:
            for child in children:
                if child.pid == pid:
                    child.end(-number)

        asyncio.create_subprocess_exec = create  # type: ignore[assignment]
        os.killpg = kill_group  # type: ignore[assignment]
        return setup()

    return made


# the cloud


async def call(method: str, path: str, *, tag: str = "", body: dict[str, Any] | None = None) -> Any:
    """As `examples.secure_storage.outside.call`, by the rules of its cloud."""
    kind, _, rest = path.strip("/").partition("?")[0].partition("/")
    wanted = path.partition("?tag=")[2]

    def effect() -> Any:
        mine = {id_: thing for id_, thing in cloud.objects.items() if thing["kind"] == kind}
        if method == "GET":
            return [{**thing, "id": id_} for id_, thing in mine.items() if thing["tag"] == wanted]
        if method == "POST":
            known = next((id_ for id_, thing in mine.items() if thing["tag"] == tag), "")
            # As long as the object exists, its token makes no second one.
            id_ = known or cloud.add({**(body or {}), "kind": kind}, f"{kind}-{tag}")
            return {**cloud.objects[id_], "id": id_}
        if rest not in mine:
            raise ServiceRefused(f"there is no {path} (404)")
        if method == "DELETE":
            if any(rest in thing.values() for thing in cloud.objects.values()):
                raise ServiceRefused(f"{rest} is in use (409)")
            del cloud.objects[rest]
            return {}
        cloud.objects[rest] = {**mine[rest], **(body or {})}
        return {**cloud.objects[rest], "id": rest}

    return await cloud.call(method.lower(), kind, effect)


def with_cloud(make: Callable[[], Manager]) -> Callable[[], Manager]:
    """A setup whose operator calls the cloud on paper."""

    def made() -> Manager:
        examples.secure_storage.outside.call = call
        return make()

    return made
