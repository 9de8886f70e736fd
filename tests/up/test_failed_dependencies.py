"""``up`` and ``run`` with dependencies that cannot be used: a port of another program, and checks that never succeed."""

import signal
import socket
import sys
from contextlib import closing

import pytest
from up.test_up import LOOP, Place

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "shop", tmp_path / "state")


def other_program():
    """A listening socket, as another program has it, and its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    return closing(listener), listener.getsockname()[1]


def shop(port, check="exit 0"):
    """A database with a published port, and a migration that uses it."""
    return f"""\
name: shop
services:
  db:
    command: ["sh", "-c", "{LOOP}"]
    ports: [{{published: {port}}}]
    healthcheck: {{test: "{check}", interval: 100ms, retries: 2}}
  migrate:
    command: ["sh", "-c", "echo migrating; {LOOP}"]
    depends_on: {{db: {{condition: service_healthy}}}}
"""


async def test_a_migration_never_runs_against_the_program_that_has_the_port(place: Place):
    listener, port = other_program()
    with listener:
        place.write(shop(port))
        text = await place.run("up", "-d", code=1)
        assert f"db failed: port {port} at 127.0.0.1 is in use by " in text
        assert "; stop it, or change ports of service db in steersman.yaml" in text
        assert "migrate failed: it waits for db, which has failed" in text
        rows = await place.rows()
        assert [(each["state"], each["addresses"]) for each in rows.values()] == [("failed", []), ("failed", [])]
        assert rows["migrate"]["pid"] is None
        # The session keeps running: a command beside it has the same answer.
        text = await place.run("run", "migrate", code=1)
        assert f"migrate cannot start: it waits for db, which has failed (db failed: port {port}" in text
        assert "migrating" not in text + await place.run("logs", "migrate")
        await place.run("down")


async def test_in_the_foreground_dependents_start_once_the_port_is_free(place: Place):
    listener, port = other_program()
    place.write(shop(port))
    async with place.up() as session:
        with listener:
            await session.until("=> migrate failed: it waits for db, which has failed")
        text = await session.until("migrating")
        assert f"=> db is healthy at localhost:{port}" in text
        assert await session.end(signal.SIGINT) == 130


@pytest.mark.parametrize("words", [("-d",), ("--exit-code-from", "migrate"), ("--abort-on-failure",)])
async def test_ci_ends_when_a_dependency_has_used_up_its_retries(place: Place, words):
    place.write(shop(0, "exit 1").replace("    ports: [{published: 0}]\n", ""))
    text = await place.run("up", *words, code=1)
    assert "db is unhealthy: The health check fails: /bin/sh: exit code 1" in text
    assert "migrate failed: it waits for db, which is unhealthy" in text
    assert "migrating" not in text
    if words == ("-d",):
        await place.run("down")


async def test_run_ends_when_a_dependency_has_used_up_its_retries(place: Place):
    place.write(shop(0, "exit 1").replace("    ports: [{published: 0}]\n", ""))
    text = await place.run("run", "migrate", code=1)
    assert "migrate cannot start: it waits for db, which is unhealthy (db is unhealthy: The health check fails" in text


async def test_in_the_foreground_dependents_start_once_the_dependency_is_healthy(place: Place):
    place.write(shop(0, "test -e ready").replace("    ports: [{published: 0}]\n", ""))
    async with place.up() as session:
        await session.until("=> migrate failed: it waits for db, which is unhealthy")
        (place.folder / "ready").touch()
        await session.until("migrating")
        assert await session.end(signal.SIGINT) == 130


async def test_the_timeout_of_detach_includes_the_start_of_the_session(place: Place):
    place.write(shop(0).replace("    ports: [{published: 0}]\n", ""))
    """What has not started in time does not start later, unseen."""
    text = await place.run("up", "-d", "--timeout", "0.05", code=1)
    assert "has not started within 0.05 s" in text
    assert "no application is running here" in await place.run("ps")
