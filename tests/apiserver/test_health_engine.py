"""The individual health checks are those of the engine: programs request some of them by name."""

import ssl

import aiohttp
import pytest


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_the_same_checks(engine, raw, path):
    trust = ssl.create_default_context(cafile=str(engine.ca_file))
    trust.load_cert_chain(engine.admin_cert_file, engine.admin_key_file)
    connector = aiohttp.TCPConnector(ssl=trust)
    async with (
        aiohttp.ClientSession(engine.url, connector=connector) as session,
        session.get(f"{path}?verbose") as answer,
    ):
        theirs = await answer.text()
    # Some of the engine's checks come in the order of a Go map: in none.
    assert sorted((await raw.get(f"{path}?verbose")).text.decode().splitlines()) == sorted(theirs.splitlines())
