"""The shop of the examples: databases, three programs and a container come up with one command; edits restart little."""

import asyncio
import os
import shutil
import urllib.request
from pathlib import Path

import pytest
from up.test_up import Place

from bench.busybox_image import IMAGE, make_image, write_containers_conf
from bench.up import copy_shop
from samples.container_runtimes import needs_podman
from samples.ports import free_port

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a program as user postgres")
PROCESSES = ("db", "redis", "api", "worker", "web")
#: Seconds for an edit on a busy machine.
WITHIN = 60


async def ask(port: int, path: str = "", text: bytes | None = None) -> str:
    def get() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", data=text, timeout=20) as answer:
            return answer.read().decode()

    return await asyncio.to_thread(get)


class Shop(Place):
    """A copy of the shop with ports and a database of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "shop", folder / "state")
        self.folder.rmdir()
        self.ports = copy_shop(self.folder, free_port)
        # The database's user must be able to create its folder.
        self.data = Path("/tmp") / f"steersman-shop-{os.getpid()}"
        self.environment |= {"DATA": str(self.data), "ASSETS_IMAGE": IMAGE, **write_containers_conf(folder)}

    async def pids(self) -> dict[str, int]:
        return {name: row["pid"] for name, row in (await self.rows()).items() if name in PROCESSES}

    async def edit(self, file: str, old: str, new: str, *, restarts: set[str]) -> None:
        """Edit a file, and wait until these services run in another process; the others must go on."""
        before = await self.pids()
        path = self.folder / file
        path.write_text(path.read_text().replace(old, new))
        async with asyncio.timeout(WITHIN):
            while True:
                # Two looks: whatever else the edit restarts ends at about the same time.
                looks = [await self.pids(), await self.pids()]
                changed = {name for look in looks for name, pid in look.items() if pid != before[name]}
                assert changed <= restarts
                if looks[0] == looks[1] and changed == restarts and all(looks[0].values()):
                    return


@pytest.fixture
async def shop(tmp_path: Path):
    made = Shop(tmp_path)
    try:
        yield made
    finally:
        await made.run("down")
        shutil.rmtree(made.data, ignore_errors=True)


@needs_podman
async def test_an_order_is_packed_and_an_edit_restarts_what_depends_on_it(shop: Shop):
    make_image()
    await shop.run("up", "--detach")
    web = shop.ports["18080"]
    await ask(web, text=b"item=tea")
    async with asyncio.timeout(WITHIN):
        while "tea: packed" not in await ask(web):  # noqa: ASYNC110 - another program's work
            await asyncio.sleep(0.05)
    assert f"localhost:{shop.ports['18090']}/shop.css" in await ask(web)
    assert "font-family" in await ask(shop.ports["18090"], "shop.css")
    assert "tea" in await shop.run("exec", "api", "--", "psql", "-c", "select item from orders")
    rows = await shop.rows()
    assert {name: row["state"] for name, row in rows.items()} == {
        **dict.fromkeys((*PROCESSES, "assets"), "running"),
        **dict.fromkeys(("initdb", "schema"), "finished"),
    }
    started = rows["assets"]["since"]

    await shop.edit("worker.py", "the worker begins", "the worker begins again", restarts={"worker"})
    await shop.edit("stores.py", "timeout: float = 5.0", "timeout: float = 6.0", restarts={"api", "worker"})
    await shop.edit("steersman.yaml", "command: python3 web.py", "command: python3 -B web.py", restarts={"web"})
    assert (await shop.rows())["assets"]["since"] == started
    assert "tea: packed" in await ask(web)
