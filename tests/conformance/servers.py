"""The servers that a run compares, and the settings that choose them.

| Environment (or option) | Meaning |
|---|---|
| ``CONFORMANCE_SUBJECT`` (``--conformance-subject``) | ``embedded`` or ``engine``: what is held against the engine |
| ``CONFORMANCE_URL`` (``--conformance-url``) | the subject is the server at this address |
| ``CONFORMANCE_KUBECONFIG`` (``--conformance-kubeconfig``) | the subject is the server of this file; with an address, who we are |
| ``CONFORMANCE_RECORD`` | only ask the engine, and save its answers to this file |
| ``CONFORMANCE_REPLAY`` | take the engine's answers from this file, and start no engine |
| ``CONFORMANCE_STEPS``, ``CONFORMANCE_SEED`` | how many random steps, and where they begin |
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import pytest
from conformance.player import Server
from yarl import URL

from samples import portions
from samples.site import Site
from steersman.client import Config, load_kubeconfig
from steersman.client.credentials.credentials import Credentials
from steersman.client.credentials.identity import credentials_for
from steersman.testing import Engine
from steersman.transport import HttpTransport, Response, SendOptions, Transport, TransportWrapper
from steersman.wire import HttpRequest

#: What a run without settings holds against the engine.
DEFAULT_SUBJECT = "embedded"

OPTIONS = {
    "--conformance-subject": "what is compared with the engine: embedded, or engine",
    "--conformance-url": "compare the server at this address with the engine",
    "--conformance-kubeconfig": "compare the server of this kubeconfig with the engine",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run."""

    subject: str
    url: str
    kubeconfig: str
    record: Path | None
    replay: Path | None
    steps: int
    seed: int | None

    @classmethod
    def read(cls, config: pytest.Config) -> Settings:
        """Read the options, then the environment."""

        def told(name: str) -> str:
            # options exist only when pytest was pointed at this folder
            given: Any = config.getoption(f"--conformance-{name}", default=None)
            return given or os.environ.get(f"CONFORMANCE_{name.upper()}", "")

        record, replay, seed = told("record"), told("replay"), told("seed")
        return cls(
            subject=told("subject") or DEFAULT_SUBJECT,
            url=told("url"),
            kubeconfig=told("kubeconfig"),
            record=Path(record) if record else None,
            replay=Path(replay) if replay else None,
            steps=int(told("steps") or portions.count(sample=60, of=300)),
            seed=int(seed) if seed else None,
        )

    @property
    def sets_gates(self) -> bool:
        """Whether the subject is started here, so that its feature gates can be chosen."""
        return not (self.url or self.kubeconfig)

    @property
    def subject_name(self) -> str:
        """What differences call the subject."""
        if self.url or self.kubeconfig:
            return "subject"
        return "engine again" if self.subject == "engine" else self.subject


class _Credentialed(TransportWrapper):
    """A transport that shows who we are."""

    def __init__(self, inner: Transport, credentials: Credentials) -> None:
        super().__init__(inner)
        self._credentials = credentials

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        shown = request.with_headers(*await self._credentials.headers())
        return await self._inner.send(shown, **options)

    async def close(self) -> None:
        await self._inner.close()


@asynccontextmanager
async def engine_server(engine: Engine, name: str = "engine") -> AsyncGenerator[Server]:
    """The engine over TLS, as its administrator."""

    async def forget() -> None:
        await engine.compact()
        # what it remembers itself goes with the process; a stop would wait for open watches
        await engine.api_servers[0].kill()
        await engine.api_servers[0].start()

    async with _reached(load_kubeconfig(engine.kubeconfig), engine.url) as transport:
        async with engine.client(field_manager="conformance") as client:
            await client.install(Site)
        can_forget = None if engine.is_existing_cluster else forget
        yield Server(name, transport, host=URL(engine.url).authority, forget=can_forget)


@asynccontextmanager
async def server_elsewhere(settings: Settings) -> AsyncGenerator[Server]:
    """A server by address or kubeconfig; what scenarios make in namespaces is deleted. It knows `samples.site.Site`."""
    config = load_kubeconfig(settings.kubeconfig) if settings.kubeconfig else Config(settings.url)
    url = settings.url or config.server
    async with _reached(config, url) as transport:
        yield Server("subject", transport, host=URL(url).authority, tidy=True)


@asynccontextmanager
async def _reached(config: Config, url: str) -> AsyncGenerator[Transport]:
    async with HttpTransport(url, tls=config.tls) as transport:
        yield _Credentialed(transport, credentials_for(config))


@asynccontextmanager
async def embedded_server(gates: Iterable[str] = ()) -> AsyncGenerator[Server]:
    """The embedded server in this process, where roles and bindings count as they do on the engine."""
    from steersman.apiserver import ApiServer
    from steersman.transport import InProcessTransport

    async with (
        ApiServer(resources=[Site], authorizer="rbac", feature_gates=dict.fromkeys(gates, True)) as server,
        InProcessTransport(server.handler) as transport,
    ):
        yield Server("embedded", transport, forget=server.forget)


@asynccontextmanager
async def gated_engine(gates: Iterable[str]) -> AsyncGenerator[Engine]:
    """An engine with feature gates on."""
    flag = ",".join(f"{gate}=true" for gate in gates)
    async with Engine.start(flags={"kube-apiserver": [f"--feature-gates={flag}"]}) as engine:
        yield engine


@asynccontextmanager
async def subject_server(
    settings: Settings, engine: Callable[[], Engine], gates: Iterable[str] = ()
) -> AsyncGenerator[Server]:
    """The server that is held against the engine."""
    if settings.url or settings.kubeconfig:
        chosen = server_elsewhere(settings)
    elif settings.subject == "embedded":
        chosen = embedded_server(gates)
    elif settings.subject == "engine":
        chosen = engine_server(engine())
    else:
        raise pytest.UsageError(f"--conformance-subject is embedded or engine, not {settings.subject}")
    async with chosen as server:
        yield replace(server, name=settings.subject_name)
