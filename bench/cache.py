"""The cache beside the bytes it holds: memory of a synced informer, and first sync beside a bare streaming list.

Memory is that of a separate process after its first sync, beyond one that only connected and read one object. It is
compared with the size of the same objects as sent by the server. First syncs and bare streaming lists alternate in one
process; the bare list reads the same stream with aiohttp and decodes only the type of each frame.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import aiohttp
import msgspec

from bench import memory
from bench.report import Bar, Figure, Report
from steersman import Client, ObjectMeta
from steersman.cache import Informer, KindOptions
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.testing import Engine

NAMESPACE = "bench"
WANTED = KindOptions(namespaces=(NAMESPACE,))
STREAM = (
    f"/api/v1/namespaces/{NAMESPACE}/configmaps?watch=true&sendInitialEvents=true"
    "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--objects", type=int, default=20_000, help="objects in the cache")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds of first sync and bare list")


def config_map(number: int) -> ConfigMap:
    """An object of about 2.7 KB with labels, an annotation and managed fields."""
    return ConfigMap(
        metadata=ObjectMeta(
            name=f"settings-{number:06d}",
            namespace=NAMESPACE,
            labels={"app": f"service-{number % 200}", "team": f"team-{number % 20}", "tier": "front"},
            annotations={"example.com/owner": f"operator-{number}"},
        ),
        data={f"key-{index}": f"{number:06d}" + "value " * 20 for index in range(14)},
    )


async def fill(client: Client, count: int, say: Callable[[str], None]) -> None:
    numbers = iter(range(count))
    started = shown = time.monotonic()

    async def worker() -> None:
        nonlocal shown
        for number in numbers:
            await client.create(config_map(number))
            if (now := time.monotonic()) - shown >= 10:
                shown = now
                left = (now - started) / (number + 1) * (count - number - 1)
                say(f"created {number + 1} of {count}, {left:.0f} s to go")

    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(worker())


def memory_now() -> tuple[int, int]:
    """The private memory of this process, and its peak resident memory."""
    gc.collect()
    return memory.private(), memory.peak()


async def process(kubeconfig: str, *, cached: bool) -> tuple[int, int]:
    """The memory of a process that connected and read one object, and caches all objects if ``cached``."""
    async with Client.connect(kubeconfig=kubeconfig, field_manager="bench") as client:
        await client.get(ConfigMap, f"{NAMESPACE}/settings-000000")
        if not cached:
            return memory_now()
        async with Informer(client, ConfigMap, options=WANTED) as informer:
            await informer.wait_synced()
            return memory_now()


def process_memory(engine: Engine, *, cached: bool) -> tuple[int, int]:
    work = f"asyncio.run(process({str(engine.kubeconfig)!r}, cached={cached}))"
    program = f"import asyncio; from bench.cache import process; print(*{work})"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    now, peak = done.stdout.split()
    return int(now), int(peak)


class _Frame(msgspec.Struct):
    type: str


async def bare_stream(session: aiohttp.ClientSession) -> int:
    """Read the stream up to the end of its initial events; returns the bytes of its objects."""
    decode = msgspec.json.Decoder(_Frame).decode
    size = 0
    pending = b""
    async with session.get(STREAM) as response:
        async for chunk in response.content.iter_any():
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                if decode(line).type == "BOOKMARK":
                    return size
                size += len(line) - len(b'{"type":"ADDED","object":}')
    raise RuntimeError("the stream ended before its initial events did")


async def first_sync(client: Client) -> None:
    async with Informer(client, ConfigMap, options=WANTED) as informer:
        await informer.wait_synced()


async def run(options: argparse.Namespace) -> Report:
    def say(text: str) -> None:
        print(f"bench cache: {text}", file=sys.stderr, flush=True)

    async with Engine.start() as engine, Client.connect(kubeconfig=engine.kubeconfig, field_manager="bench") as client:
        await client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        say(f"creating {options.objects} objects")
        await fill(client, options.objects, say)
        context = ssl.create_default_context(cafile=engine.ca_file)
        context.load_cert_chain(engine.admin_cert_file, engine.admin_key_file)
        timeout = aiohttp.ClientTimeout(total=None)
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(engine.url, connector=connector, timeout=timeout) as session:
            wire = await bare_stream(session)
            ours: list[float] = []
            bare: list[float] = []
            for number in range(options.rounds):
                say(f"first sync and bare list, round {number + 1} of {options.rounds}")
                for spent, work in ((ours, first_sync(client)), (bare, bare_stream(session))):
                    started = time.perf_counter()
                    await work
                    spent.append(time.perf_counter() - started)
        say("memory")
        (connected, lowest), (held, peak) = process_memory(engine, cached=False), process_memory(engine, cached=True)
    sync, listing = statistics.median(ours), statistics.median(bare)
    return Report(
        name="cache",
        bars=(
            Bar(name="memory of the cache / wire size", value=(held - connected) / wire, bar=1.4),
            Bar(name="first sync / bare streaming list", value=sync / listing, bar=1.5),
        ),
        figures=(
            Figure(name="objects", value=options.objects, unit=""),
            Figure(name="wire size of an object", value=wire / options.objects, unit="bytes"),
            Figure(name="wire size of all", value=wire / 1e6, unit="MB"),
            Figure(name="process, connected", value=connected / 1e6, unit="MB"),
            Figure(name="process, everything cached", value=held / 1e6, unit="MB"),
            Figure(name="peak while syncing, beyond connected", value=(peak - lowest) / 1e6, unit="MB"),
            Figure(name="first sync, median", value=sync, unit="s"),
            Figure(name="bare streaming list, median", value=listing, unit="s"),
        ),
        notes=(
            "Memory is private dirty memory of a separate process, one sample each; the peak is its largest size.",
            "The wire size includes managedFields. All objects own the same fields, of which the cache keeps one copy.",
            "If every object owned different fields, their entries would add to that.",
        ),
    )
