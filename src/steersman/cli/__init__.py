"""The command line: ``steersman run``, ``steersman explain`` and ``steersman generate``.

Guarantees
- What goes wrong is one sentence on stderr that says what to do next; the exit code is 1, or 2 for a command line that
  makes no sense. A traceback comes before it only where ``run`` met a bug.
- Results go to stdout or into the files one names, progress to stderr. A file whose content would not change is not
  written; one that is written is replaced whole or not at all.
"""

from steersman.cli.main import main

__all__ = ["main"]
