"""``steersman demo``: a Kubernetes API, an operator and its objects, in this process; no cluster, no containers.

Guarantees
- When the line with the kubeconfig is printed, the server answers and the operator runs.
- What others do over the port is shown, what the operator does about it, and why.
- Ctrl-C ends all of it and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from collections import deque
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

from steersman.aio import Supervisor, now
from steersman.apiserver.request import IN_PROCESS
from steersman.cache import Cache
from steersman.cli.demo_operator import NAME, Site, home, make_manager
from steersman.cli.failure import Failure
from steersman.cli.heading import print_heading
from steersman.cli.screen import Screen
from steersman.cli.tree import tree_lines
from steersman.client import Client
from steersman.controller import KeyRecord
from steersman.controller.records import FAILED
from steersman.controlplane import ControlPlane, is_controller
from steersman.kinds.core_v1 import ConfigMap, Pod, Service
from steersman.manager.words import count, duration
from steersman.objects import Object
from steersman.telemetry import configure_logging
from steersman.testing.pod_runner import PodRunner

_SHOWN = (Site, ConfigMap, Service, Pod)
_WRITES = {"create": "created", "update": "updated", "patch": "patched", "delete": "deleted"}
#: Seconds between two looks: quicker than that nobody reads.
_LOOK = 0.1
#: Seconds that a Pod takes to be ready, so that one can see it.
_POD_DELAY = 0.7
_TOLD = 10
_EXAMPLE = f"""\
apiVersion: {Site.gvk().api_version}
kind: Site
metadata: {{name: home, namespace: default}}
spec: {{title: Hello, replicas: 3}}
"""


def run_demo(*, port: int = 0) -> int:
    """Run the demo until it is told to stop; the result is an exit code."""
    # What happens is shown on the screen, which a log would tear.
    configure_logging(level="CRITICAL", form="terminal")
    try:
        with tempfile.TemporaryDirectory(prefix="steersman-demo-") as folder:
            asyncio.run(_run(Path(folder), port))
    except ModuleNotFoundError as error:
        if error.name != "cryptography":
            raise
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(
            f"cannot serve on port {port}: {error.strerror or error}; choose another one with --port"
        ) from error
    return 0


async def _run(folder: Path, port: int) -> None:
    told = _Told()
    plane = ControlPlane(resources=[Site], port=port, folder=folder, audit=told.request)
    manager = make_manager()
    manager.on_run(told.run)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(plane)
        client = await stack.enter_async_context(Client(plane.transport(), field_manager=NAME))
        pods = await stack.enter_async_context(Client(plane.transport(), field_manager="pod-runner"))
        await stack.enter_async_context(PodRunner(pods, delay=_POD_DELAY))
        cache = await stack.enter_async_context(Cache(client))
        for kind in _SHOWN:
            await cache.informer(kind).wait_synced()
        await client.create(home())
        example = folder / "home.yaml"
        example.write_text(_EXAMPLE, encoding="utf-8")
        _welcome(plane, example)
        screen = stack.enter_context(Screen())
        told.screen = screen
        tasks = await stack.enter_async_context(Supervisor())
        tasks.start(_show(screen, cache, told), name="demo: screen")
        await manager.run(client)
        tasks.cancel()
    print("\nstopped; nothing is left behind", file=sys.stderr)


def _welcome(plane: ControlPlane, example: Path) -> None:
    print_heading(
        "shows an operator at work",
        [
            ("server", f"{plane.url}, in this process; objects are in memory"),
            ("operator", "a Site becomes a ConfigMap, a Service and Pods, and stays so"),
            ("stop", "Ctrl-C"),
        ],
    )
    print("In another terminal:", file=sys.stderr, flush=True)
    print(f"export KUBECONFIG={shlex.quote(str(plane.kubeconfig))}", flush=True)
    for line in (
        "kubectl delete pod home-1               # it comes back",
        "kubectl scale site home --replicas=5",
        "kubectl get sites,pods,services",
        "kubectl delete site home                # all of it goes",
        f"kubectl apply -f {shlex.quote(str(example))}",
    ):
        print(line, file=sys.stderr)
    print(file=sys.stderr, flush=True)


class _Told:
    """What happened, the last of it, in words."""

    def __init__(self) -> None:
        self.lines: deque[tuple[str, str]] = deque(maxlen=_TOLD)
        self.screen: Screen | None = None

    def request(self, event: dict[str, Any]) -> None:
        """An audit event: what others wrote is told."""
        verb = _WRITES.get(event["verb"])
        if verb is None or event["stage"] != "ResponseComplete" or event["user"]["username"] == IN_PROCESS.name:
            return
        which: dict[str, str] = event.get("objectRef", {})
        what = "/".join(filter(None, (which.get("resource"), which.get("name"), which.get("subresource"))))
        who = event.get("userAgent", "somebody").partition("/")[0]
        if is_controller(event["user"]["username"]):
            if not event["user"]["username"].endswith(":generic-garbage-collector"):
                return  # accounts and certificates of namespaces: not what one looks for here
            who = "the garbage collector"
        code: int = event["responseStatus"]["code"]
        self._tell(f"{who} {verb} {what}" if code < 400 else f"{who} was refused: {verb} {what} ({code})", "strong")

    def run(self, controller: str, record: KeyRecord) -> None:
        """A reconcile that wrote something is told, and why it ran."""
        if not record.writes and record.result not in FAILED:
            return
        because = "; ".join(dict.fromkeys(_first_line(str(cause)) for cause in record.causes)) or "it was asked to"
        how = f"{count(record.writes, 'write')}, {duration(record.seconds)}"
        said = f"reconciled {controller.capitalize()} {record.request.key.name} because {because}: {how}"
        failed = record.result in FAILED
        self._tell(f"{said}; failed: {_first_line(record.last_error)}" if failed else said, "")

    def _tell(self, text: str, mood: str) -> None:
        moment: datetime = now().astimezone()
        line = f"{moment:%H:%M:%S}  {text}"
        self.lines.append((line, mood))
        if self.screen is not None:
            self.screen.tell(lambda: line)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


async def _show(screen: Screen, cache: Cache, told: _Told) -> None:
    reader = cache.reader()
    shown: list[str] = []
    while True:
        objects: list[Object] = [each for kind in _SHOWN for each in await reader.list(kind)]
        # Every namespace has its own.
        objects = [each for each in objects if each.key.name not in {"kube-root-ca.crt", "kubernetes"}]
        columns, rows = screen.size
        lines = tree_lines(objects)
        texts = [screen.painted(line.text(columns), line.mood) for line in lines] or ["no objects"]
        plain = [line.text(columns) for line in lines]
        if plain != shown and not screen.live:
            shown = plain
            screen.tell(lambda texts=plain: "\n".join(texts))
        log = [screen.painted(line[:columns], mood) for line, mood in told.lines]
        room = max(rows - len(log) - 1, 3)
        screen.draw([*texts[:room], "", *log])
        await asyncio.sleep(_LOOK)
