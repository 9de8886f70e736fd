"""Files that a container gets before it starts."""

import os
from pathlib import Path

import pytest

from steersman.workloads.containers import InvalidFiles, archive
from steersman.workloads.kinds import CreateFileSystem, FileSystemEntry


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda _: None, "cannot read {source}: No such file or directory"),
        (os.mkfifo, "cannot read {source}: it is not a regular file"),
        (os.mkdir, "cannot read {source}: it is not a regular file"),
    ],
)
def test_a_source_that_cannot_be_copied_is_named(make, reason, tmp_path: Path):
    """A pipe without a writer would block the start of the container for ever."""
    source = tmp_path / "password"
    make(source)
    files = CreateFileSystem(destination="/", entries=[FileSystemEntry(name="run/secrets/s", source=str(source))])
    with pytest.raises(InvalidFiles) as caught:
        archive(files)
    assert str(caught.value) == f"cannot create run/secrets/s in the container: {reason.format(source=source)}"
