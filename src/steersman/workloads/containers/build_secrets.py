"""Opens the files of a build's secrets for the container runtime.

Guarantee: a symbolic link of another user in the path of a secret leads only to what that user may read. The runtime would
follow it as its own user, and every step of a Dockerfile can copy the secret into the image.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager

import msgspec

from steersman.workloads.containers.runner import ContainerRuntimeError, ImageBuild
from steersman.workloads.linked_files import open_readable

_FILE = "src="


@contextmanager
def opened_secrets(build: ImageBuild) -> Generator[tuple[ImageBuild, Sequence[int]]]:
    """The build with secrets that name open files, and their descriptors, which the command of the build must inherit.

    Raises `ContainerRuntimeError` if a file cannot be read.
    """
    with ExitStack() as files:
        secrets, descriptors = list[tuple[str, str]](), list[int]()
        for name, source in build.secrets:
            if source.startswith(_FILE):
                descriptor = _opened(source.removeprefix(_FILE))
                files.callback(os.close, descriptor)
                descriptors.append(descriptor)
                # Not below /proc/PID: a rootless Podman is in a user namespace, which may not open files of this process.
                secrets.append((name, f"{_FILE}/dev/fd/{descriptor}"))
            else:
                secrets.append((name, source))
        yield msgspec.structs.replace(build, secrets=secrets), descriptors


def _opened(path: str) -> int:
    try:
        return open_readable(path)
    except OSError as error:
        raise ContainerRuntimeError(f"cannot read the secret {path}: {error.strerror}") from None
