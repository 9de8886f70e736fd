"""The developer control plane as a whole: what it serves, who can read its files, how it ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from workloads.plane import until_true

from steersman import Client
from steersman.errors import BadRequest, Forbidden, Invalid, Unauthorized
from steersman.objects import ObjectMeta
from steersman.workloads import DeveloperControlPlane, simulated_parts, wait_for_end
from steersman.workloads.kinds import (
    GROUP,
    KINDS,
    Executable,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableSpec,
    ExecutableTemplate,
)
from steersman.workloads.monitored_process import start_time

EXECUTABLES = f"/apis/{GROUP}/v1/executables"


def executable(name, script, **spec):
    spec = ExecutableSpec(executable_path="/bin/sh", args=["-c", script], **spec)
    return Executable(metadata=ObjectMeta(name=name), spec=spec)


async def until(client, name, state):
    async def holds():
        found = await client.get(Executable, name)
        return found.status is not None and found.status.state == state

    await until_true(holds)
    return await client.get(Executable, name)


@pytest.fixture
async def plane(tmp_path):
    async with DeveloperControlPlane(folder=tmp_path / "session", parts=simulated_parts) as plane:
        yield plane


@pytest.fixture
async def real(tmp_path):
    async with DeveloperControlPlane(folder=tmp_path / "session") as plane:
        yield plane


# what it serves


async def test_it_serves_its_kinds_and_events_alone(plane):
    core = json.loads(await plane.client.request("GET", "/api/v1"))
    groups = json.loads(await plane.client.request("GET", "/apis"))
    own = json.loads(await plane.client.request("GET", f"/apis/{GROUP}/v1"))
    assert [each["name"] for each in core["resources"]] == ["events"]
    assert sorted(each["name"] for each in groups["groups"]) == ["events.k8s.io", GROUP]
    assert {each["kind"] for each in own["resources"]} - {"Scale"} == {kind.__name__ for kind in KINDS}
    logs = [each["name"] for each in own["resources"] if each["name"].endswith("/log")]
    assert logs == ["containerexecs/log", "containers/log", "executables/log"]


async def test_an_immutable_field_is_refused_with_what_to_do(plane):
    """Rule of kinds/immutability.py, as a 422 with a cause for the field."""
    made = await plane.client.create(executable("web", "true", start=False))
    made.spec.args = ["-c", "false"]
    with pytest.raises(Invalid) as refused:
        await plane.client.update(made)
    (cause,) = refused.value.causes
    assert cause.field == "spec.args"
    assert "create another Executable" in cause.message


async def test_a_status_moves_a_start_and_a_program_runs(real):
    """State Running, with the output of a real process through the log subresource: stdout, stderr, tail, follow."""
    client = real.client
    await client.create(executable("web", "echo one; echo two; echo problem >&2; exec sleep 100"))
    await until(client, "web", "Running")

    async def output(query):
        return (await client.request("GET", f"{EXECUTABLES}/web/log?{query}")).decode()

    async def complete():
        return await output("source=stdout") == "one\ntwo\n" and await output("source=stderr") == "problem\n"

    await until_true(complete)
    assert await output("tail=1&line_numbers") == "2 two\n"
    assert "Running\n" in await output("source=system")
    with pytest.raises(BadRequest, match="source must be one of"):
        await output("source=all")
    with pytest.raises(BadRequest, match="exists for Containers alone"):
        await output("source=startup_stdout")


async def test_a_followed_log_ends_with_its_program(real):
    """Rule follow of the log subresource, over the port."""
    await real.client.create(executable("web", "for i in 1 2 3; do echo $i; sleep 0.1; done"))
    async with (
        asyncio.timeout(30),
        Client.connect(kubeconfig=real.kubeconfig) as client,
        client.stream(f"{EXECUTABLES}/web/log?follow=true") as pieces,
    ):
        assert b"".join([piece async for piece in pieces]) == b"1\n2\n3\n"


async def test_a_session_does_not_import_what_issues_its_certificates(tmp_path):
    """The package ``cryptography`` would take memory until the session ends."""
    program = """if True:
        import asyncio, sys
        from steersman.workloads import DeveloperControlPlane

        async def main():
            async with DeveloperControlPlane(folder=sys.argv[1]) as plane:
                print(plane.kubeconfig.exists(), "cryptography" in sys.modules)

        asyncio.run(main())
    """
    command = [sys.executable, "-c", program, str(tmp_path / "session")]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


# who can read it


async def test_the_server_wants_its_token_and_listens_on_loopback(plane):
    """Rule: bound to localhost, TLS, a bearer token of 32 characters."""
    assert plane.url.startswith("https://127.0.0.1:")
    config = plane.kubeconfig.read_text()
    token = config.partition("token: ")[2].split()[0]
    assert len(token) == 32
    other = plane.kubeconfig.with_name("other")
    other.write_text(config.replace(token, "x" * 32))
    async with Client.connect(kubeconfig=other) as client:
        with pytest.raises(Unauthorized):
            await client.list(Executable)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
async def test_another_user_can_read_neither_kubeconfig_nor_output_nor_state(real):
    """Tested with a second uid, in a folder whose parents are open to all."""
    await real.client.create(executable("web", "echo secret; exec sleep 100"))
    found = await until(real.client, "web", "Running")
    session = real.session
    places = [session.root, session.kubeconfig, session.logs, session.state, Path(found.status.std_out_file)]
    for parent in session.root.parents:
        if parent.stat().st_uid == os.geteuid() and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    program = """if True:
        import os, sys
        os.setuid(65534)
        for path in sys.argv[1:]:
            try:
                os.open(path, os.O_RDONLY)
            except PermissionError:
                continue
            print(path)
    """
    command = [sys.executable, "-c", program, *map(str, places)]
    ran = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    assert ran.stdout == ""
    for place in places:
        assert place.stat().st_mode & 0o077 == 0


async def test_an_open_folder_becomes_private(tmp_path):
    folder = tmp_path / "session"
    folder.mkdir(mode=0o755)
    async with DeveloperControlPlane(folder=folder, parts=simulated_parts):
        assert folder.stat().st_mode & 0o777 == 0o700


# how it ends


async def test_its_end_deletes_objects_processes_and_the_temporary_folder():
    before = asyncio.all_tasks()
    async with DeveloperControlPlane() as plane:
        await plane.client.create(executable("web", "trap '' TERM; sleep 1000 & wait"))
        found = await until(plane.client, "web", "Running")
        root, pid = plane.session.root, found.status.pid
        assert root.exists()
    assert not root.exists()
    assert start_time(pid) is None
    assert asyncio.all_tasks() == before


async def test_a_client_stops_it_over_the_admin_path(plane):
    """PATCH /admin/execution over the port, as DCP's clients do."""
    async with Client.connect(kubeconfig=plane.kubeconfig) as client:
        await client.create(executable("web", "sleep 100"))
        answer = await client.request("PATCH", "/admin/execution", body=b'{"status": "Stopping"}')
        assert json.loads(answer)["status"] == "Stopping"
        async with asyncio.timeout(60):
            await plane.stopping.wait()
        with pytest.raises(Forbidden, match="the control plane is stopping"):
            await client.create(executable("late", "true"))


@pytest.mark.parametrize("wanted", ["CleaningResources", "Stopping"])
async def test_a_set_and_its_processes_end_with_the_session_and_by_a_cleanup(plane, wanted):
    """A cleanup leaves no object; the end of the session leaves no process, and the sets end with the server."""
    template = ExecutableTemplate(spec=ExecutableSpec(executable_path="/bin/web"))
    made = ExecutableReplicaSet(metadata=ObjectMeta(name="web"), spec=ExecutableReplicaSetSpec(template=template))
    await plane.client.create(made)

    async def runs():
        return plane.parts.processes.running

    await until_true(runs)
    if wanted == "Stopping":
        await plane.shutdown.finish()
    else:
        plane.shutdown.request(wanted)

        async def complete():
            return plane.shutdown.status == "CleanupComplete"

        await until_true(complete)
    assert not plane.parts.processes.running
    assert not plane.shutdown.blocking
    assert not (await plane.client.list(Executable)).items
    left = (await plane.client.list(ExecutableReplicaSet)).items
    assert [each.deleting for each in left] == ([True] if wanted == "Stopping" else [])


async def test_a_monitored_process_is_identified_by_pid_and_start_time():
    """Rule --monitor: another process with the pid of an ended one counts as its end."""
    program = subprocess.Popen(["sleep", "100"])  # noqa: ASYNC220
    try:
        start = start_time(program.pid)
        async with asyncio.timeout(60):
            await wait_for_end(program.pid, start + 1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await wait_for_end(program.pid, start)
        program.kill()
        async with asyncio.timeout(60):
            await wait_for_end(program.pid, start)
    finally:
        program.kill()
        program.wait()


class Command:
    """``steersman dcp`` as a program."""

    def __init__(self, folder, *options):
        self.kubeconfig = folder / "kubeconfig"
        self.program = subprocess.Popen(
            [sys.executable, "-m", "steersman", "dcp", "--folder", str(folder), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self):
        return (*self.program.communicate(timeout=60), self.program.returncode)


async def test_the_command_announces_itself_and_ends_with_the_process_that_it_monitors(tmp_path):
    parent = subprocess.Popen(["sleep", "100"])  # noqa: ASYNC220
    try:
        command = Command(tmp_path / "session", "--monitor", f"{parent.pid}:{start_time(parent.pid)}")
        line = await asyncio.to_thread(command.program.stdout.readline)
        assert line == f"export KUBECONFIG={command.kubeconfig}\n"
        async with Client.connect(kubeconfig=command.kubeconfig) as client:
            await client.create(executable("web", "exec sleep 1000"))
            pid = (await until(client, "web", "Running")).status.pid
        parent.kill()
        out, err, code = await asyncio.to_thread(command.end)
    finally:
        parent.kill()
        parent.wait()
    assert (out, code) == ("", 0)
    assert f"pid {parent.pid} has ended" in err
    assert err.endswith("stopped\n")
    assert start_time(pid) is None


async def test_a_signal_ends_the_command_and_its_processes(tmp_path):
    command = Command(tmp_path / "session")
    await asyncio.to_thread(command.program.stdout.readline)
    async with Client.connect(kubeconfig=command.kubeconfig) as client:
        await client.create(executable("web", "exec sleep 1000"))
        pid = (await until(client, "web", "Running")).status.pid
    command.program.send_signal(signal.SIGTERM)
    _, err, code = await asyncio.to_thread(command.end)
    assert code == 0, err
    assert err.endswith("stopped\n")
    assert start_time(pid) is None
    assert not command.kubeconfig.exists()
