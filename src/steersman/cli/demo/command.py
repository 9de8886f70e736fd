"""``steersman demo``: a Kubernetes API, an operator and its objects in this process; no cluster, no containers.

Guarantees
- When the line with the kubeconfig is printed, the server answers and the operator runs.
- It shows what other clients do over the port, how the operator reacts, and why.
- It continues if the definition of its kind is deleted, and the operator resumes when the definition is back.
- The display fits the terminal, however small, even after a resize.
- Ctrl-C ends everything and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import shlex
import tempfile
import textwrap
from collections import deque
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path

from steersman.aio import Supervisor, utc_now
from steersman.apiserver import IN_PROCESS
from steersman.cache import Cache
from steersman.cli.console import show_data, tell, tell_banner
from steersman.cli.demo.demo_operator import NAME, Site, home, make_manager
from steersman.cli.demo.screen import Screen
from steersman.cli.demo.tree import tree_lines
from steersman.cli.failure import Failure
from steersman.client import Client
from steersman.controller import FAILURES, KeyRecord
from steersman.controlplane import ControlPlane, is_controller
from steersman.debug import count, duration
from steersman.kinds.core_v1 import ConfigMap, Pod, Service
from steersman.objects import Object, Tree
from steersman.schemas import crd_yaml
from steersman.telemetry import configure_logging, visible
from steersman.testing import PodRunner

_SHOWN = (Site, ConfigMap, Service, Pod)
_EVERYWHERE = frozenset({"kube-root-ca.crt", "kubernetes"})
_WRITES = {"create": "created", "update": "updated", "patch": "patched", "delete": "deleted"}
#: Seconds between two updates: faster is not readable.
_LOOK = 0.1
#: Seconds until a Pod is ready, so that the wait is visible.
_POD_DELAY = 0.7
_LINES_MAX = 10
_EXAMPLE = f"""\
apiVersion: {Site.gvk().api_version}
kind: Site
metadata: {{name: home, namespace: default}}
spec: {{title: Hello, replicas: 3}}
"""


def run_demo(*, port: int = 0) -> int:
    """Run the demo until it is stopped; returns an exit code."""
    # The screen shows what happens; log lines would break it.
    configure_logging(level="CRITICAL", form="terminal")
    try:
        with tempfile.TemporaryDirectory(prefix="steersman-demo-") as folder:
            asyncio.run(_run(Path(folder), port))
    except OSError as error:
        raise Failure(
            f"cannot serve on port {port}: {error.strerror or error}; choose another port with --port"
        ) from error
    return 0


async def _run(folder: Path, port: int) -> None:
    activity = _Activity()
    plane = ControlPlane(resources=[Site], port=port, folder=folder, audit=activity.request)
    manager = make_manager()
    manager.on_reconcile(activity.run)
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
        definition = folder / "sites-crd.yaml"
        definition.write_text(crd_yaml(Site), encoding="utf-8")
        _welcome(plane, example, definition)
        screen = stack.enter_context(Screen())
        activity.screen = screen
        tasks = await stack.enter_async_context(Supervisor())
        tasks.start(_show(screen, cache, activity, definition), name="demo: screen")
        await manager.run(client)
        tasks.cancel()
    tell("\nnext: steersman new makes an operator, steersman up starts your own application")
    tell("stopped; nothing is left behind")


def _welcome(plane: ControlPlane, example: Path, definition: Path) -> None:
    tell_banner(
        "shows an operator at work",
        [
            ("server", f"{plane.url}, in this process; objects are in memory"),
            ("operator", "makes a ConfigMap, a Service and Pods for each Site, and restores them"),
            ("stop", "Ctrl-C"),
        ],
    )
    tell("In another terminal:")
    show_data(f"export KUBECONFIG={shlex.quote(str(plane.kubeconfig))}\n")
    for line in (
        "kubectl delete pod home-1               # it comes back",
        "kubectl scale site home --replicas=5",
        "kubectl get sites,pods,services",
        "kubectl delete site home                # everything goes with it",
        f"kubectl apply -f {shlex.quote(str(example))}",
        f"kubectl apply -f {shlex.quote(str(definition))}  # if you deleted the definition of Sites",
    ):
        tell(line)
    tell()


class _Activity:
    """The latest writes and reconciles, as lines."""

    def __init__(self) -> None:
        self.lines: deque[tuple[str, str]] = deque(maxlen=_LINES_MAX)
        self.screen: Screen | None = None

    def request(self, audit_event: Tree) -> None:
        """Handle an audit event: show the writes of other clients."""
        verb, user = _WRITES.get(audit_event["verb"]), audit_event["user"].get("username", "")
        if verb is None or audit_event["stage"] != "ResponseComplete" or user == IN_PROCESS.name:
            return
        which: dict[str, str] = audit_event.get("objectRef", {})
        what = "/".join(filter(None, (which.get("resource"), which.get("name"), which.get("subresource"))))
        who = audit_event.get("userAgent", "a client").partition("/")[0]
        if is_controller(user):
            if not user.endswith(":generic-garbage-collector"):
                return  # accounts and certificates of namespaces: not of interest here
            who = "the garbage collector"
        code: int = audit_event["responseStatus"]["code"]
        self._tell(f"{who} {verb} {what}" if code < 400 else f"{who} was rejected: {verb} {what} ({code})", "strong")

    def run(self, controller: str, record: KeyRecord) -> None:
        """Handle a finished reconcile: show it if it wrote something, and why it ran."""
        if not record.writes and record.result not in FAILURES:
            return
        because = "; ".join(dict.fromkeys(_first_line(str(cause)) for cause in record.causes)) or "it was requested"
        how = f"{count(record.writes, 'write')}, {duration(record.seconds)}"
        said = f"reconciled {controller.capitalize()} {record.request.key.name} because {because}: {how}"
        failed = record.result in FAILURES
        self._tell(f"{said}; failed: {_first_line(record.last_error)}" if failed else said, "")

    def _tell(self, text: str, mood: str) -> None:
        moment: datetime = utc_now().astimezone()
        line = f"{moment:%H:%M:%S}  {visible(text)}"
        self.lines.append((line, mood))
        if self.screen is not None:
            self.screen.tell(lambda: line)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


async def _show(screen: Screen, cache: Cache, activity: _Activity, definition: Path) -> None:
    shown: list[str] = []
    while True:
        objects, missing = await _objects(cache)
        columns, rows = screen.size
        lines = [(visible(line.text(columns)), line.mood) for line in tree_lines(objects)]
        for kind in missing:
            gone = f"the definition of {kind} was deleted; restore it with kubectl apply -f {definition}"
            lines += [(part, "busy") for part in textwrap.wrap(gone, columns, break_on_hyphens=False)]
        plain = [text for text, _ in lines]
        if plain != shown and not screen.live:
            shown = plain
            screen.tell(lambda texts=plain: "\n".join(texts))
        log = [screen.painted(part, mood) for line, mood in activity.lines for part in _wrapped(line, columns)]
        texts = [screen.painted(text, mood) for text, mood in lines] or ["no objects"]
        screen.draw(fitted(texts, log, rows))
        await asyncio.sleep(_LOOK)


async def _objects(cache: Cache) -> tuple[list[Object], list[str]]:
    """The objects to show, and the kinds whose definition was deleted."""
    reader = cache.reader()
    objects: list[Object] = []
    missing: list[str] = []
    for kind in _SHOWN:
        if not cache.informer(kind).served:
            missing.append(kind.__name__)
        # Every namespace has a default ConfigMap and Service; kube-system has objects of the API server.
        visible_objects = [obj for obj in await reader.list(kind) if obj.key.namespace != "kube-system"]
        objects += [obj for obj in visible_objects if obj.key.name not in _EVERYWHERE]
    return objects, missing


def _wrapped(line: str, columns: int) -> list[str]:
    """A line of the log, wrapped to fit; continuation lines are indented below the time."""
    indent = " " * len("00:00:00  ")
    return textwrap.wrap(line, columns, subsequent_indent=indent if columns > 2 * len(indent) else "") or [""]


def fitted(objects: list[str], log: list[str], rows: int) -> list[str]:
    """The lines that fit into this many rows: the objects, then the newest log lines, at most half if both are long."""
    kept = min(len(log), max(rows // 2 - 1, rows - len(objects) - 1, 0))
    room = rows - kept - bool(kept)
    if len(objects) > room:
        objects = [*objects[: room - 1], f"... and {len(objects) - room + 1} more"]
    return [*objects, "", *log[-kept:]] if kept else objects
