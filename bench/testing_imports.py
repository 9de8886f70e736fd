"""What the first test on the embedded control plane imports: how many modules, and the CPU time of importing them.

Guarantees
- The modules are those that a process has loaded after a whole test (`testing_first_test`), without those of a bare
  interpreter.
- They are timed in fresh interpreters that import them in the same order and do nothing else. The fastest one counts:
  the others only add noise.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.report import BenchmarkFailed

_FIRST_TEST = str(Path(__file__).parent / "testing_first_test.py")
_BARE = "import sys; print(*sys.modules)"
_TIME = """
import sys
from importlib import import_module
from time import process_time
names = sys.stdin.read().split()
began = process_time()
for name in names:
    if name not in sys.modules:
        import_module(name)
print(process_time() - began)
"""


@dataclass(frozen=True)
class Imports:
    """What the first test imports."""

    #: CPU seconds of the fastest interpreter.
    seconds: float
    #: All modules, and Steersman's own.
    modules: int
    own: int


def imported_modules() -> list[str]:
    """The modules, in the order of their imports."""
    bare = set(_output("-c", _BARE).split())
    return [name for name in _output(_FIRST_TEST).split() if name not in bare]


def measured_imports(runs: int) -> Imports:
    """Find the modules, and time them in this many interpreters."""
    names = imported_modules()
    _output("-c", _TIME, given=" ".join(names))  # the first one may compile them
    seconds = min(float(_output("-c", _TIME, given=" ".join(names))) for _ in range(runs))
    return Imports(seconds, len(names), sum(name.partition(".")[0] == "steersman" for name in names))


def _output(*arguments: str, given: str = "") -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkFailed(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    return done.stdout
