"""Any request to the server of a kubeconfig, as its user, and the answer as it came: for tests that compare servers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from steersman.client import load_kubeconfig
from steersman.client.credentials.credentials import Credentials
from steersman.client.credentials.identity import credentials_for
from steersman.transport import HttpTransport, Transport
from steersman.wire import HttpRequest, parse_query

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class RawAnswer(NamedTuple):
    """What a server said."""

    code: int
    headers: tuple[tuple[str, str], ...]
    body: Any

    @property
    def warnings(self) -> list[str]:
        """The texts of its warnings."""
        return [value for name, value in self.headers if name.lower() == "warning"]


class RawApi:
    """Sends requests: ``await api.send("GET", "/api/v1/namespaces?limit=1")``."""

    def __init__(self, transport: Transport, credentials: Credentials | None = None) -> None:
        self._transport = transport
        self._credentials = credentials

    async def send(
        self, method: str, target: str, body: Any = None, *, content_type: str = "application/json"
    ) -> RawAnswer:
        """Send a request, and give back whatever is answered."""
        path, _, query = target.partition("?")
        # the field manager of requests that name none
        headers = (("Accept", "application/json"), ("User-Agent", "raw/1"))
        if body is not None:
            headers = (*headers, ("Content-Type", content_type))
        text = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = HttpRequest(method, path, parse_query(query), headers, text)
        if self._credentials is not None:
            request = request.with_headers(*await self._credentials.headers())
        async with await self._transport.send(request) as response:
            answered = await response.read()
            found: Any = json.loads(answered) if answered.startswith((b"{", b"[")) else answered.decode()
            return RawAnswer(response.status, tuple(response.headers.items()), found)

    async def made(self, method: str, target: str, body: Any = None, *, content_type: str = "application/json") -> Any:
        """Send a request that has to succeed; what was answered."""
        answer = await self.send(method, target, body, content_type=content_type)
        assert answer.code < 400, f"{method} {target} was answered {answer.code}: {answer.body}"
        return answer.body


@asynccontextmanager
async def raw_api(kubeconfig: Path) -> AsyncGenerator[RawApi]:
    """The server of a kubeconfig, as the user of its current context."""
    config = load_kubeconfig(kubeconfig)
    async with HttpTransport(config.server, tls=config.tls) as transport:
        yield RawApi(transport, credentials_for(config))
