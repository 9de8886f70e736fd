"""What a container is made from: a build, files that are written into it, labels."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from steersman.markers import Int32, ListMap, MinLength
from steersman.objects import Struct, field
from steersman.workloads.kinds.environment import EnvVar


class ContainerLabel(Struct):
    """A label of the container runtime."""

    key: Annotated[str, MinLength(1)]
    value: str = ""


class ContainerBuildSecret(Struct):
    """A secret that a build can read."""

    type: Literal["env", "file"] = "file"
    id: Annotated[str, MinLength(1)]
    source: str | None = None
    value: str | None = None


class ContainerBuildContext(Struct):
    """How to build the image."""

    context: Annotated[str, MinLength(1)]
    dockerfile: str | None = None
    tags: list[str] | None = None
    args: list[EnvVar] | None = None
    secrets: list[ContainerBuildSecret] | None = None
    stage: str | None = None
    labels: Annotated[list[ContainerLabel], ListMap("key")] | None = None
    platform: str | None = None


class FileSystemEntry(Struct):
    """A file, a folder or a link inside the container."""

    type: Literal["", "directory", "symlink"] = ""
    name: Annotated[str, MinLength(1)]
    owner: Int32 | None = None
    group: Int32 | None = None
    mode: int | None = None
    source: str | None = None
    target: str | None = None
    contents: str | None = None
    raw_contents: str | None = None
    """Base64."""
    continue_on_error: bool = False
    entries: list[dict[str, Any]] | None = None
    """The entries of a folder, of the same form; a schema cannot be recursive."""


class CreateFileSystem(Struct):
    """Files that are written into the container before it starts."""

    destination: str = "/"
    default_owner: Int32 = 0
    default_group: Int32 = 0
    umask: int | None = None
    entries: list[FileSystemEntry] | None = None


class ImageLayer(Struct):
    """A layer to add to the image."""

    digest: str
    source: str | None = None
    sha256: str | None = field(default=None, name="sha256")
    raw_contents: str | None = None
