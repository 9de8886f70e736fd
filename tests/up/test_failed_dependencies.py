"""``up`` and ``run`` with dependencies that cannot be used: a port of another program, and checks that never succeed."""

import os
import re
import signal
import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest
from up.test_up import LOOP, Place

from samples.ports import free_port

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
        assert f"db failed: port {port} is in use by " in text
        assert ", at 127.0.0.1; stop it, or change ports of service db in steersman.yaml" in text
        assert "migrate failed: db has failed, and it waits for db" in text
        rows = await place.rows()
        assert [(each["state"], each["addresses"]) for each in rows.values()] == [("failed", []), ("failed", [])]
        assert rows["migrate"]["pid"] is None
        # The session keeps running: a command beside it has the same answer.
        text = await place.run("run", "migrate", code=1)
        assert f"migrate cannot start: db failed: port {port} is in use by " in text
        assert "migrating" not in text + await place.run("logs", "migrate")
        await place.run("down")


async def test_a_port_of_another_session_is_explained_by_its_project_and_folder(place: Place, tmp_path: Path):
    """Its listener is a proxy, or the program of a service: neither name tells the user what to stop."""
    proxied, own = free_port(), free_port()
    serve = f"import http.server as h; h.HTTPServer(('127.0.0.1', {own}), h.BaseHTTPRequestHandler).serve_forever()"
    file = f"""\
services:
  proxied: {{command: ["sh", "-c", "{LOOP}"], ports: [{{published: {proxied}}}]}}
  own: {{command: ["{sys.executable}", "-c", "{serve}"], ports: ["{own}:{own}"], healthcheck: {{tcp: {own}, interval: 100ms}}}}
"""
    other = Place(tmp_path / "other", tmp_path / "state")
    other.write(f"name: first\n{file}")
    place.write(f"name: second\n{file}")
    await other.run("up", "-d")
    try:
        text = await place.run("up", "-d", code=1)
        session = f"the Steersman session first in {other.folder}"
        assert re.search(rf"proxied failed: port {proxied} is in use by {session}, pid \d+, at", text)
        assert re.search(rf"own failed.*: port {own} is in use by python\S*, pid \d+, of {session}, at", text)
        await place.run("down")
    finally:
        await other.run("down")


async def test_in_the_foreground_dependents_start_once_the_port_is_free(place: Place):
    listener, port = other_program()
    place.write(shop(port))
    async with place.up() as session:
        with listener:
            await session.until("=> migrate failed: db has failed, and it waits for db")
        text = await session.until("migrating")
        assert f"=> db is healthy at localhost:{port}" in text
        assert await session.end(signal.SIGINT) == 130


@pytest.mark.parametrize(
    ("command", "condition"), [("exit 3", "service_completed_successfully"), (LOOP, "service_healthy")]
)
async def test_a_service_starts_after_the_failure_of_one_that_it_does_not_require(place: Place, command, condition):
    place.write(f"""\
name: shop
services:
  seed:
    command: ["sh", "-c", "{command}"]
    healthcheck: {{test: exit 1, interval: 100ms, retries: 2}}
  web:
    command: ["sh", "-c", "echo serving; {LOOP}"]
    depends_on: {{seed: {{condition: {condition}, required: false}}}}
""")
    async with place.up() as session:
        text = await session.until("serving")
        assert "seed is unhealthy" in text or "seed failed with exit code 3" in text
        assert "web failed" not in text
        assert await session.end(signal.SIGINT) == 130


@pytest.mark.parametrize("words", [("-d",), ("--exit-code-from", "migrate"), ("--abort-on-failure",)])
async def test_ci_ends_when_a_dependency_has_used_up_its_retries(place: Place, words):
    place.write(shop(0, "exit 1").replace("    ports: [{published: 0}]\n", ""))
    text = await place.run("up", *words, code=1)
    assert "db is unhealthy: exit code 1: /bin/sh (health check)" in text
    assert "migrate failed: db is unhealthy, and it waits for db" in text
    assert "migrating" not in text
    if words == ("-d",):
        await place.run("down")


async def test_run_ends_when_a_dependency_has_used_up_its_retries(place: Place):
    place.write(shop(0, "exit 1").replace("    ports: [{published: 0}]\n", ""))
    text = await place.run("run", "migrate", code=1)
    assert "migrate cannot start: db is unhealthy: exit code 1" in text


async def test_in_the_foreground_dependents_start_once_the_dependency_is_healthy(place: Place):
    place.write(shop(0, "test -e ready").replace("    ports: [{published: 0}]\n", ""))
    async with place.up() as session:
        await session.until("=> migrate failed: db is unhealthy, and it waits for db")
        (place.folder / "ready").touch()
        await session.until("migrating")
        assert await session.end(signal.SIGINT) == 130


async def test_the_timeout_of_detach_includes_the_start_of_the_session(place: Place):
    place.write(shop(0).replace("    ports: [{published: 0}]\n", ""))
    """What has not started in time does not start later, unseen."""
    text = await place.run("up", "-d", "--timeout", "0.05", code=1)
    assert "has not started within 0.05 s" in text
    assert "no application is running here" in await place.run("ps")


async def test_the_timeout_of_detach_includes_a_session_that_reads_nothing(place: Place):
    """A process that is suspended before it reads the application must not keep the command."""
    (place.folder / "sitecustomize.py").write_text(
        "import os, signal, sys\nif '--background' in sys.orig_argv:\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    place.environment["PYTHONPATH"] = f"{place.folder}{os.pathsep}{place.environment['PYTHONPATH']}"
    # More than a pipe holds.
    place.write(f"services:\n  web: {{command: sleep 300, environment: {{BIG: {'x' * 200_000}}}}}\n")
    text = await place.run("up", "-d", "--timeout", "2", code=1)
    assert "has not started within 2 s" in text
    assert "no application is running here" in await place.run("ps")


MISTAKES = """\
name: shop
services:
  db: {command: ["sh", "-c", "sleep 0.3; echo the disk is full >&2; exit 3"]}
  web: {command: [/no/such/folder/with/a/program]}
  worker: {command: ["sh", "-c", "exit 4"]}
"""


async def test_detach_names_all_failures_with_the_reason_first(place: Place):
    """A user who learns of the first failure alone mends one mistake in each attempt."""
    place.write(MISTAKES)
    text = await place.run("up", "-d", code=1)
    report = [line.strip() for line in text[text.index("3 services have failed:") :].splitlines()]
    assert report[1:4] == [
        "db failed with exit code 3",
        "web failed to start: No such file or directory: /no/such/folder/with/a/program",
        "worker failed with exit code 4",
    ]
    assert "the disk is full" in text
    await place.run("down")


async def test_the_end_in_the_foreground_names_all_failures(place: Place):
    """The notes about them may be far above."""
    place.write(MISTAKES)
    text = await place.run("up", code=1)
    end = text[text.index("=> 3 services have failed:") :]
    assert "db failed with exit code 3" in end
    assert "No such file or directory: /no/such/folder/with/a/program" in end
    assert "worker failed with exit code 4" in end


async def test_a_program_that_goes_to_the_background_is_explained(place: Place):
    """It looks like a success that ends at once, and the user wonders where the server is."""
    program = "import os, time; os.fork() and os._exit(0); os.setsid(); time.sleep(300)"
    place.write(f'services:\n  web: {{command: ["{sys.executable}", "-c", "{program}"]}}\n')
    text = await place.run("up")
    assert "=> web finished: Ended with exit code 0 and left processes behind, which were stopped." in text
    assert "If it is a daemon, run it in the foreground, for example with its option -f or --foreground." in text


async def test_a_program_that_ends_with_its_children_is_not_explained(place: Place):
    """A program that waits for its children is no daemon."""
    place.write('services:\n  web: {command: ["sh", "-c", "sleep 0.1 & wait"]}\n')
    assert "=> web finished\n" in await place.run("up")
