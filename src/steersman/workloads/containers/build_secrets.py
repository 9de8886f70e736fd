"""Opens the files of a build's secrets for the container runtime.

Guarantee: a symbolic link of another user in the path of a secret leads only to what that user may read. The runtime would
follow it as its own user, and every step of a Dockerfile can copy the secret into the image.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import msgspec

from steersman.workloads.containers.runner import ContainerRuntimeError, ImageBuild
from steersman.workloads.linked_files import open_readable

_FILE = "src="


@contextmanager
def opened_secrets(build: ImageBuild) -> Generator[ImageBuild]:
    """The build with secrets that name open files of this process. Raises `ContainerRuntimeError` if one cannot be read."""
    with ExitStack() as files:
        yield msgspec.structs.replace(build, secrets=[(name, _opened(each, files)) for name, each in build.secrets])


def _opened(source: str, files: ExitStack) -> str:
    if not source.startswith(_FILE):
        return source
    path = source.removeprefix(_FILE)
    try:
        descriptor = open_readable(path)
    except OSError as error:
        raise ContainerRuntimeError(f"cannot read the secret {path}: {error.strerror}") from None
    files.callback(os.close, descriptor)
    return f"{_FILE}/proc/{os.getpid()}/fd/{descriptor}"
