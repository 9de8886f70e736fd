"""Files that are written into a container before it starts, as a tar archive."""

from __future__ import annotations

import base64
import binascii
import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import PurePosixPath

import msgspec

from steersman.workloads.kinds import CreateFileSystem
from steersman.workloads.kinds.container_image import FileSystemEntry
from steersman.workloads.linked_files import open_readable

#: The modes of files and folders before the umask is applied.
_FILE_MODE, _FOLDER_MODE, _UMASK = 0o666, 0o777, 0o022
_LIMIT = 256 << 20


class InvalidFiles(ValueError):
    """An entry of spec.createFiles cannot be written. The message says which, and why."""


def archive(files: CreateFileSystem) -> bytes:
    """The archive of files, to unpack at their destination. Reads the sources of entries from this machine."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, files, files.entries or (), PurePosixPath(), files.default_owner, files.default_group)
    return out.getvalue()


def _add(
    tar: tarfile.TarFile,
    files: CreateFileSystem,
    entries: Iterable[FileSystemEntry],
    folder: PurePosixPath,
    owner: int,
    group: int,
) -> None:
    umask = _UMASK if files.umask is None else files.umask
    for entry in entries:
        name = PurePosixPath(entry.name)
        if name.is_absolute() or ".." in name.parts:
            raise InvalidFiles(f"spec.createFiles: the name {entry.name!r} must be relative and without ..")
        info = tarfile.TarInfo(str(folder / name))
        info.uid = owner if entry.owner is None else entry.owner
        info.gid = group if entry.group is None else entry.group
        try:
            if entry.type == "directory":
                info.type, info.mode = tarfile.DIRTYPE, _FOLDER_MODE & ~umask if entry.mode is None else entry.mode
                tar.addfile(info)
                children = msgspec.convert(entry.entries or [], type=list[FileSystemEntry])
                _add(tar, files, children, folder / name, info.uid, info.gid)
            elif entry.type == "symlink":
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.target or "", 0o777
                tar.addfile(info)
            else:
                info.mode = _FILE_MODE & ~umask if entry.mode is None else entry.mode
                data = _contents(entry)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        except (OSError, ValueError, msgspec.ValidationError) as error:
            if isinstance(error, InvalidFiles) or not entry.continue_on_error:
                if isinstance(error, OSError) and error.filename:
                    error = ValueError(f"cannot read {error.filename}: {error.strerror}")
                raise InvalidFiles(f"cannot create {folder / name} in the container: {error}") from None


def _contents(entry: FileSystemEntry) -> bytes:
    if entry.source:
        with open(open_readable(entry.source), "rb") as file:  # noqa: PTH123 - a descriptor
            if (size := os.fstat(file.fileno()).st_size) > _LIMIT:
                raise ValueError(f"{entry.source} has {size} bytes; at most {_LIMIT} can be copied")
            return file.read(_LIMIT)
    if entry.raw_contents:
        try:
            return base64.b64decode(entry.raw_contents, validate=True)
        except binascii.Error as error:
            raise ValueError(f"rawContents is not Base64 ({error})") from None
    return (entry.contents or "").encode()
