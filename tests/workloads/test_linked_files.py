"""Files behind symbolic links of other users, which root must not read for them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from steersman.workloads.containers.archive import InvalidFiles, archive
from steersman.workloads.containers.build_secrets import opened_secrets
from steersman.workloads.containers.command import run
from steersman.workloads.containers.runner import ContainerRuntimeError, ImageBuild
from steersman.workloads.kinds import CreateFileSystem
from steersman.workloads.kinds.container_image import FileSystemEntry
from steersman.workloads.launches import LaunchError, read_env_files
from steersman.workloads.linked_files import open_readable

OTHER = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes links of another user")
IN_A_USER_NAMESPACE = ("unshare", "--user")
needs_user_namespaces = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*IN_A_USER_NAMESPACE, "true"], check=False).returncode != 0,
    reason="needs unshare, and a kernel that makes user namespaces",
)


def read(path: Path) -> bytes:
    with open(open_readable(path), "rb") as file:  # noqa: PTH123 - a descriptor
        return file.read()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users can enter, which those of pytest do not allow."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def secret(shared: Path) -> Path:
    """A file of root in a folder of root that others can enter."""
    made = shared / "admin" / "secret.env"
    made.parent.mkdir(mode=0o755)
    made.write_text("TOKEN=secret\n")
    made.chmod(0o600)
    return made


def link(path: Path, target: Path | str) -> Path:
    path.symlink_to(target)
    os.chown(path, OTHER, OTHER, follow_symlinks=False)
    return path


@needs_root
def test_a_link_of_another_user_leads_only_to_what_that_user_may_read(shared: Path, secret: Path) -> None:
    direct = link(shared / "db.env", secret)
    folder = link(shared / "data", "admin") / "secret.env"
    indirect = shared / "own.env"
    indirect.symlink_to("db.env")
    for path in (direct, folder, indirect):
        with pytest.raises(PermissionError, match="user 65534 made a symbolic link in its path"):
            open_readable(path)
        with pytest.raises(LaunchError, match="user 65534 made a symbolic link"):
            read_env_files([str(path)])
        with pytest.raises(InvalidFiles, match="user 65534 made a symbolic link"):
            archive(CreateFileSystem(destination="/", entries=[FileSystemEntry(name="x", source=str(path))]))
    secret.chmod(0o644)
    assert read(direct) == read(folder) == read(indirect) == b"TOKEN=secret\n"
    # Its mode allows it, but not that of its folder.
    secret.parent.chmod(0o700)
    with pytest.raises(PermissionError):
        open_readable(direct)


@needs_root
def test_a_hard_link_of_another_user_leads_only_to_what_that_user_may_read(shared: Path, secret: Path) -> None:
    """Some kernels let every user make one to any file, which then keeps its owner and its mode."""
    folder = shared / "data"
    folder.mkdir()
    (folder / "db.env").hardlink_to(secret)
    assert read(folder / "db.env") == b"TOKEN=secret\n"
    os.chown(folder, OTHER, OTHER)
    with pytest.raises(PermissionError, match="user 65534 may have made this hard link"):
        open_readable(folder / "db.env")
    secret.chmod(0o644)
    assert read(folder / "db.env") == b"TOKEN=secret\n"
    os.chown(folder, 0, 0)
    folder.chmod(0o1777)
    assert read(folder / "db.env") == b"TOKEN=secret\n"
    secret.chmod(0o600)
    with pytest.raises(PermissionError, match="several hard links"):
        open_readable(folder / "db.env")
    secret.unlink()
    assert read(folder / "db.env") == b"TOKEN=secret\n"


@needs_root
def test_a_build_secret_behind_a_link_of_another_user_is_refused(shared: Path, secret: Path) -> None:
    """The container runtime would follow it as root."""
    own, stolen = shared / "own", link(shared / "stolen", secret)
    own.symlink_to(secret)
    build = ImageBuild(context="/", tags=("t",), secrets=[("token", f"src={own}"), ("other", "env=OTHER")])
    with opened_secrets(build) as (opened, _):
        (_, source), other = opened.secrets
        assert Path(source.removeprefix("src=")).read_text() == "TOKEN=secret\n"
        assert other == ("other", "env=OTHER")
    build = ImageBuild(context="/", tags=("t",), secrets=[("token", f"src={stolen}")])
    with pytest.raises(ContainerRuntimeError, match="user 65534 made a symbolic link"), opened_secrets(build):
        pass


@needs_user_namespaces
async def test_a_rootless_runtime_reads_a_build_secret(tmp_path: Path) -> None:
    """Rootless Podman is in a user namespace of its own, which may not look into other processes of its user."""
    secret = tmp_path / "secret.env"
    secret.write_text("TOKEN=secret\n")
    build = ImageBuild(context="/", tags=("t",), secrets=[("token", f"src={secret}")])
    with opened_secrets(build) as (opened, files):
        source = opened.secrets[0][1].removeprefix("src=")
        assert await run((*IN_A_USER_NAMESPACE, "cat", source), within=10, files=files) == "TOKEN=secret\n"


@needs_root
def test_a_link_to_the_users_own_file_works(shared: Path, secret: Path) -> None:
    os.chown(secret, OTHER, OTHER)
    assert read(link(shared / "db.env", secret)) == b"TOKEN=secret\n"


@needs_root
def test_links_of_the_kernel_skip_no_check(shared: Path, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``/proc/self/cwd`` has no path to follow, but what stands after it has."""
    link(shared / "db.env", secret)
    (shared / "own.env").symlink_to(secret)
    monkeypatch.chdir(shared)
    folder = os.open(shared, os.O_RDONLY)
    ways = ("/proc/self/cwd", f"/proc/self/root{shared}", f"/proc/self/fd/{folder}", f"/proc/thread-self/fd/{folder}")
    try:
        for way in ways:
            with pytest.raises(PermissionError, match="user 65534 made a symbolic link in its path"):
                open_readable(f"{way}/db.env")
            assert read(Path(f"{way}/own.env")) == b"TOKEN=secret\n"
            assert read(Path(f"{way}/./admin/../own.env")) == b"TOKEN=secret\n"
    finally:
        os.close(folder)


@needs_root
def test_the_folder_of_another_users_process_is_a_link_of_that_user(shared: Path, secret: Path) -> None:
    (shared / "public.env").write_text("A=1\n")
    with subprocess.Popen(["sleep", "300"], cwd=shared, user=OTHER, group=OTHER, extra_groups=[]) as process:
        try:
            place = Path(f"/proc/{process.pid}/cwd")
            assert read(place / "public.env") == b"A=1\n"
            with pytest.raises(PermissionError, match="user 65534 made a symbolic link in its path"):
                open_readable(place / "admin" / secret.name)
        finally:
            process.kill()


def test_own_links_lead_anywhere(shared: Path, secret: Path) -> None:
    path = shared / "db.env"
    path.symlink_to("./admin/../admin//secret.env")
    assert read(path) == read(secret) == b"TOKEN=secret\n"
    with secret.open() as file:
        assert read(Path(f"/proc/self/fd/{file.fileno()}")) == b"TOKEN=secret\n"


def test_errors_are_those_of_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    path.symlink_to(path)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        open_readable(path)
    with pytest.raises(FileNotFoundError):
        open_readable(tmp_path / "missing" / "x")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        open_readable(tmp_path / "file" / "x")


def test_a_pipe_is_no_file_of_variables(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LaunchError, match="it is not a regular file"):
        read_env_files([str(tmp_path / "pipe")])
