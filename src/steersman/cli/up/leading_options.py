"""The options that may stand before a command for applications, as with ``docker compose``: ``steersman -p shop up``.

Guarantees
- ``-p`` and ``-f`` mean the same before and after the command.
- Two different projects, and a command that takes neither option, are errors that name both words.
"""

from __future__ import annotations

import argparse
from typing import Any

from steersman.cli.failure import Misuse

#: Where the values from before the command are stored: a command's own options have the plain names.
_PROJECT, _FILES, _BACKGROUND = "leading_project", "leading_files", "leading_background"


def add_leading_options(parser: argparse.ArgumentParser) -> None:
    """Add ``-p`` and ``-f`` to the parser of the program."""
    group = parser.add_argument_group("options for applications")
    group.add_argument(
        "-p", "--project", "--project-name", dest=_PROJECT, metavar="NAME", help="the name of the project"
    )
    group.add_argument(
        "-f", "--file", dest=_FILES, action="append", default=[], metavar="FILE", help="a file to read; can be repeated"
    )
    # For the process of a detached session. A search for the command among the words could find a value.
    parser.add_argument("--background", dest=_BACKGROUND, action="store_true", help=argparse.SUPPRESS)


def merge_leading_options(options: dict[str, Any], command: str) -> dict[str, Any]:
    """The options of a command with those from before it. Raises `Misuse` for a conflict."""
    options = dict(options)
    project, files, background = (options.pop(name) for name in (_PROJECT, _FILES, _BACKGROUND))
    for flag, value, name in (("-p", project, "project"), ("-f", files, "files")):
        if value not in (None, []) and name not in options:
            raise Misuse(f"{command} does not take {flag} {_word(value)}: only the commands for applications do")
    if project is not None:
        own = options["project"]
        if own not in {None, project}:
            raise Misuse(f"-p {project} before {command} and -p {own} after it name two projects: remove one")
        options["project"] = project
    if files:
        options["files"] = [*files, *options["files"]]
    if background and "background" in options:
        options["background"] = True
    return options


def _word(value: str | list[str]) -> str:
    return (value if isinstance(value, str) else value[0]) or "''"
