"""The registry of ports: outside the ephemeral range, remembered, never given twice, and holders are named."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from steersman.workloads.monitored_process import start_time
from steersman.workloads.ports import LocalPorts
from steersman.workloads.ports.listeners import ephemeral_range, listening_sockets
from steersman.workloads.session import state_home

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ports are looked up on Linux alone")


async def test_a_port_is_outside_the_ephemeral_range_and_stays(tmp_path):
    """Rule: allocate outside the ephemeral range; remembered per project."""
    file = tmp_path / "state" / "ports.json"
    first = LocalPorts("shop", file)
    port = await first.allocate("service/web")
    low, high = ephemeral_range()
    assert port >= 10_000
    assert not low <= port <= high
    assert await first.allocate("service/web") == port
    first.release("service/web")
    assert await first.allocate("service/web") == port
    assert await LocalPorts("shop", file).allocate("service/web") == port
    assert file.stat().st_mode & 0o777 == 0o600


async def test_keys_and_projects_get_different_ports(tmp_path):
    file = tmp_path / "ports.json"
    ports = [
        await LocalPorts(project, file).allocate(key) for project in ("shop", "blog") for key in ("web", "api", "db")
    ]
    assert len(set(ports)) == len(ports)


async def test_a_remembered_port_that_another_process_took_is_replaced(tmp_path):
    file = tmp_path / "ports.json"
    port = await LocalPorts("shop", file).allocate("web")
    with socket.create_server(("127.0.0.1", port)):
        other = await LocalPorts("shop", file).allocate("web")
        assert other != port
    assert await LocalPorts("shop", file).allocate("web") == other


async def test_the_port_of_a_running_control_plane_is_not_given_away(tmp_path):
    """Two control planes of a user never choose the same port, also before the first one listens."""
    file = tmp_path / "ports.json"
    port = await LocalPorts("shop", file).allocate("web")
    claims = msgspec.json.decode(file.read_bytes())
    parent = os.getppid()
    claims[0].update(pid=parent, start=start_time(parent), key="another")
    claims.append({**claims[0], "key": "web", "pid": 1, "start": 1})
    file.write_bytes(msgspec.json.encode(claims))
    assert await LocalPorts("shop", file).allocate("web") != port


async def test_a_damaged_registry_costs_only_the_memory(tmp_path, caplog):
    file = tmp_path / "ports.json"
    port = await LocalPorts("shop", file).allocate("web")
    file.write_text("{")
    assert await LocalPorts("shop", file).allocate("web") == port
    assert "is damaged" in caplog.text


@pytest.mark.parametrize(("address", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_the_process_that_holds_a_port_is_named(tmp_path, address, family):
    with socket.create_server((address, 0), family=family) as server:
        port = server.getsockname()[1]
        found = LocalPorts("shop", tmp_path / "ports.json").holder(address, port)
        assert found is not None
        assert found.endswith(f", pid {os.getpid()}")
        assert LocalPorts("shop", tmp_path / "ports.json").holder(address, port, other=True) is None
        assert (address, port) in {(each.address, each.port) for each in listening_sockets()}
    assert LocalPorts("shop", tmp_path / "ports.json").holder(address, port) is None


async def test_a_registry_that_cannot_be_used_does_not_keep_a_service_from_its_port():
    ports = LocalPorts("shop", Path("/dev/null/ports.json"))
    first, second = await ports.allocate("a"), await ports.allocate("b")
    assert first != second
    assert await ports.allocate("a") == first


def test_the_registry_is_in_the_state_folder_of_the_user(monkeypatch, tmp_path):
    """The home folder may not be writable."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    asyncio.run(LocalPorts("shop").allocate("a"))
    assert (tmp_path / "steersman" / "ports.json").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the name of a process is that of Linux")
def test_the_name_of_the_process_at_a_port_is_harmless(tmp_path):
    """The process may belong to another user, and the name reaches terminals and objects."""
    name = "\x1b]0;x\x07\n=> ok\u2028"
    script = (
        "import ctypes, socket, sys\n"
        f"ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "print(server.getsockname()[1], flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        found = LocalPorts("shop", tmp_path / "ports.json").holder("127.0.0.1", int(process.stdout.readline()))
        process.stdin.close()
    assert found == f"\\x1b]0;x\\x07\\n=> ok\\u2028, pid {process.pid}"


@pytest.mark.parametrize("exists", [True, False])
async def test_a_link_in_place_of_the_registry_is_not_followed(tmp_path, exists):
    """Otherwise a user who can write to the folder could overwrite or create any file of this user."""
    target = tmp_path / "target"
    if exists:
        target.write_text("")
    (tmp_path / "ports.json").symlink_to(target)
    assert await LocalPorts("shop", tmp_path / "ports.json").allocate("web")
    assert (target.read_text() if target.exists() else None) == ("" if exists else None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_a_registry_of_another_user_is_not_used(tmp_path):
    file = tmp_path / "ports.json"
    file.write_text("")
    os.chown(file, 65534, 65534)
    assert await LocalPorts("shop", file).allocate("web")
    assert file.read_text() == ""


async def test_the_registry_and_its_new_parents_are_private(tmp_path):
    """Also with a umask that lets every user write, and a file that an earlier version left readable."""
    file = tmp_path / "new" / "steersman" / "ports.json"
    mask = os.umask(0)
    try:
        await LocalPorts("shop", file).allocate("web")
        file.chmod(0o666)
        await LocalPorts("shop", file).allocate("web")
    finally:
        os.umask(mask)
    modes = [each.stat().st_mode & 0o777 for each in (file, file.parent, file.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_root_keeps_its_state_out_of_the_home_of_another_user(tmp_path):
    """``sudo`` may keep HOME: the user could not use the folders that root makes there."""
    home = pwd.getpwuid(0).pw_dir
    assert state_home({"HOME": str(tmp_path)}) == tmp_path / ".local/state/steersman"
    os.chown(tmp_path, 65534, 65534)
    assert state_home({"HOME": str(tmp_path)}) == Path(home) / ".local/state/steersman"
    assert state_home({"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "steersman"
