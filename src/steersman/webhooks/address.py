"""Webhooks at an address outside of the cluster, such as that of a laptop, for the time of one run.

Guarantees
- The certificate is valid for the host of the address. It is made for one run, and its key stays in memory.
- At the end, webhook configurations are as before, at a Service or at an address, and those that did not exist are
  deleted. A run that was killed leaves its own; the next one restores what was there before the first.
- What another program has registered in the meantime stays.
- A conversion that did not exist before stays: without one, clients of one version would remove fields of the other.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from urllib.parse import urlsplit

from steersman.client import Client, retry_on_conflict
from steersman.errors import ApiError, NotFound
from steersman.objects import Kind, Tree, Unstructured
from steersman.transport import CertificateIssuer, ServerTls
from steersman.webhooks.endpoint import WebhookEndpoint
from steersman.webhooks.registration import WebhookRegistration
from steersman.webhooks.server import Hook

_log = logging.getLogger("steersman.webhooks")

_CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
#: The annotation with what a registration object had before: its webhooks, or its conversion, as JSON.
BEFORE = "steersman.dev/registered-before"
_NOTHING = "[]"


class WebhookAddress:
    """An address at which the API server calls webhooks for one run; `webhook_address` makes it."""

    def __init__(self, client: Client, endpoint: WebhookEndpoint, ca_bundle: bytes) -> None:
        self.endpoint = endpoint
        self._client = client
        self._ca_bundle = ca_bundle
        self._taken: dict[tuple[Kind, str], list[str]] = {}

    async def take(self, hooks: Iterable[Hook], name: str) -> None:
        """Let the existing registration objects of a program name this address; note what they had."""
        registration = WebhookRegistration(hooks, self.endpoint, name=name, ca_bundle=self._ca_bundle)
        for tree in registration.configurations():
            await self._take(Kind(tree["apiVersion"], tree["kind"]), name, ["webhooks"], tree["webhooks"])
        for crd in registration.converted_kinds().values():
            await self._take(_CRD, crd, ["spec", "conversion"], registration.conversion())

    async def give_back(self) -> None:
        """Undo what `take` and the registration of this run have changed; an error for one object stops no other one."""
        failed: list[ApiError] = []
        for (kind, name), place in self._taken.items():
            try:
                with suppress(NotFound):
                    await retry_on_conflict(partial(self._give_back, kind, name, place))
            except ApiError as error:
                failed.append(error)
                _log.error(
                    "%s %s may still name %s, where nothing answers: run the command again and stop it",
                    *(kind.kind, name, self.endpoint.url),
                )
        if failed:
            raise ExceptionGroup("some webhooks are still registered at this address", failed)

    async def _take(self, kind: Kind, name: str, place: list[str], wanted: Any) -> None:
        self._taken[kind, name] = place

        def take(live: Unstructured) -> bool:
            registered = live.get(*place)
            annotations: dict[str, str] = live["metadata"].setdefault("annotations", {})
            if not _has_service(registered) and (kind == _CRD or BEFORE in annotations):
                self._warn_of_another(kind, name, _urls(registered))
                return False
            annotations[BEFORE] = json.dumps(registered)
            _set(live, place, wanted)
            return True

        try:
            await retry_on_conflict(lambda: self._change(kind, name, take))
        except NotFound:
            if kind != _CRD:
                # the note tells this run's own object from one that names another address
                metadata = {"name": name, "annotations": {BEFORE: _NOTHING}}
                tree = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "webhooks": wanted}
                await self._client.create(Unstructured(tree))

    def _warn_of_another(self, kind: Kind, name: str, urls: Iterable[str]) -> None:
        if others := [url for url in urls if not self._is_here(url)]:
            _log.warning(
                "%s %s names %s, from another run: the API server now calls this one instead",
                *(kind.kind, name, others[0]),
            )

    def _is_here(self, url: str) -> bool:
        return url.startswith(f"{self.endpoint.url}/")

    async def _change(self, kind: Kind, name: str, change: Callable[[Unstructured], bool]) -> None:
        live = await self._client.get(kind, name)
        if change(live):
            await self._client.update(live)

    async def _give_back(self, kind: Kind, name: str, place: list[str]) -> None:
        live = await self._client.get(kind, name)
        if not any(map(self._is_here, _urls(live.get(*place)))):
            return
        before = live.get("metadata", "annotations", BEFORE, default=_NOTHING)
        if before != _NOTHING:
            del live["metadata"]["annotations"][BEFORE]
            _set(live, place, json.loads(before))
            await self._client.update(live)
            _log.info("%s %s is registered as before", kind.kind, name)
        elif kind == _CRD:
            _log.warning(
                "%s %s still has its conversion at %s: run the operator again", kind.kind, name, self.endpoint.url
            )
        else:
            await self._client.delete(kind, name)
            _log.info("removed %s %s", kind.kind, name)


@asynccontextmanager
async def webhook_address(url: str, client: Client, *, host: str = "") -> AsyncGenerator[WebhookAddress]:
    """An address for one block, such as ``https://10.0.0.7:9443``; at the end, it is no longer registered.

    The port listens at ``host``, by default on loopback.
    """
    parts = urlsplit(url)
    issuer = CertificateIssuer.create()
    pair = issuer.server([parts.hostname or ""])
    with TemporaryDirectory(prefix="steersman-webhooks-") as folder:
        file = Path(folder, "ca.crt")
        await asyncio.to_thread(file.write_bytes, issuer.certificate)
        endpoint = WebhookEndpoint(
            url=url.rstrip("/"),
            port=parts.port or 443,
            host=host,
            tls=ServerTls(certificate_data=pair.certificate, key_data=pair.key),
            ca_file=str(file),
            install=True,
        )
        address = WebhookAddress(client, endpoint, issuer.certificate)
        try:
            yield address
        finally:
            await address.give_back()


def _client_configs(registered: Any) -> list[Tree]:
    """The client configurations of webhooks, or of a conversion."""
    if isinstance(registered, list):
        return [each["clientConfig"] for each in cast("list[Tree]", registered)]
    webhook: Tree = cast("Tree", registered or {}).get("webhook") or {}
    return [webhook["clientConfig"]] if "clientConfig" in webhook else []


def _has_service(registered: Any) -> bool:
    return any("service" in config for config in _client_configs(registered))


def _urls(registered: Any) -> list[str]:
    return [config.get("url", "") for config in _client_configs(registered)]


def _set(live: Unstructured, place: list[str], value: Any) -> None:
    *outer, last = place
    tree = live.tree
    for name in outer:
        tree = tree[name]
    tree[last] = value
