"""What a server holds, and whether that grows."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hostile.catalog import Catalog

from samples.site import GROUP
from steersman.apiserver import ApiServer
from steersman.wire import HttpRequest

_PAGE = os.sysconf("SC_PAGE_SIZE")
#: The server's own keys belong to no object: the one that signs tokens is made with the first token.
_OWN = ".server/"
#: The type of a function with `functools.lru_cache` or `functools.cache`.
_LRU = type(lru_cache(lambda: None))
#: The server has references to the series of this one.
_IN_FLIGHT = "apiserver_current_inflight_requests"


@dataclass(frozen=True)
class Held:
    """What is held at a moment; memory aside it must not be more later on. Less it may be: an earlier test's files go late."""

    tasks: int
    files: int
    #: Watches of the store, and those who wait for a change or a revision.
    watches: int
    waiting: int
    under_way: int
    bytes: int
    #: Pieces of memory that Python has in use: what is kept shows here, what is merely scattered does not.
    blocks: int

    @property
    def counted(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("tasks", "files", "watches", "waiting", "under_way")}

    def more_than(self, before: Held) -> dict[str, tuple[int, int]]:
        """What grew: how much was held before, and is now."""
        now = self.counted
        return {name: (held, now[name]) for name, held in before.counted.items() if now[name] > held}


def held_by(server: ApiServer, *, collect: bool = True) -> Held:
    """Look at a server, and at this process."""
    if collect:
        gc.collect()
    feed = server.feed
    limits = [handler for handler in server.chain if hasattr(handler, "_under_way")]
    return Held(
        tasks=len(asyncio.all_tasks()),
        files=len(list(Path("/proc/self/fd").iterdir())),
        watches=len(server.storage._watches),  # type: ignore[attr-defined]
        waiting=len(feed._fresh) + sum(len(window._waiting) for window in feed._windows.values()),
        under_way=sum(sum(each._under_way.values()) for each in limits),  # type: ignore[attr-defined]
        bytes=resident(),
        blocks=sys.getallocatedblocks(),
    )


@contextmanager
def thawed() -> Iterator[None]:
    """Has the collector list all objects: the run froze what it had imported (tests/conftest.py), caches included."""
    gc.unfreeze()
    try:
        yield
    finally:
        gc.collect()
        gc.freeze()


def forget_bounded(server: ApiServer) -> None:
    """Drop what is kept up to a bound: by caches that evict, and as series of metrics. Call it in a block `thawed`.

    Chance fills both slowly, which looks like a leak. A cache without a bound stays as it is, so that its growth shows.
    """
    for cache in [each for each in gc.get_objects() if isinstance(each, _LRU)]:
        if cache.cache_info().maxsize is not None:
            cache.cache_clear()
    re.purge()
    for metric in server.metrics.registry.collect():
        if metric.name != _IN_FLIGHT:
            for values in metric.series():
                metric.remove(*values)


def unserved_series(server: ApiServer, catalog: Catalog) -> set[tuple[str, ...]]:
    """The resources that are counted, but not served: clients could make up any number of them."""
    served = {(each.group, each.version, each.name) for each in catalog.resources}
    total = next(each for each in server.metrics.registry.collect() if each.name == "apiserver_request_total")
    places = [total.declared.labels.index(label) for label in ("group", "version", "resource")]
    return {tuple(values[at] for at in places) for values in total.series()} - served - {("", "", "")}


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


async def inconsistencies(server: ApiServer, catalog: Catalog) -> list[str]:
    """What is stored, but cannot be read, or not as it is stored."""
    wrong: list[str] = []
    prefixes = tuple(definition.prefix for definition in server.registry)
    claims, uids = {}, set()
    for record in (await server.storage.list("")).records:
        if record.key.startswith(_OWN):
            continue
        if not record.key.startswith(prefixes):
            # A place in a range of addresses or ports, and whose it is.
            claims[record.key] = record.value.decode()
            continue
        tree = json.loads(record.value)
        metadata = tree["metadata"]
        uids.add(metadata["uid"])
        parts = record.key.split("/")
        place = f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]
        if "/".join(parts[2:]) != place or not tree["kind"] or not tree["apiVersion"] or not metadata["uid"]:
            wrong.append(f"{record.key} holds {tree['kind']} {place}")
    wrong += [f"{key} belongs to {uid}, who is not there" for key, uid in claims.items() if uid not in uids]
    for served in catalog.resources:
        # ComponentStatuses are made for each answer and never stored.
        if "list" not in served.verbs or served.kind == "ComponentStatus":
            continue
        definition = server.registry.find(served.group, served.version, served.name)
        if definition is None:
            assert served.group == GROUP, f"{served.name} of {served.group} is no longer served"
            continue  # its definition was deleted
        stored = {record.key: record.modified for record in (await server.storage.list(definition.prefix)).records}
        reply = await server.handler(HttpRequest("GET", served.path("")))
        assert isinstance(reply.body, bytes)
        found = {}
        for item in json.loads(reply.body)["items"]:
            metadata = item["metadata"]
            key = definition.storage_key(metadata.get("namespace", ""), metadata["name"])
            found[key] = int(metadata["resourceVersion"])
        if found != stored:
            wrong.append(f"{served.name}: {sorted(stored.items() ^ found.items())[:5]} are listed or stored, not both")
    return wrong
