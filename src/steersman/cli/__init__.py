"""The command line: ``steersman run``, ``steersman explain``, ``steersman generate`` and others.

Guarantees
- A failure is one sentence on stderr that says what to do next. The exit code is 1, or 2 for an invalid command line.
  A traceback precedes it only if ``run`` hit a bug.
- Results go to stdout or into the named files, progress to stderr. An unchanged file is not written; a changed one is
  replaced atomically.
"""

from steersman.cli.main import main as main

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
