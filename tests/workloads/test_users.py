"""Programs that run as another user: identity, environment, output, probes, and their end."""

from __future__ import annotations

import asyncio
import ctypes
import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from workloads.plane import Plane, workloads_plane
from workloads.test_processes import STUBBORN, marked, until_gone, until_logged

from samples.eventually import eventually
from steersman.objects import Key
from steersman.workloads.kinds import (
    AddedProbe,
    AddedProbeSchedule,
    EnvVar,
    ExecProbe,
    Executable,
    ExecutableProbe,
    ExecutableStatus,
    HealthProbe,
    ProbeSchedule,
    ProcessAdditions,
)
from steersman.workloads.kinds.health import ProbeProgram, ProbeTemplate
from steersman.workloads.launches import LaunchError
from steersman.workloads.probes import RealProber
from steersman.workloads.processes import PersistentProcessFolder, ZygoteRunner
from steersman.workloads.users import account_of

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user"),
]
NOBODY = 65534
#: System calls that the C library does not offer.
_ADD_KEY, _KEYCTL = 248, 250
#: The version of the calls for capabilities, and the number of one.
_CAPABILITIES, _SETUID = 0x20080522, 7


@pytest.fixture
async def plane(tmp_path):
    async with (
        ZygoteRunner() as runner,
        RealProber(runner) as prober,
        workloads_plane(
            tmp_path, runner, prober=prober, ambient={"PATH": os.environ["PATH"], "HOME": "/root"}
        ) as plane,
    ):
        yield plane


async def shell(plane: Plane, folder: Path, user: str, script: str, name: str = "web", **options: object) -> None:
    env = [EnvVar(name="MARK", value=str(folder))]
    added = ProcessAdditions(user=user, **options)  # type: ignore[arg-type]
    await plane.executable(name, executable_path="sh", args=["-c", script], env=env, added=added)


def output(status: ExecutableStatus) -> list[str]:
    return [line.split(" ", 1)[1] for line in Path(status.std_out_file or "").read_text().splitlines()]


def owner_of(path: str) -> int:
    return Path(path).stat().st_uid


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("nobody", "65534 65534 nobody nobody /nonexistent"),
        ("65534", "65534 65534 nobody nobody /nonexistent"),
        ("nobody:daemon", "65534 1 nobody nobody /nonexistent"),
        ("4711:4712", "4711 4712 4711 4711 /"),
    ],
)
async def test_a_program_runs_as_its_user(plane: Plane, tmp_path, user, expected):
    """Also HOME, USER and LOGNAME, whatever the control plane has."""
    await shell(plane, tmp_path, user, "echo $(id -u) $(id -g) $USER $LOGNAME $HOME")
    assert output(await plane.until_state("web", "Finished")) == [expected]


async def test_no_privilege_of_the_control_plane_is_left(plane: Plane, tmp_path):
    """Neither its groups nor a saved uid to return to; the output can be opened by name."""
    await shell(plane, tmp_path, "nobody", "grep -E '^(Uid|Gid|Groups|CapEff)' /proc/self/status >/dev/stdout")
    lines = [line.split() for line in output(await plane.until_state("web", "Finished"))]
    assert lines == [
        ["Uid:", *["65534"] * 4],
        ["Gid:", *["65534"] * 4],
        *([["Groups:"]] if len(lines[2]) == 1 else [["Groups:", "65534"]]),
        ["CapEff:", "0" * 16],
    ]


@pytest.fixture
def inheritable() -> Iterator[int]:
    """A capability that this process passes on: the kernel keeps it when a program changes its user."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    changed = (ctypes.c_uint32 * 6)(*before)
    changed[2] |= 1 << _SETUID
    assert libc.capset(header, changed) == 0
    yield _SETUID
    assert libc.capset(header, before) == 0


async def test_no_capability_is_passed_on_to_another_user(inheritable: int, plane: Plane, tmp_path):
    """The kernel keeps inheritable ones, which files can make effective, and with some secure bits all of them."""
    await plane.executable("own", executable_path="grep", args=["CapInh", "/proc/self/status"])
    (line,) = output(await plane.until_state("own", "Finished"))
    assert int(line.split()[1], 16) & 1 << inheritable
    await shell(plane, tmp_path, "nobody", "grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status")
    assert [line.split()[1] for line in output(await plane.until_state("web", "Finished"))] == ["0" * 16] * 4


@pytest.fixture
def key() -> str:
    """The name of a key in a new session keyring of this process."""
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers of the system calls are those of x86-64")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_KEYCTL, 1, None) < 0:
        pytest.skip("this kernel or container has no keyrings")
    assert libc.syscall(_ADD_KEY, b"user", b"key-of-the-control-plane", b"secret", 6, -3) > 0
    return "key-of-the-control-plane"


async def test_keys_of_the_control_plane_stay_its_own(key: str, plane: Plane, tmp_path):
    """A process may read every key of its session keyring, also one of another user. The zygote inherits that of the test."""
    await plane.executable("own", executable_path="cat", args=["/proc/keys"])
    assert [line for line in output(await plane.until_state("own", "Finished")) if key in line]
    await shell(plane, tmp_path, "nobody", "cat /proc/keys")
    assert not [line for line in output(await plane.until_state("web", "Finished")) if key in line]


def test_supplementary_groups_are_those_of_the_account(monkeypatch):
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [gid, 27, 7] if name == "nobody" else [])
    account = account_of("nobody:4")
    assert (account.uid, account.gid, account.groups) == (NOBODY, 4, (7, 27))
    assert account.identity == "65534:4:7,27"


@pytest.mark.parametrize(
    ("user", "why"),
    [
        ("nosuchuser", "no such user."),
        ("4711", "uid 4711 has no account; name a group too, as in 4711:4711."),
        ("nobody:nosuchgroup", "no such group nosuchgroup."),
        ("nobody:", r"no such group \(empty\)."),
        ("\u00b2:1", "no such user."),
        ("nobody:\u00b2", "no such group \u00b2."),
        # To the kernel, this number means that root stays root.
        ("4294967295:4294967295", "4294967295 is more than 4294967294."),
        ("4711:4294967295", "4294967295 is more than 4294967294."),
        ("9" * 5000 + ":1", "9{20} is more than 4294967294."),
    ],
)
async def test_an_unknown_user_fails_the_start(plane: Plane, tmp_path, user, why):
    await shell(plane, tmp_path, user, "true")
    status = await plane.until_state("web", "FailedToStart")
    assert status.steersman is not None
    with pytest.raises(LaunchError, match=rf"^Cannot run as user {user} \(spec.steersman.user\): {why}$"):
        raise LaunchError(status.steersman.message)


def test_only_root_can_start_programs_of_other_users(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(
        LaunchError, match="only root can start a program as another user, and the control plane has uid"
    ):
        account_of("nobody")


def test_the_user_of_the_control_plane_needs_no_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    monkeypatch.setattr(os, "getegid", lambda: NOBODY)
    account = account_of("nobody")
    assert account.identity == ""
    assert account.variables["USER"] == "nobody"


async def test_a_link_of_the_user_in_place_of_its_working_directory_leads_nowhere_else(plane: Plane, tmp_path):
    """Root enters the folder that the file names, also one that the user cannot reach; the user must not choose it."""
    private = tmp_path / "private"
    private.mkdir()
    (private / "key").write_text("secret")
    (tmp_path / "own").symlink_to("private")
    for name, target in (("stolen", private), ("public", "/usr")):
        (tmp_path / name).symlink_to(target)
        os.chown(tmp_path / name, NOBODY, NOBODY, follow_symlinks=False)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101 - not a blocking call of pathlib
        (tmp_path / "public").rename(public := Path(folder) / "public")
        added = ProcessAdditions(user="nobody")
        for name, place in (("own", tmp_path / "own"), ("stolen", tmp_path / "stolen"), ("public", public)):
            script = ["-c", "pwd -P; cat key"]
            await plane.executable(name, executable_path="sh", args=script, working_directory=str(place), added=added)
        assert output(await plane.until_state("own", "Finished")) == [str(private), "secret"]
        assert output(await plane.until_state("public", "Finished")) == ["/usr"]
        status = await plane.until_state("stolen", "FailedToStart")
    assert "Permission denied: working directory" in (status.steersman.message or "")


#: Runs ``tty`` as nobody, as ``steersman exec`` does.
_COMMAND = """
import asyncio
from steersman.workloads import ForegroundCommand, run_in_foreground
command = ForegroundCommand(
    program="sh", args=["-c", "id -u; tty; read line; echo got $line"], env={"PATH": "/usr/bin:/bin"}, folder="/", user="65534:65534:"
)
raise SystemExit(asyncio.run(run_in_foreground(command)))
"""


async def test_a_command_of_another_user_runs_at_a_terminal_that_controls_nothing():
    """As below su -c, which makes a session without a controlling terminal."""
    master, slave = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _COMMAND), stdin=slave, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        os.write(master, b"typed\n")
        async with asyncio.timeout(60):
            out, _ = await process.communicate()
        words = out.decode().split()
        assert (process.returncode, words[0], words[2:]) == (0, "65534", ["got", "typed"])
        assert words[1] != os.ttyname(slave)
    finally:
        os.close(master)
        os.close(slave)


async def test_a_user_cannot_read_the_output_but_its_program_writes_it(plane: Plane, tmp_path):
    await shell(plane, tmp_path, "nobody", "echo hello; cat $MARK/logs/*")
    status = await plane.until_state("web", "Finished")
    assert output(status) == ["hello"]
    assert status.exit_code == 1
    assert owner_of(status.std_out_file or "") == 0


async def test_no_descendant_of_another_user_is_left(plane: Plane, tmp_path):
    """A program of another user that ignores SIGTERM, and its daemon with a session of its own, are killed."""
    await shell(plane, tmp_path, "nobody", STUBBORN, stop_timeout="300ms")
    status = await plane.until_state("web", "Running")
    await until_logged(Path(status.std_out_file or ""), "daemon")
    await until_logged(Path(status.std_out_file or ""), "ready")
    assert {owner_of(f"/proc/{pid}") for pid in marked(tmp_path)} == {NOBODY}
    await plane.client.delete(Executable, Key("", "web"))
    await plane.until_gone("web")
    assert not marked(tmp_path)


async def test_a_killed_shim_takes_a_program_of_another_user_with_it(plane: Plane, tmp_path):
    """The parent-death signal is set after the change of the user, which would reset it."""
    await shell(plane, tmp_path, "nobody", "sleep 300")
    status = await plane.until_state("web", "Running")
    os.kill(parent_of(status.pid or 0), 9)
    await plane.until_state("web", "Unknown")
    await until_gone(tmp_path)


async def test_programs_of_probes_run_as_the_user(plane: Plane, tmp_path):
    """Both those of ``spec.steersman`` and DCP's own; none runs as root with the environment of the service."""
    arguments = ["-c", 'test "$(id -un) $(id -G) $HOME" = "nobody 65534 /nonexistent"']
    own = AddedProbe(
        name="own",
        exec=ExecProbe(command=["sh", *arguments]),
        schedule=AddedProbeSchedule(interval="1s", timeout="5s"),
    )
    program = ProbeTemplate(spec=ProbeProgram(executable_path="sh", args=arguments))
    dcp = HealthProbe(
        name="dcp",
        type="Executable",
        executable_probe=ExecutableProbe(executable_template=program),
        schedule=ProbeSchedule(interval="1s", timeout="5s"),
    )
    added = ProcessAdditions(user="nobody", health_probes=[own])
    await plane.executable("web", executable_path="sleep", args=["300"], health_probes=[dcp], added=added)
    status = await plane.until("web", lambda status: len(status.health_probe_results or ()) == 2)
    assert {each.probe_name: each.outcome for each in status.health_probe_results or ()} == {
        "own": "Success",
        "dcp": "Success",
    }


async def test_probes_of_an_adopted_process_run_as_its_user(tmp_path):
    """A control plane that attaches to a persistent process has not started it: the user comes from the spec."""
    known = PersistentProcessFolder(tmp_path / "processes")
    command = ["sh", "-c", 'test "$(id -un) $PLAIN $HOME" = "nobody kept /nonexistent"']
    probe = AddedProbe(
        name="user", exec=ExecProbe(command=command), schedule=AddedProbeSchedule(interval="1s", timeout="5s")
    )
    pids: list[int | None] = []
    for _ in range(2):
        async with (
            ZygoteRunner() as runner,
            RealProber(runner) as prober,
            workloads_plane(
                tmp_path, runner, prober=prober, persistent=known, ambient={"PATH": os.environ["PATH"], "HOME": "/root"}
            ) as plane,
        ):
            await plane.executable(
                "web",
                executable_path="sleep",
                args=["300"],
                mode="persistent",
                env=[EnvVar(name="PLAIN", value="kept"), EnvVar(name="MARK", value=str(tmp_path))],
                added=ProcessAdditions(user="nobody", health_probes=[probe]),
            )
            status = await plane.until("web", lambda status: status.health_probe_results)
            assert [each.outcome for each in status.health_probe_results or ()] == ["Success"]
            pids.append(status.pid)
            if len(pids) == 2:
                await plane.stop("web")
                await plane.until_state("web", "Terminated")
    assert pids[0] == pids[1]
    await until_gone(tmp_path)


def _postgres() -> str:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    has_user = any(each.pw_name == "postgres" for each in pwd.getpwall())
    return str(folders[-1]) if folders and has_user else ""


@pytest.mark.skipif(not _postgres(), reason="needs Debian's postgresql")
async def test_postgresql_runs_as_user_postgres(plane: Plane):
    """initdb and postgres reject root; the database answers, and a fast shutdown leaves nothing behind."""
    folder = Path(tempfile.mkdtemp(prefix="steersman-postgres-", dir="/var/tmp"))
    shutil.chown(folder, "postgres", "postgres")
    binaries, data = _postgres(), str(folder / "data")
    env = [EnvVar(name="MARK", value=str(folder))]
    try:
        await plane.executable(
            "initdb",
            executable_path=f"{binaries}/initdb",
            args=["-D", data, "--no-sync", "--auth=peer"],
            env=env,
            added=ProcessAdditions(user="postgres"),
        )
        assert (await plane.until_state("initdb", "Finished")).exit_code == 0
        probe = AddedProbe(
            name="query",
            exec=ExecProbe(command=[f"{binaries}/psql", "-h", str(folder), "-c", "select 1", "postgres"]),
            schedule=AddedProbeSchedule(interval="1s", timeout="10s"),
        )
        await plane.executable(
            "db",
            executable_path=f"{binaries}/postgres",
            args=["-D", data, "-k", str(folder), "-c", "listen_addresses="],
            env=env,
            added=ProcessAdditions(user="postgres", health_probes=[probe], stop_signal="SIGINT"),
        )
        await plane.until("db", lambda status: status.health_status == "Healthy" and status.health_probe_results)
        await plane.stop("db")
        status = await plane.until_state("db", "Terminated")
        assert status.exit_code == 0
        await eventually(lambda: not marked(folder))
    finally:
        shutil.rmtree(folder)
