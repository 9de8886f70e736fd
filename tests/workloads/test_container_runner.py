"""The runner of containers on a real Podman, and the docker command line in front of Podman's service."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import tarfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bench.busybox_image import IMAGE
from samples.container_runtimes import (
    CREATE_ARGS,
    PODMAN_PROGRAM,
    needs_docker,
    needs_podman,
    podman,
    runtime,
    temporary_image,
)
from samples.eventually import eventually
from steersman.aio import Supervisor, name_suffix
from steersman.workloads import containers
from steersman.workloads.containers import (
    DOCKER,
    PODMAN,
    Attachment,
    CannotExecute,
    CommandLineRunner,
    ContainerFacts,
    ContainerLaunch,
    ContainerRuntimeError,
    ExecLaunch,
    ImageBuild,
    InUse,
    Mount,
    NameInUse,
    PublishedPort,
    RuntimeEvent,
    RuntimeUnavailable,
    StartupLog,
    attach_arguments,
)
from steersman.workloads.containers.command import failure
from steersman.workloads.containers.host_gateway import with_gateway
from steersman.workloads.processes import Ended, Exited, ProcessEvent, ZygoteRunner

pytestmark = needs_podman


@pytest.fixture(params=["podman", pytest.param("docker", marks=needs_docker)])
async def runner(request, tmp_path):
    async with runtime(request.param, tmp_path) as made:
        yield made


def shell(script: str, **options: object) -> ContainerLaunch:
    values = {"name": f"st-{name_suffix()}", "image": IMAGE, "command": "/bin/sh", "args": ("-c", script)}
    return ContainerLaunch(**{**values, "stop_timeout": 1.0, **options})  # type: ignore[arg-type]


async def facts_of(runner: CommandLineRunner, container: str) -> ContainerFacts:
    found = await runner.find(container)
    assert found is not None
    return found


async def output_of(runner: CommandLineRunner, container: str, folder: Path) -> tuple[str, str]:
    """What a container printed until it ended, without the times."""
    ended = asyncio.Event()

    def listener(event: ProcessEvent) -> None:
        if isinstance(event, Ended):
            ended.set()

    out, err = folder / "out", folder / "err"
    await runner.follow_output(container, str(out), str(err), listener)
    await asyncio.wait_for(ended.wait(), 60)
    return tuple("\n".join(line.partition(" ")[2] for line in file.read_text().splitlines()) for file in (out, err))


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Return when the condition holds."""
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - there is nothing to wait on
            await asyncio.sleep(0.05)


async def ended(runner: CommandLineRunner, container: str) -> ContainerFacts:
    async def is_over() -> bool:
        return (await facts_of(runner, container)).state == "exited"

    await until(is_over)
    return await facts_of(runner, container)


async def test_a_container_runs_reports_and_is_removed(runner, tmp_path):
    """Create, start, exit code and output: without them nothing else holds."""
    container = await runner.create(shell("echo to out; echo to err >&2; exit 3", labels={"color": "red"}))
    created = await facts_of(runner, container)
    assert (created.state, created.started_at) == ("created", None)
    assert created.labels["color"] == "red"
    await runner.start(container)
    over = await ended(runner, container)
    assert (over.exit_code, over.image) == (3, IMAGE)
    assert over.started_at is not None
    assert over.finished_at is not None
    assert await output_of(runner, container, tmp_path) == ("to out", "to err")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600
    await runner.remove(container)
    assert await runner.find(container) is None
    await runner.remove(container)


async def test_variables_reach_the_container_and_no_argument(runner, tmp_path, monkeypatch):
    """A value with quotes, comments or several lines arrives unchanged, and the command line does not show it."""
    env = {"PLAIN": "a b # c", "QUOTED": "\"x\" 'y' $Z", "EMPTY": "", "LINES": "one\ntwo", "PATH": "/bin:/opt"}
    seen: list[tuple[str, ...]] = []
    original = asyncio.create_subprocess_exec

    async def spy(*argv: str, **options: object):
        seen.append(argv)
        return await original(*argv, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", spy)
    script = 'for v in PLAIN QUOTED EMPTY LINES PATH; do eval "echo $v=\\$$v"; done; echo "[$LINES]"'
    container = await runner.create(shell(script, env=env))
    await runner.start(container)
    await ended(runner, container)
    out, _ = await output_of(runner, container, tmp_path)
    assert "PLAIN=a b # c\nQUOTED=\"x\" 'y' $Z\nEMPTY=\n" in out
    assert "[one\ntwo]" in out
    assert "PATH=/bin:/opt" in out
    given = " ".join(argument for argv in seen for argument in argv)
    assert "a b # c" not in given
    assert "one\ntwo" not in given


async def test_a_stop_waits_for_the_grace_period_and_then_kills(runner):
    container = await runner.create(shell("trap '' TERM; while :; do sleep 0.1; done"))
    await runner.start(container)
    await runner.stop(container, 1)
    assert (await facts_of(runner, container)).exit_code == 137


async def test_a_published_port_is_known_before_the_first_connection(runner):
    launch = shell("exec httpd -f -p 8080 -h /www", ports=(PublishedPort(container_port=8080),))
    container = await runner.create(launch)
    await runner.start(container)
    address, port = (await facts_of(runner, container)).ports[8080, "tcp"]
    assert address == "127.0.0.1"

    async def connects() -> bool:
        try:
            _, writer = await asyncio.open_connection(address, port)
        except OSError:
            return False
        writer.close()
        return True

    await until(connects)


async def test_containers_of_a_network_resolve_the_aliases_of_each_other(runner, tmp_path):
    """The second network too, which the runner connects before the start."""
    first, second = f"st-{name_suffix()}", f"st-{name_suffix()}"
    for name in (first, second):
        await runner.create_network(name, ipv6=False, labels={"color": "red"}, bound=True)
    facts = await runner.find_network(first)
    assert facts is not None
    assert facts.labels["color"] == "red"
    assert facts.subnets
    assert facts.gateways
    networks = (Attachment(first, ("web", "www")), Attachment(second, ("internal",)))
    server = await runner.create(shell("exec httpd -f -p 80 -h /etc", networks=networks))
    await runner.start(server)
    assert server in await runner.containers_in(first)
    for network, name in ((first, "web"), (first, "www"), (second, "internal")):
        script = f"for i in 1 2 3 4 5 6 7 8 9; do wget -q -O - http://{name}/hosts && exit 0; sleep 0.5; done; exit 1"
        client = await runner.create(shell(script, networks=(Attachment(network),)))
        await runner.start(client)
        assert (await ended(runner, client)).exit_code == 0, (await output_of(runner, client, tmp_path))[1]
    with pytest.raises(InUse):
        await runner.remove_network(first)
    await runner.disconnect(second, server)
    assert second not in (await facts_of(runner, server)).networks
    await runner.connect(second, server, ("again",))
    await runner.connect(second, server, ("again",))
    assert "again" in (await facts_of(runner, server)).networks[second].aliases
    with pytest.raises(NameInUse):
        await runner.create_network(first, ipv6=False, labels={}, bound=True)


async def test_a_volume_keeps_its_files_until_it_is_removed(runner):
    volume = f"st-{name_suffix()}"
    await runner.create_volume(volume, {"color": "red"}, bound=True)
    facts = await runner.find_volume(volume)
    assert facts is not None
    assert facts.labels["color"] == "red"
    mounts = (Mount(type="volume", source=volume, target="/data"),)
    writer = await runner.create(shell("echo kept > /data/file", mounts=mounts))
    await runner.start(writer)
    assert (await ended(runner, writer)).exit_code == 0
    with pytest.raises(InUse):
        await runner.remove_volume(volume)
    await runner.remove(writer)
    reader = await runner.create(shell("test x$(cat /data/file) = xkept", mounts=mounts))
    await runner.start(reader)
    assert (await ended(runner, reader)).exit_code == 0
    await runner.remove(reader)
    await runner.remove_volume(volume)
    assert await runner.find_volume(volume) is None
    await runner.remove_volume(volume)


async def test_a_folder_of_the_host_can_be_read_only(runner, tmp_path):
    (tmp_path / "file").write_text("from the host")
    mounts = (Mount(type="bind", source=str(tmp_path), target="/data", read_only=True),)
    container = await runner.create(shell("cat /data/file && ! echo x > /data/new", mounts=mounts))
    await runner.start(container)
    assert (await ended(runner, container)).exit_code == 0
    assert not (tmp_path / "new").exists()


async def test_files_are_copied_before_the_start(runner, tmp_path):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("settings/app.conf")
        entry.size, entry.mode, entry.uid, entry.gid = 5, 0o640, 7, 8
        tar.addfile(entry, io.BytesIO(b"a = 1"))
    container = await runner.create(shell("stat -c '%u %g %a' /etc/settings/app.conf; cat /etc/settings/app.conf"))
    await runner.copy(container, archive.getvalue(), "/etc")
    await runner.start(container)
    await ended(runner, container)
    assert (await output_of(runner, container, tmp_path))[0] == "7 8 640\na = 1"


async def test_a_command_inside_a_container_has_an_exit_code_and_output(runner, tmp_path):
    container = await runner.create(shell("sleep 300"))
    await runner.start(container)
    over, seen = asyncio.Event(), []

    def listener(event: ProcessEvent) -> None:
        seen.append(event)
        if isinstance(event, Ended):
            over.set()

    launch = ExecLaunch(
        container=container,
        command="/bin/sh",
        args=("-c", "echo $SECRET; exit 4"),
        env={"SECRET": "hush"},
        stdout=str(tmp_path / "out"),
        stderr=str(tmp_path / "err"),
    )
    await runner.exec(launch, listener)
    await asyncio.wait_for(over.wait(), 60)
    assert Exited(4) in seen
    assert (tmp_path / "out").read_text().rstrip().endswith(" hush")


async def test_events_name_the_container(runner):
    """Without events, the end of a container would not show."""
    seen: list[RuntimeEvent] = []
    container = await runner.create(shell("sleep 300"))

    async def listen() -> None:
        async for event in runner.events():
            seen.append(event)  # noqa: PERF401 - it never ends

    async def is_heard() -> bool:
        # The stream opens some time after its first read.
        await runner.start(container)
        await runner.stop(container, 0)
        return any(event.id == container for event in seen)

    async with Supervisor() as tasks:
        tasks.start(listen(), name="events")
        await until(is_heard)
        await runner.remove(container)
        await eventually(lambda: any(event.id == container and event.action in {"remove", "destroy"} for event in seen))
        tasks.cancel()


async def test_an_image_is_built_and_its_output_kept(runner, tmp_path):
    (tmp_path / "Dockerfile").write_text(f'FROM {IMAGE}\nARG COLOR\nRUN ["/bin/sh", "-c", "echo $COLOR > /color"]\n')
    log = StartupLog(str(tmp_path / "out"), str(tmp_path / "err"))
    with temporary_image() as tag:
        build = ImageBuild(context=str(tmp_path), tags=(tag,), args={"COLOR": "red"})
        assert not await runner.has_image(tag)
        await runner.build(build, log)
        assert await runner.has_image(tag)


async def test_a_build_secret_reaches_the_steps_that_mount_it(tmp_path):
    """Without the docker command line, which has no secrets without BuildKit."""
    (tmp_path / "token").write_text("s3cr3t")
    read = "test $(cat /run/secrets/token) = s3cr3t"
    steps = f'RUN --mount=type=secret,id=token ["/bin/sh", "-c", "{read}"]\n'
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\n{steps * 2}")
    log = StartupLog(str(tmp_path / "out"), str(tmp_path / "err"))
    with temporary_image() as tag:
        async with runtime("podman", tmp_path) as runner:
            secrets = [("token", f"src={tmp_path}/token")]
            await runner.build(ImageBuild(context=str(tmp_path), tags=(tag,), secrets=secrets), log)


async def test_errors_say_what_failed(runner, tmp_path):
    log = StartupLog(str(tmp_path / "out"), str(tmp_path / "err"))
    with pytest.raises(ContainerRuntimeError, match="localhost/missing:1"):
        await runner.pull("localhost/missing:1", log)
    assert not await runner.has_image("localhost/missing:1")
    container = await runner.create(shell("", command="/bin/missing"))
    with pytest.raises(ContainerRuntimeError, match="/bin/missing"):
        await runner.start(container)


async def test_a_runtime_that_does_not_answer_is_unavailable(tmp_path):
    async with ZygoteRunner() as processes:
        missing = CommandLineRunner(PODMAN, processes, session="s", program=(str(tmp_path / "podman"),))
        with pytest.raises(RuntimeUnavailable, match="cannot be started"):
            await missing.check()
        silent = CommandLineRunner(
            DOCKER, processes, session="s", program=("docker", "--host", f"unix://{tmp_path / 'none'}")
        )
        with pytest.raises(RuntimeUnavailable, match="Cannot connect to the Docker daemon"):
            await silent.check()


#: A control plane that makes one container of each lifetime, a network and a volume, and then waits to be killed.
_CONTROL_PLANE = """
import asyncio, sys
from steersman.workloads.containers import PODMAN, Attachment, CommandLineRunner, ContainerLaunch
from steersman.workloads.processes import ZygoteRunner

async def main(session, image, *create_args):
    async with ZygoteRunner() as processes:
        runner = CommandLineRunner(
            PODMAN, processes, session=session, program=("podman", "--runtime", "runc"), create_args=create_args
        )
        await runner.create_network(session, ipv6=False, labels={}, bound=True)
        await runner.create_volume(session, {}, bound=True)
        for name, bound in ((f"{session}-bound", True), (f"{session}-kept", False)):
            launch = ContainerLaunch(
                name=name, image=image, command="/bin/sh", args=("-c", "trap '' TERM; while :; do sleep 0.1; done"),
                bound=bound, stop_timeout=1, networks=(Attachment(session),) if bound else None,
            )
            await runner.start(await runner.create(launch))
        print(runner.reaper.pid, flush=True)
        await asyncio.sleep(300)

asyncio.run(main(*sys.argv[1:]))
"""


def of_session(session: str) -> list[str]:
    condition = ("--filter", f"name={session}", "--format")
    return sorted(
        podman("container", "ls", "--all", *condition, "{{.Names}}").split()
        + podman("network", "ls", *condition, "{{.Name}}").split()
        + podman("volume", "ls", *condition, "{{.Name}}").split()
    )


@pytest.mark.parametrize("killed", ["the control plane", "both"])
async def test_nothing_of_a_session_is_left_after_kill_9(killed, tmp_path):
    """The reaper removes it; if it was killed too, the next session does. Persistent containers survive."""
    session = f"test-{name_suffix()}"
    async with runtime("podman", tmp_path) as runner:
        plane = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _CONTROL_PLANE, session, IMAGE, *CREATE_ARGS), stdout=asyncio.subprocess.PIPE
        )
        try:
            assert plane.stdout is not None
            reaper = int(await plane.stdout.readline())
            assert of_session(session) == sorted([session, session, f"{session}-bound", f"{session}-kept"])
            if killed == "both":
                os.kill(reaper, signal.SIGKILL)
            plane.kill()
            await plane.wait()
            if killed == "both":
                # sessions of other workers harvest too: they may be first
                harvested = {name for name in await runner.harvest() if name.startswith(session)}
                assert harvested <= {session, f"{session}-bound"}
            await eventually(lambda: of_session(session) == [f"{session}-kept"], within=30)
        finally:
            if plane.returncode is None:
                plane.kill()
            await plane.wait()
            podman("rm", "--force", "--time", "0", f"{session}-kept")


async def test_a_session_that_runs_is_not_harvested(tmp_path):
    async with runtime("podman", tmp_path) as runner, runtime("podman", tmp_path) as other:
        launch = shell("sleep 300")
        container = await runner.create(launch)
        assert launch.name not in await other.harvest()
        assert await runner.find(container) is not None


def test_an_old_podman_gets_an_address_for_the_host_or_the_user_gets_advice():
    """Without root the gateway is not the host; a container in the network of the host reaches it on loopback."""
    added = ("--add-host", "host:host-gateway")
    launch = shell("true", run_args=("--hostname", "a:host-gateway", *added))
    found = with_gateway(launch, ("fd00::1", "10.89.0.1"), is_root=True)
    assert found.run_args == ["--hostname", "a:host-gateway", "--add-host", "host:10.89.0.1"]
    on_host = shell("true", run_args=("--network", "host", *added))
    assert with_gateway(on_host, (), is_root=False).run_args[-1] == "host:127.0.0.1"
    for gateways, is_root in (((), True), (("10.89.0.1",), False)):
        with pytest.raises(ContainerRuntimeError, match=r"use Podman 4\.7 or newer, or write the address"):
            with_gateway(launch, gateways, is_root=is_root)


async def lose(runner: CommandLineRunner, name: str) -> str:
    """Start a container, and let Podman forget that it runs: it is killed before it has stored that. Returns the id."""
    for _ in range(50):
        launch = ContainerLaunch(name=name, image=IMAGE, command="sleep", args=("300",), stop_timeout=0)
        identity = await runner.create(launch)
        process = await asyncio.create_subprocess_exec(
            *(*runner.program, "start", identity),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            while process.returncode is None:
                if processes(identity):
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                await asyncio.sleep(0.001)
        finally:
            await process.wait()
        # The container may still be prepared, and fail.
        await asyncio.sleep(0.5)
        facts = await runner.find(identity)
        if facts is not None and facts.state == "created" and processes(identity):
            return identity
        await runner.remove(identity)
    pytest.fail("Podman was never killed in the moment between")


def processes(container: str) -> list[int]:
    """The processes in the control group of a container."""
    pids = []
    for each in Path("/proc").glob("[0-9]*/cgroup"):
        with suppress(OSError):
            if f"/libpod-{container}" in each.read_text():
                pids.append(int(each.parent.name))
    return pids


async def test_a_process_that_podman_has_lost_ends_with_its_container(tmp_path: Path) -> None:
    """Podman removes a container without its process if it was killed while it started it."""
    async with runtime("podman", tmp_path) as runner:
        identity = await lose(runner, f"lost-{name_suffix()}")
        await runner.remove(identity)
        await eventually(lambda: not processes(identity))


async def test_the_reaper_and_the_next_session_end_processes_that_podman_has_lost(tmp_path: Path) -> None:
    """Their container is gone: only the record of the session names them. A process of another container stays."""
    record = tmp_path / "containers"
    async with runtime("podman", tmp_path) as other, ZygoteRunner() as runners:
        launch = ContainerLaunch(
            name=f"kept-{name_suffix()}", image=IMAGE, command="sleep", args=("300",), stop_timeout=0
        )
        kept = await other.create(launch)
        await other.start(kept)
        for is_reaped in (True, False):
            runner = CommandLineRunner(
                PODMAN,
                runners,
                session=f"lost-{name_suffix()}",
                program=PODMAN_PROGRAM,
                create_args=CREATE_ARGS,
                record=record,
            )
            identity = await lose(runner, f"lost-{name_suffix()}")
            podman("rm", "--force", "--time", "0", identity)
            assert processes(identity)
            assert identity in record.read_text()
            if is_reaped:
                await runner.reaper.close()
                assert not record.exists()
            else:
                os.kill(runner.reaper.pid or 0, signal.SIGKILL)
                await runner.reaper.close()
                # As steersman down does.
                later = CommandLineRunner(PODMAN, runners, session="later", program=PODMAN_PROGRAM, record=record)
                await later.harvest(is_alone=True)
                assert not record.exists()
            await eventually(lambda identity=identity: not processes(identity))
        assert processes(kept)


@pytest.mark.parametrize("line", ["podman {}\n", "{}\n"], ids=["named", "older"])
async def test_a_session_with_docker_ends_no_process_of_podman(tmp_path: Path, line: str) -> None:
    """Docker does not list the containers of Podman: they are not lost."""
    record, docker = tmp_path / "containers", tmp_path / "docker"
    docker.write_text("#!/bin/sh\n")
    docker.chmod(0o755)
    async with runtime("podman", tmp_path) as runner, ZygoteRunner() as runners:
        kept = await runner.create(shell("sleep 300", stop_timeout=0.0))
        await runner.start(kept)
        record.write_text(line.format(kept))
        other = CommandLineRunner(DOCKER, runners, session="other", program=(str(docker),), record=record)
        await other.harvest()
        assert processes(kept)
        assert record.read_text() == line.format(kept)


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (
            (
                'Error: unable to start container 1f: runc: runc create failed: unable to start container process: exec: "psq":'
                " executable file not found in $PATH: OCI runtime attempted to invoke a command that was not found"
            ),
            "psq: command not found in the container",
            127,
        ),
        (
            (
                "Error: crun: executable file `psq` not found in $PATH: No such file or directory: OCI runtime attempted to invoke"
                " a command that was not found"
            ),
            "psq: command not found in the container",
            127,
        ),
        (
            (
                "Error response from daemon: failed to create task for container: OCI runtime create failed: runc create failed:"
                ' unable to start container process: error during container init: exec: "/etc": permission denied: unknown'
            ),
            "the container cannot execute /etc: permission denied",
            126,
        ),
        (
            'Error: runc: runc create failed: unable to start container process: exec: "": executable file not found in $PATH',
            ": command not found in the container",
            127,
        ),
    ],
)
def test_a_command_that_a_container_cannot_execute_is_named(words: str, message: str, code: int) -> None:
    found = failure(("podman", "start"), 125, words)
    assert isinstance(found, CannotExecute)
    assert (str(found), found.code) == (message, code)


def test_a_program_that_the_runtime_lacks_is_no_command_of_the_container() -> None:
    words = 'Error: could not find slirp4netns: exec: "slirp4netns": executable file not found in $PATH'
    assert not isinstance(failure(("podman", "start"), 125, words), CannotExecute)


def test_a_command_that_a_build_lacks_is_a_failure_of_the_build() -> None:
    words = "Error: building at STEP: crun: executable file `foo` not found in $PATH"
    assert not isinstance(failure(("podman", "build", "."), 125, words), CannotExecute)


async def test_the_reaper_waits_for_a_runtime_that_fails(tmp_path: Path) -> None:
    """Else it would end, and the containers that it promised to remove would stay."""
    program, down, looks = tmp_path / "podman", tmp_path / "down", tmp_path / "looks"
    down.touch()
    program.write_text(f"#!/bin/sh\necho >> {looks}\n[ ! -e {down} ] || exit 125\n")
    program.chmod(0o755)
    reaper = Path(containers.__file__).with_name("reaper.py")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, reaper, "session=1", program, stdin=pipe)
    process.stdin.write(b"done\n")
    process.stdin.close()
    await eventually(lambda: looks.exists() and len(looks.read_text()) > 2)
    assert process.returncode is None
    down.unlink()
    async with asyncio.timeout(60):
        assert await process.wait() == 0


#: A program whose end its parent never learns, because a tracer does not pass it on. It writes both pids.
UNENDING = """#!{python} -IS
import ctypes, os, sys, time
libc, own = ctypes.CDLL(None), os.getpid()
libc.prctl(0x59616d61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER
if os.fork():
    time.sleep(3600)
seized = libc.ptrace(0x4206, ctypes.c_long(own), None, None)  # PTRACE_SEIZE
open("{folder}/tracer.new", "w").write(f"{{own}} {{os.getpid()}} {{seized}}")
os.rename("{folder}/tracer.new", "{folder}/tracer")
time.sleep(3600)
"""


async def test_the_reaper_waits_a_bounded_time_for_a_command_that_it_has_killed(tmp_path: Path) -> None:
    """A command in a file system that does not answer would otherwise keep the reaper for ever."""
    program = tmp_path / "podman"
    program.write_text(UNENDING.format(python=sys.executable, folder=tmp_path))
    program.chmod(0o755)
    folder = str(Path(containers.__file__).parent)
    code = (
        f"import sys, subprocess; sys.path.insert(0, {folder!r}); import reaper; reaper._AFTER_KILL = 0.5\n"
        f"try: reaper._run({str(program)!r}, within=3.0)\n"
        "except subprocess.TimeoutExpired: print('goes on')"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    pids: list[int] = []
    try:
        await eventually((tmp_path / "tracer").exists)
        *pids, seized = map(int, (tmp_path / "tracer").read_text().split())
        if seized:
            pytest.skip("this machine allows no tracing")
        async with asyncio.timeout(30):
            assert process.stdout is not None
            assert await process.stdout.readline() == b"goes on\n"
    finally:
        for pid in (*pids, process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await process.wait()


def test_no_key_of_a_user_detaches_a_terminal() -> None:
    """To Docker, an empty sequence means Ctrl-P, Ctrl-Q: it would keep each Ctrl-P until the next key."""
    assert attach_arguments("podman", "db", terminal=True)[3:5] == ("--detach-keys", "")
    assert "ctrl-p" not in attach_arguments("docker", "db", terminal=True)[4]
    assert attach_arguments("docker", "db", terminal=True)[4].count(",") > 2
    assert "--detach-keys" not in attach_arguments("docker", "db", terminal=False)


async def test_a_name_is_never_an_option(runner: CommandLineRunner):
    """``volume rm --all`` would remove the volumes of the whole machine."""
    kept = f"st-{name_suffix()}"
    await runner.create_volume(kept, {}, bound=True)
    for name in ("--all", "-f"):
        assert await runner.find_volume(name) is None
        assert await runner.find_network(name) is None
        assert await runner.find(name) is None
        await runner.remove_volume(name)
        await runner.remove_network(name)
        await runner.remove(name)
        for attempt in (
            runner.has_image(name),
            runner.create_volume(name, {}, bound=True),
            runner.create_network(name, ipv6=False, labels={}, bound=True),
            runner.create(shell("true", name=name)),
            runner.create(ContainerLaunch(name=kept, image=name, args=(IMAGE,))),
        ):
            with pytest.raises(ContainerRuntimeError, match=r"^(?!.*flag)"):
                await attempt
    assert await runner.find_volume(kept) is not None
    await runner.remove_volume(kept)
    assert await runner.find_volume(kept) is None
