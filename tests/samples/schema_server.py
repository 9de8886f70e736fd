"""The judge of all schemas: a real API server, asked over one connection without storing anything."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from steersman.testing import Engine


class Server:
    """What the tests ask of the API server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self.installed: list[str] = []

    async def request(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, dict[str, Any]]:
        """Send JSON, receive code and JSON."""
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        async with self.session.request(
            method, path, data=data, params=query, headers={"Content-Type": content}
        ) as answer:
            raw = await answer.read()
            try:
                return answer.status, msgspec.json.decode(raw)
            except msgspec.DecodeError:
                return answer.status, {"message": raw.decode()}

    async def install(self, crd: dict[str, Any]) -> None:
        """Create a CRD, unless a test that runs again has done so, and wait until its kind is served."""
        if crd["metadata"]["name"] not in self.installed:
            code, answer = await self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
            assert code == 201, answer["message"]
            self.installed.append(crd["metadata"]["name"])
        for version in crd["spec"]["versions"]:
            path = collection(crd, version["name"])
            async with asyncio.timeout(60):
                # no event says that a server begins to serve a kind
                while version["served"] and (await self.request("GET", path))[0] != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

    async def verdict(self, crd: dict[str, Any], tree: dict[str, Any]) -> list[dict[str, str]]:
        """The causes for which the server refuses an object; empty if it accepts it. Nothing is stored."""
        code, answer = await self.request("POST", collection(crd, tree["apiVersion"].split("/")[1]), tree, dryRun="All")
        if code == 201:
            return []
        assert code in {400, 422}, (code, answer)
        return answer.get("details", {}).get("causes") or [{"field": "<nil>", "message": answer["message"]}]


def collection(crd: dict[str, Any], version: str) -> str:
    """The path where objects of a kind are created."""
    spec = crd["spec"]
    where = "namespaces/default/" if spec["scope"] == "Namespaced" else ""
    return f"/apis/{spec['group']}/{version}/{where}{spec['names']['plural']}"


@pytest_asyncio.fixture(scope="session")
async def server(engine: Engine) -> AsyncIterator[Server]:
    """The engine's API server, over one connection of its own."""
    async with aiohttp.ClientSession(
        base_url=engine.url,
        headers={"Authorization": f"Bearer {engine.admin_token}"},
        connector=aiohttp.TCPConnector(limit=1, ssl=ssl.create_default_context(cafile=engine.ca_file)),
    ) as session:
        server = Server(session)
        yield server
        for name in server.installed:  # matters where the cluster is not ours
            await server.request("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")


@pytest.fixture
def path_of():
    """Where objects of a CRD are created."""
    return collection
