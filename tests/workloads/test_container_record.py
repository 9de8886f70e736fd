"""The record of containers in a state folder, which sessions with different runtimes share."""

import os
from pathlib import Path

import pytest

from steersman.workloads.containers.container_record import ContainerRecord, recorded_runtimes
from steersman.workloads.containers.creator import Creator

HERE = Creator("machine", "boot", "namespace", "7", "1234")
FIRST, SECOND, THIRD = "a" * 64, "b" * 64, "c" * 64


def test_each_runtime_reads_and_removes_its_own_containers(tmp_path: Path) -> None:
    """A session with Docker must not count the containers of Podman as lost: it would end their processes."""
    file = tmp_path / "containers"
    podman, docker = ContainerRecord(file, "podman"), ContainerRecord(file, "docker")
    podman.add(FIRST)
    docker.add(SECOND)
    podman.add(THIRD)
    assert (podman.read(), docker.read()) == ({FIRST, THIRD}, {SECOND})
    docker.remove({FIRST, SECOND})
    assert (podman.read(), docker.read()) == ({FIRST, THIRD}, set())
    podman.remove({FIRST, THIRD})
    assert not file.exists()


def test_a_record_of_an_older_version_is_that_of_podman(tmp_path: Path) -> None:
    """It names no runtime, and only processes of Podman are found by the record."""
    file = tmp_path / "containers"
    file.write_text(f"{FIRST}\nno container\n{SECOND}\n")
    podman, docker = ContainerRecord(file, "podman"), ContainerRecord(file, "docker")
    assert (podman.read(), docker.read()) == ({FIRST, SECOND}, set())
    docker.add(THIRD)
    podman.remove({FIRST})
    assert (podman.read(), docker.read()) == ({SECOND}, {THIRD})


def test_without_a_file_nothing_is_recorded() -> None:
    record = ContainerRecord(None, "podman")
    record.add(FIRST)
    record.remove({FIRST})
    assert record.read() == set()


def test_a_record_that_cannot_be_read_stays(tmp_path: Path) -> None:
    """Such as without free file descriptors: it may have the containers of a killed session."""
    file = tmp_path / "containers"
    os.mkfifo(file)
    record = ContainerRecord(file, "podman")
    record.remove({FIRST})
    assert record.read() == set()
    assert file.exists()


@pytest.mark.parametrize("end", [5, 12, -1])
def test_a_line_that_a_full_disk_cut_off_does_not_count(tmp_path: Path, end: int) -> None:
    """The end of a cut creator would name another process, and a cut line has the next one behind it."""
    file = tmp_path / "containers"
    podman = ContainerRecord(file, "podman")
    podman.begin("shop-1", HERE)
    file.write_text(file.read_text()[:end])
    assert recorded_runtimes(file) is None, "the session may have left something"
    podman.add(FIRST)
    assert (podman.sessions(), podman.read()) == ({}, set())
    podman.begin("shop-1", HERE)
    assert (podman.sessions(), recorded_runtimes(file)) == ({"shop-1": HERE}, {"podman"})
    podman.end({"shop-1"})
    assert not file.exists()
    assert recorded_runtimes(file) == set()


def test_a_session_is_recorded_until_nothing_of_it_is_left(tmp_path: Path) -> None:
    """A session that was killed before its first container may have left a network: down must look for it."""
    file = tmp_path / "containers"
    podman = ContainerRecord(file, "podman")
    for session in ("shop=1", "shop=1", "shop-2"):
        podman.begin(session, HERE)
    podman.add(FIRST)
    ContainerRecord(file, "docker").begin("shop-3", HERE)
    assert (podman.sessions(), podman.read()) == ({"shop=1": HERE, "shop-2": HERE}, {FIRST})
    assert recorded_runtimes(file) == {"podman", "docker"}
    podman.end({"shop=1", "shop-3"})
    podman.remove({FIRST})
    assert podman.sessions() == {"shop-2": HERE}
    podman.end({"shop-2"})
    assert recorded_runtimes(file) == {"docker"}
