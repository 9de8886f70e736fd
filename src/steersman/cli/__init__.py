"""The command line: ``steersman generate``.

Guarantees
- What goes wrong is one sentence on stderr that says what to do next, never a traceback; the exit code is 1, or 2 for a
  command line that makes no sense.
- Results go to stdout or into the files one names, progress to stderr. A file whose content would not change is not
  written; one that is written is replaced whole or not at all.
"""

from steersman.cli.main import main

__all__ = ["main"]
