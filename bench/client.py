"""The client beside bare aiohttp + msgspec: CPU per request, decoding of lists, import times.

Everything is measured as CPU time of this process (the API server has its own), in alternating rounds. A ratio is the
quotient of the sums over all rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.bare_kinds import write_bare_module
from bench.pods import pod_list
from bench.report import Bar, Figure, Report
from bench.twins import Twins
from steersman import Client, ObjectMeta
from steersman.client.bindings import bind_class
from steersman.client.stages.server_reads import decode_list
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import ConfigMap, Container, Namespace, Pod, PodSpec, PodTemplateSpec
from steersman.kinds.meta_v1 import LabelSelector
from steersman.testing import Engine
from steersman.wire import key_of, split_list

MANAGER = "bench"
Operation = Callable[[int], Awaitable[None]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=7, help="alternating rounds of each operation")
    parser.add_argument("--requests", type=int, default=200, help="requests per round")
    parser.add_argument("--pods", type=int, default=10_000, help="pods in the decoded list")


async def cpu_of(operation: Operation, first: int, count: int, *, concurrency: int = 8) -> float:
    """CPU seconds of this process while ``operation`` runs for each number, a few at a time."""
    numbers = iter(range(first, first + count))

    async def worker() -> None:
        for number in numbers:
            await operation(number)

    started = time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())
    return time.process_time() - started


async def alternate(ours: Operation, bare: Operation, options: argparse.Namespace) -> tuple[float, float]:
    """Microseconds of CPU per operation: ours and bare."""
    spent = {"ours": 0.0, "bare": 0.0}
    for number in range(options.rounds + 1):
        first = number * options.requests
        for name, operation in (("ours", ours), ("bare", bare)) if number % 2 else (("bare", bare), ("ours", ours)):
            seconds = await cpu_of(operation, first, options.requests)
            if number:  # round 0 warms up connections and decoders
                spent[name] += seconds
    scale = 1e6 / (options.rounds * options.requests)
    return spent["ours"] * scale, spent["bare"] * scale


class Bare:
    """A careful program without Steersman: one aiohttp session, prepared decoders and encoders."""

    def __init__(self, engine: Engine, session: aiohttp.ClientSession) -> None:
        self.engine = engine
        self.session = session
        twins = Twins()
        self.pod = msgspec.json.Decoder(twins.of(Pod))
        self.config_map = msgspec.json.Decoder(twins.of(ConfigMap))
        self.deployment = msgspec.json.Decoder(twins.of(Deployment))
        self.encode = msgspec.json.Encoder().encode

        frame = msgspec.defstruct("Frame", [("type", str), ("object", twins.of(ConfigMap))])
        self.frame = msgspec.json.Decoder(frame)
        self.twin = twins.of


def deployment(number: int) -> Deployment:
    labels = {"app": f"site-{number}"}
    return Deployment(
        metadata=ObjectMeta(name=f"site-{number}", namespace="bench", labels=labels),
        spec=DeploymentSpec(
            replicas=2,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels),
                spec=PodSpec(containers=[Container(name="web", image="nginx:1.27")]),
            ),
        ),
    )


def config_map(prefix: str, number: int) -> ConfigMap:
    return ConfigMap(
        metadata=ObjectMeta(name=f"{prefix}-{number}", namespace="bench", labels={"bench": prefix}),
        data={f"key-{n}": "value " * 8 for n in range(12)},
    )


async def measure_get(client: Client, bare: Bare, options: argparse.Namespace) -> tuple[float, float]:
    pod = msgspec.json.decode(pod_list(1))["items"][0]
    for name in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "ownerReferences", "generation"):
        pod["metadata"].pop(name, None)
    pod["metadata"] |= {"name": "one", "namespace": "bench"}
    pod.pop("status", None)
    pod["spec"].pop("nodeName", None)
    pod["spec"].pop("serviceAccountName", None)
    await client.request(
        "POST", "/api/v1/namespaces/bench/pods", body=msgspec.json.encode(pod | {"apiVersion": "v1", "kind": "Pod"})
    )

    async def ours(_: int) -> None:
        await client.get(Pod, "bench/one")

    async def theirs(_: int) -> None:
        async with bare.session.get("/api/v1/namespaces/bench/pods/one") as response:
            bare.pod.decode(await response.read())

    return await alternate(ours, theirs, options)


async def measure_create(client: Client, bare: Bare, options: argparse.Namespace) -> tuple[float, float]:
    twin, meta = bare.twin(ConfigMap), bare.twin(ObjectMeta)

    async def ours(number: int) -> None:
        await client.create(config_map("ours", number))

    async def theirs(number: int) -> None:
        obj = twin(
            api_version="v1",
            kind="ConfigMap",
            metadata=meta(name=f"bare-{number}", namespace="bench", labels={"bench": "bare"}),
            data={f"key-{n}": "value " * 8 for n in range(12)},
        )
        url = f"/api/v1/namespaces/bench/configmaps?fieldManager={MANAGER}"
        headers = {"Content-Type": "application/json"}
        async with bare.session.post(url, data=bare.encode(obj), headers=headers) as response:
            bare.config_map.decode(await response.read())
            assert response.status == 201

    return await alternate(ours, theirs, options)


async def measure_apply(client: Client, bare: Bare, options: argparse.Namespace) -> tuple[float, float]:
    of = bare.twin

    async def ours(number: int) -> None:
        await client.apply(deployment(number % 50), force=True)

    async def theirs(number: int) -> None:
        name = f"site-{number % 50}"
        labels = {"app": name}
        obj = of(Deployment)(
            api_version="apps/v1",
            kind="Deployment",
            metadata=of(ObjectMeta)(name=name, namespace="bench", labels=labels),
            spec=of(DeploymentSpec)(
                replicas=2,
                selector=of(LabelSelector)(match_labels=labels),
                template=of(PodTemplateSpec)(
                    metadata=of(ObjectMeta)(labels=labels),
                    spec=of(PodSpec)(containers=[of(Container)(name="web", image="nginx:1.27")]),
                ),
            ),
        )
        url = f"/apis/apps/v1/namespaces/bench/deployments/{name}?fieldManager={MANAGER}&force=true"
        headers = {"Content-Type": "application/apply-patch+yaml"}
        async with bare.session.patch(url, data=bare.encode(obj), headers=headers) as response:
            bare.deployment.decode(await response.read())
            assert response.status in {200, 201}

    return await alternate(ours, theirs, options)


async def read_ours(client: Client, start: str, count: int) -> None:
    async with client.watch(ConfigMap, namespace="bench", resource_version=start) as events:
        for _ in range(count):
            await anext(events)


async def read_bare(bare: Bare, start: str, count: int) -> None:
    url = f"/api/v1/namespaces/bench/configmaps?watch=true&resourceVersion={start}"
    async with bare.session.get(url) as response:
        seen, pending = 0, b""
        while seen < count:
            *lines, pending = (pending + await response.content.readany()).split(b"\n")
            for line in lines:
                bare.frame.decode(line)
            seen += len(lines)


async def measure_watch(client: Client, bare: Bare, options: argparse.Namespace) -> tuple[float, float]:
    """Read the same stored events repeatedly: a watch from an old version replays them without waiting."""
    start = (await client.metadata.list(ConfigMap, namespace="bench")).resource_version
    count = 1000
    for number in range(count):
        await client.create(config_map("watched", number))
    spent = {"ours": 0.0, "bare": 0.0}
    for number in range(options.rounds + 1):
        for name in ("ours", "bare") if number % 2 else ("bare", "ours"):
            began = time.process_time()
            await (read_ours(client, start, count) if name == "ours" else read_bare(bare, start, count))
            if number:
                spent[name] += time.process_time() - began
    scale = 1e6 / (options.rounds * count)
    return spent["ours"] * scale, spent["bare"] * scale


def measure_decoding(options: argparse.Namespace) -> dict[str, float]:
    """CPU seconds for a list of pods: bare typed, raw bytes with keys, typed with bytes kept."""
    body = pod_list(options.pods)
    twins = Twins()

    decoder = msgspec.json.Decoder(msgspec.defstruct("PodList", [("items", list[twins.of(Pod)])]))
    binding = bind_class(Pod)
    variants: dict[str, Callable[[], Any]] = {
        "bare": lambda: decoder.decode(body),
        "keys": lambda: [(key_of(raw), raw) for raw in split_list(body).items],
        "typed": lambda: decode_list(binding, split_list(body)),
    }
    spent: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(max(3, options.rounds)):
        for name, decode in variants.items():
            began = time.process_time()
            held = decode()
            spent[name].append(time.process_time() - began)
            del held
    return {name: statistics.median(seconds) for name, seconds in spent.items()}


def import_seconds(statements: dict[str, str], rounds: int = 15) -> dict[str, float]:
    """The minimum CPU time of each statement in fresh interpreters, in turns: noise only ever adds."""

    def once(code: str) -> float:
        measured = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
        done = subprocess.run([sys.executable, "-c", measured], check=True, capture_output=True, text=True)
        return float(done.stdout)

    least = dict.fromkeys(statements, float("inf"))
    for _ in range(rounds):
        for name, statement in statements.items():
            least[name] = min(least[name], once(statement))
    return least


async def run(options: argparse.Namespace) -> Report:
    bars: list[Bar] = []
    figures: list[Figure] = []

    def say(text: str) -> None:
        print(f"bench client: {text}", file=sys.stderr, flush=True)

    async with Engine.start() as engine, Client.connect(kubeconfig=engine.kubeconfig, field_manager=MANAGER) as client:
        await client.create(Namespace(metadata=ObjectMeta(name="bench")))
        context = ssl.create_default_context(cafile=engine.ca_file)
        context.load_cert_chain(engine.admin_cert_file, engine.admin_key_file)
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(engine.url, connector=connector) as session:
            bare = Bare(engine, session)
            measurements = {
                "get": measure_get,
                "create": measure_create,
                "apply": measure_apply,
                "watch event": measure_watch,
            }
            for name, measure in measurements.items():
                say(f"{name}: {options.rounds} alternating rounds")
                ours, theirs = await measure(client, bare, options)
                figures += [
                    Figure(name=f"CPU per {name}, steersman", value=ours, unit="us"),
                    Figure(name=f"CPU per {name}, bare", value=theirs, unit="us"),
                ]
                bars.append(Bar(name=f"CPU per {name} / bare", value=ours / theirs, bar=1.5))
    say(f"decoding {options.pods} pods")
    decoded = measure_decoding(options)
    figures += [
        Figure(name=f"decode {options.pods} pods, {name}", value=s * 1e3, unit="ms") for name, s in decoded.items()
    ]
    bars.append(Bar(name="decode pods to raw + key / bare typed", value=decoded["keys"] / decoded["bare"], bar=0.6))
    bars.append(
        Bar(name="decode pods typed, bytes kept / bare typed", value=decoded["typed"] / decoded["bare"], bar=1.4)
    )
    say("imports")
    measured_imports(bars, figures)
    return Report(
        name="client",
        bars=tuple(bars),
        figures=tuple(figures),
        notes=(
            "CPU of the client process only; requests 8 at a time over TLS with a client certificate.",
            "Lists: both sides run with Python's cyclic collector enabled; ours pauses it to decode a page.",
        ),
    )


def measured_imports(bars: list[Bar], figures: list[Figure]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        module = write_bare_module(Path(folder), "steersman.kinds.apps_v1")
        seconds = import_seconds(
            {
                "aiohttp and msgspec": "import aiohttp, msgspec",
                "steersman": "import steersman",
                "steersman, Client and Resource used": "from steersman import Client, Resource",
                "msgspec": "import msgspec",
                "steersman.objects": "import steersman.objects",
                "kinds.apps_v1": "import steersman.kinds.apps_v1",
                "bare structs of kinds.apps_v1": f"import sys; sys.path.insert(0, {folder!r}); import {module.stem}",
            }
        )
    seconds["kinds.apps_v1"] -= seconds["steersman.objects"]
    seconds["bare structs of kinds.apps_v1"] -= seconds["msgspec"]
    figures += [Figure(name=f"import {name}", value=value * 1e3, unit="ms") for name, value in seconds.items()]
    for ours, bare, bar in (
        ("steersman", "aiohttp and msgspec", 1.3),
        ("steersman, Client and Resource used", "aiohttp and msgspec", 1.3),
        ("kinds.apps_v1", "bare structs of kinds.apps_v1", 2.0),
    ):
        bars.append(Bar(name=f"import {ours} / {bare}", value=seconds[ours] / seconds[bare], bar=bar))
