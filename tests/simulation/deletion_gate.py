"""A webhook of the engine that stops a deletecollection between two objects."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from samples.certificates import Authority
from steersman import Client, Key, ObjectMeta, Unstructured
from steersman.kinds.admissionregistration_v1 import ValidatingWebhookConfiguration
from steersman.kinds.core_v1 import ConfigMap

_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["DELETE"]}


class DeletionGate:
    """Allows the deletion of ConfigMaps in a namespace; once armed, of one more."""

    def __init__(self, client: Client, namespace: str, folder: Path) -> None:
        self._client = client
        self._namespace = namespace
        self._authority = Authority(folder)
        self._certificate = self._authority.issue("127.0.0.1")
        self._calls = 0
        self._on_second: Callable[[], None] | None = None

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[DeletionGate]:
        """Serve during a block, from when the engine asks."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._certificate)
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=context)
        name = f"gate-{self._namespace}"
        port = server.sockets[0].getsockname()[1]
        await self._client.create(Unstructured(self._configuration(name, port)))
        try:
            await self._until_asked()
            yield self
        finally:
            await self._client.delete(ValidatingWebhookConfiguration, Key("", name))
            server.close()

    def arm(self, on_second: Callable[[], None]) -> None:
        """Call a function in place of an answer to the second deletion from now on."""
        self._calls, self._on_second = 0, on_second

    def _configuration(self, name: str, port: int) -> dict[str, object]:
        bundle = base64.b64encode(self._authority.file.read_bytes()).decode()
        webhook = {
            "name": "gate.test.steersman.dev",
            "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}},
            "rules": [_RULE],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 30,
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [webhook],
        }

    async def _until_asked(self) -> None:
        """Delete objects until the engine asks about one."""
        while not self._calls:
            meta = ObjectMeta(name="probe", namespace=self._namespace)
            probe = await self._client.create(ConfigMap(metadata=meta))
            await self._client.delete(probe)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
                review = json.loads(await reader.readexactly(int(length.partition(b":")[2])))
                self._calls += 1
                if self._on_second is not None and self._calls == 2:
                    self._on_second()
                    # The engine ends its question when it notices that its own client is gone.
                    await reader.read()
                    return
                review["response"] = {"uid": review.pop("request")["uid"], "allowed": True}
                body = json.dumps(review).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()
