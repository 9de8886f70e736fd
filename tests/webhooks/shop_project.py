"""The project of an operator whose kind gets a second version, its replicas as processes, and its clients."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import urllib.request
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from webhooks.balancer import Balancer

from samples.ports import free_port
from steersman import Client
from steersman.cli import main
from steersman.errors import ApiError, Conflict
from steersman.objects import Kind, Unstructured

OLD, NEW = (Kind(f"shops.example.com/{version}", "Shop") for version in ("v1alpha1", "v1"))
NAMES = ("corner", "market", "kiosk")
#: What each version alone can express.
ONLY_NEW, ONLY_OLD = {"items": [{"name": "tea", "price": 3, "tax": 1}], "protected": True}, {"color": "red"}

RESOURCES = """
from steersman import Resource, Spec, Status, Struct
from shop_operator.stage import STAGE

class Item(Struct):
    name: str
    price: int
    tax: int | None = None

class ShopSpec(Spec):
    host: str
    replicas: int = 1
    items: list[Item] | None = None
    protected: bool | None = None

class OldItem(Struct):
    name: str
    price: str

class OldShopSpec(Spec):
    domain: str
    size: str | None = None
    items: list[OldItem] | None = None
    color: str | None = None

class ShopStatus(Status):
    seen: str | None = None

class OldShop(Resource[OldShopSpec, ShopStatus], group="shops.example.com", version="v1alpha1", kind="Shop",
              plural="shops", storage=STAGE < 2, served=STAGE < 4):
    "A shop, as in the first release."

if STAGE:
    class Shop(Resource[ShopSpec, ShopStatus], group="shops.example.com", version="v1", storage=STAGE >= 2):
        "A shop."
"""
OPERATOR = """
import os
from steersman import Context, Done, LeaderElection, Manager, MergePatch, Request
from steersman.webhooks import Denied, VersionConverter, WebhookEndpoint, validates
from shop_operator import resources
from shop_operator.resources import OldItem, OldShop, OldShopSpec
from shop_operator.stage import STAGE

SIZES = {"small": 1, "large": 5}

def upgraded(old):
    items = old.spec.items and [resources.Item(name=i.name, price=int(i.price)) for i in old.spec.items]
    spec = resources.ShopSpec(host=old.spec.domain, replicas=SIZES.get(old.spec.size or "", 1), items=items)
    return resources.Shop(metadata=old.metadata, spec=spec, status=old.status)

def downgraded(shop):
    items = shop.spec.items and [OldItem(name=i.name, price=str(i.price)) for i in shop.spec.items]
    size = next((name for name, replicas in SIZES.items() if replicas == shop.spec.replicas), None)
    spec = OldShopSpec(domain=shop.spec.host, size=size, items=items)
    return OldShop(metadata=shop.metadata, spec=spec, status=shop.status)

KIND = resources.Shop if STAGE >= 2 else OldShop

async def reconcile(ctx: Context, request: Request) -> Done:
    shop = await ctx.client.find(KIND, request.key)
    if shop is not None:
        seen = shop.spec.host if STAGE >= 2 else shop.spec.domain
        if shop.status is None or shop.status.seen != seen:
            await ctx.client.patch(KIND, request.key, MergePatch({"status": {"seen": seen}}), subresource="status")
    return Done()

manager = Manager(
    name="shop-operator",
    leader=LeaderElection("shop-operator", namespace="shop-operator"),
    webhook_endpoint=WebhookEndpoint(url=os.environ["HOOKS_URL"], port=int(os.environ["HOOKS_PORT"]),
                                     secret="shop-operator-webhooks-tls"),
)

@validates(KIND)
def checks(shop):
    if not (shop.spec.host if STAGE >= 2 else shop.spec.domain):
        raise Denied("a shop needs a host")

manager.controller(KIND).run_with(reconcile)
manager.add(checks)
if STAGE == 1:
    manager.add(VersionConverter(resources.Shop, OldShop, to_hub=downgraded, to_spoke=upgraded))
elif STAGE > 1:
    manager.add(VersionConverter(OldShop, resources.Shop, to_hub=upgraded, to_spoke=downgraded))
"""


class ShopProject:
    """A project of ``steersman new``, deployed with two replicas behind a balancer."""

    def __init__(self, folder: Path, kubeconfig: Path, kubectl: Path) -> None:
        self.folder = folder
        self._kubectl = kubectl
        self._ports = [free_port() for _ in range(3)]
        self._free = deque(self._ports)
        self._replicas: deque[tuple[int, asyncio.subprocess.Process]] = deque()
        self.port = free_port()
        self.balancer = Balancer(self._ports)
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "HOOKS_URL": f"https://127.0.0.1:{self.port}",
            "HOOKS_PORT": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def create(self) -> None:
        """Create the project, with our own kind and operator."""
        assert main(["new", "shop-operator", "--webhooks", "--kind", "Shop", "--group", "shops.example.com"]) == 0
        package = self.folder / "shop_operator"
        (package / "webhooks.py").unlink()
        (package / "resources.py").write_text(RESOURCES)
        (package / "operator.py").write_text(OPERATOR)

    def stage(self, number: int) -> None:
        """Write the code of a step of the move."""
        (self.folder / "shop_operator/stage.py").write_text(f"STAGE = {number}\n")

    async def run(self, command: str) -> None:
        """Run a command of a page as it is written. Processes of this machine take the place of the Deployment's Pods."""
        words = shlex.split(command, comments=True)
        if words[:3] == ["kubectl", "rollout", "status"]:
            await self.roll_out()
            return
        program = {"steersman": (sys.executable, "-m", "steersman"), "kubectl": (str(self._kubectl),)}[words[0]]
        process = await asyncio.create_subprocess_exec(
            *program,
            *words[1:],
            cwd=self.folder,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed, _ = await process.communicate()
        assert process.returncode == 0, f"{command}\n{printed.decode()}"

    async def roll_out(self) -> None:
        """Replace the replicas one after the other; each new one is ready before an old one ends."""
        old = len(self._replicas)
        for _ in range(2):
            await self._start()
            if old:
                old -= 1
                await self._stop()

    async def _start(self) -> None:
        port, health = self._free.popleft(), free_port()
        command = (sys.executable, "-m", "steersman", "run", "shop_operator.operator", "--port", str(health))
        environment = {**self._environment, "HOOKS_PORT": str(port)}
        with (self.folder / f"replica-{port}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(*command, cwd=self.folder, env=environment, stderr=log)
        self._replicas.append((port, process))
        async with asyncio.timeout(200):  # a busy machine starts a process slowly
            while not await asyncio.to_thread(_is_ready, health):
                assert process.returncode is None, "a replica has ended; see its log"
                await asyncio.sleep(0.1)

    async def _stop(self) -> None:
        port, process = self._replicas.popleft()
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()
        self._free.append(port)

    async def close(self) -> None:
        """End all replicas."""
        while self._replicas:
            await self._stop()


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def commands_of(page: str) -> Iterator[list[str]]:
    """The commands of each console block of a page."""
    for part in page.split("```console\n")[1:]:
        yield [line.strip()[2:] for line in part.split("```")[0].splitlines() if line.strip().startswith("$ ")]


class ShopWriter:
    """A client of one version that reads and replaces objects without pause, and looks for lost fields."""

    def __init__(self, client: Client, kind: Kind, own: dict[str, object]) -> None:
        self._client = client
        self._kind = kind
        self._own = own
        self._stopping = asyncio.Event()
        self.writes = 0
        #: The longest time in which all writes failed, in seconds, and the last failure.
        self.longest = 0.0
        self.failure = ""
        self.lost: list[str] = []

    async def create(self) -> None:
        """Create the objects, or add the fields that only this version has."""
        for name in NAMES:
            async with asyncio.timeout(30):
                while not await self._created(name):  # noqa: ASYNC110 - others write it, too
                    await asyncio.sleep(0.05)

    async def _created(self, name: str) -> bool:
        tree = {"apiVersion": str(self._kind.api_version), "kind": "Shop", "metadata": {"name": name}}
        try:
            found = await self._client.find(self._kind, name)
            if found is not None:
                return await self._write(name, found["spec"] | self._own)
            await self._client.create(Unstructured({**tree, "spec": {"domain": "a.example.com", **self._own}}))
        except ApiError:
            return False  # the webhooks were registered a moment ago
        return True

    def stop(self) -> None:
        """End after the current write."""
        self._stopping.set()

    async def run(self) -> None:
        """Write until stopped."""
        loop = asyncio.get_running_loop()
        failing: float | None = None
        while not self._stopping.is_set():
            for name in NAMES:
                changed = {"domain" if self._kind == OLD else "host": f"n{self.writes}.example.com"}
                if self.writes % 7 == 0:
                    changed |= {"size": "large"} if self._kind == OLD else {"replicas": 1}
                began = loop.time()
                try:
                    self.writes += await self._write(name, changed)
                    ended, failing = failing, None
                except ApiError as error:
                    self.failure = str(error)
                    ended = failing = began if failing is None else failing
                if ended is not None:
                    self.longest = max(self.longest, loop.time() - ended)
                await asyncio.sleep(0.05)  # else the faster client makes all updates of the slower one conflict

    async def _write(self, name: str, fields: dict[str, object]) -> bool:
        found = await self._client.get(self._kind, name)
        if self.writes:
            self.lost += [
                f"{name}: {field} is {found['spec'].get(field)}"
                for field, value in self._own.items()
                if found["spec"].get(field) != value
            ]
        found["spec"] = found["spec"] | fields
        try:
            await self._client.update(found)
        except Conflict:
            return False
        return True
