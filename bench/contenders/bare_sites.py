"""Only the writes of the converge benchmark, with aiohttp: the limit for a Python program on this engine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
from typing import Any

import aiohttp

WORKERS = 16


async def write(session: aiohttp.ClientSession, site: dict[str, Any]) -> None:
    metadata, spec = site["metadata"], site["spec"]
    namespace, name = metadata["namespace"], metadata["name"]
    owner = {
        "apiVersion": site["apiVersion"],
        "kind": site["kind"],
        "name": name,
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    page = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "data": {
            "image": spec["image"],
            "replicas": str(spec["replicas"]),
            "index.html": f"<h1>{spec['message']}</h1>",
        },
    }
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}?fieldManager=sites&force=true"
    await patch(session, path, "application/apply-patch+yaml", page)
    status = {"observedGeneration": metadata["generation"], "readyReplicas": spec["replicas"]}
    path = f"/apis/bench.example.com/v1/namespaces/{namespace}/sites/{name}/status"
    await patch(session, path, "application/merge-patch+json", {"status": status})


async def patch(session: aiohttp.ClientSession, path: str, media_type: str, body: dict[str, Any]) -> None:
    async with session.patch(path, data=json.dumps(body), headers={"Content-Type": media_type}) as response:
        answer = await response.text()
        if not response.ok:
            raise RuntimeError(f"PATCH {path}: {response.status} {answer}")


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=os.environ["BENCH_CA"]), limit=WORKERS)
    headers = {"Authorization": f"Bearer {os.environ['BENCH_TOKEN']}"}
    async with aiohttp.ClientSession(os.environ["BENCH_SERVER"], connector=connector, headers=headers) as session:
        async with session.get("/apis/bench.example.com/v1/sites?resourceVersion=0") as response:
            sites = iter((await response.json())["items"])

        async def worker() -> None:
            for site in sites:
                await write(session, site)

        await asyncio.gather(*(worker() for _ in range(WORKERS)))
        await stop.wait()


asyncio.run(main())
