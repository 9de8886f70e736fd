"""Reads untrusted text files: only regular files in UTF-8 of a limited size."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from steersman.application.model import FileVersion, Place
from steersman.application.syntax.nodes import Node
from steersman.application.syntax.report import Report
from steersman.workloads import open_owned

_BYTES_MAX = 4 * 1024 * 1024


class OwnedText(NamedTuple):
    """A text, and the users who decide what it is: the owner of its file, and other users who made a link in its path."""

    text: str
    owners: frozenset[int]


def read_text(file: Path, report: Report, *, named_at: Node | None = None, is_optional: bool = False) -> str | None:
    """The text of a file; None if it cannot be read, and the report says why.

    An optional file may be missing. It counts as a file of the application all the same: it may be made later.
    """
    found = read_owned_text(file, report, named_at=named_at, is_optional=is_optional)
    return found.text if found is not None else None


def read_owned_text(
    file: Path, report: Report, *, named_at: Node | None = None, is_optional: bool = False
) -> OwnedText | None:
    """The same with the owners of the text."""
    where = named_at or file
    report.files.setdefault(file, ())
    try:
        descriptor, owners = open_owned(file)
    except (OSError, ValueError) as error:
        if is_optional and isinstance(error, FileNotFoundError | NotADirectoryError):
            return None
        reason = (error.strerror if isinstance(error, OSError) else None) or "its name is not valid"
        report.error(where, f"cannot read {file}: {reason}")
        return None
    try:
        # Before the read: an edit during it makes another version. Of two reads, the first counts.
        report.files[file] = report.files[file] or version_of(os.fstat(descriptor))
        # A file of /proc may have no end, or nothing to read now: then this fails instead of waiting.
        data = b""
        while len(data) <= _BYTES_MAX and (piece := os.read(descriptor, _BYTES_MAX + 1 - len(data))):
            data += piece
    except OSError as error:
        report.error(where, f"cannot read {file}: {error.strerror}")
        return None
    finally:
        os.close(descriptor)
    if len(data) > _BYTES_MAX:
        report.error(where, f"cannot read {file}: it has more than {_BYTES_MAX} bytes")
        return None
    text = _decoded(data, file, report)
    return OwnedText(text, owners) if text is not None else None


def version_of(status: os.stat_result) -> FileVersion:
    """The version of a file."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def _decoded(data: bytes, file: Path, report: Report) -> str | None:
    data = data.removeprefix(b"\xef\xbb\xbf")
    if (at := data.find(b"\0")) >= 0:
        report.error(_place(file, data, at), "the file contains a NUL character: it must be UTF-8 text")
        return None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        report.error(_place(file, data, error.start), "the file is not UTF-8 text")
        return None


def _place(file: Path, data: bytes, at: int) -> Place:
    return Place(file, data.count(b"\n", 0, at) + 1, at - data.rfind(b"\n", 0, at))
