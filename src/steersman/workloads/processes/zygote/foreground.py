"""A bare program that becomes the command of ``steersman exec`` or ``steersman run``: see `program`.

Its first three descriptors are already those of the command. A socket has the launch message, and takes the report of a
failure.
"""

from __future__ import annotations

import os
import sys

from .program import Program, Start, become, read_fields, report_failure


def main() -> None:
    """Become the command of the launch message."""
    control = int(sys.argv[1])
    try:
        own, *fields = read_fields(control)
        streams = [int(each) for each in own.split(",") if each]
        program = Program(fields)
    except (OSError, ValueError) as error:
        report_failure(control, "the launch message", error)
        os._exit(127)
    terminal = streams[0] if streams else -1
    become(program, Start(control, streams, new_session=bool(program.user), terminal=terminal, bound=True))
