"""`python -m bench` lists the benchmarks, `python -m bench NAME [--json FILE]` runs one.

A benchmark is a module in this directory with ``async def run(options) -> Report``; the first line of its docstring is
its description. It may define ``def add_arguments(parser)`` for its own options. Exits with status 1 if a bar does not
hold, and with 2 if a measurement failed.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import importlib
import signal
import sys
from pathlib import Path

from bench.contenders.preparing import keep_compiled_modules
from bench.report import BenchmarkFailed, Report, table

HERE = Path(__file__).parent
NOT_BENCHMARKS = {"__init__", "__main__", "report"}


def available() -> dict[str, str]:
    """Find the benchmarks and their descriptions, without importing them."""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        if path.stem not in NOT_BENCHMARKS and any(
            isinstance(node, ast.AsyncFunctionDef) and node.name == "run" for node in module.body
        ):
            found[path.stem] = (ast.get_docstring(module) or "").partition("\n")[0]
    return found


def main() -> int:
    """List or run benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Steersman against a bare baseline.")
    parser.add_argument("name", nargs="?", help="the benchmark to run; without it, all are listed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the report to this file")
    options, rest = parser.parse_known_args()
    benchmarks = available()
    if options.name is None:
        print(table(("name", "measures"), list(benchmarks.items())))
        return 0
    if options.name not in benchmarks:
        parser.error(f"unknown benchmark {options.name!r}; the benchmarks are: {', '.join(benchmarks) or 'none yet'}")
    keep_compiled_modules()
    # as Ctrl-C does, end what was started: contenders would outlive a process that is killed
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    module = importlib.import_module(f"bench.{options.name}")
    own = argparse.ArgumentParser(prog=f"python -m bench {options.name}", parents=[parser], add_help=False)
    if hasattr(module, "add_arguments"):
        module.add_arguments(own)
    try:
        report: Report = asyncio.run(module.run(own.parse_args([options.name, *rest], options)))
    except BenchmarkFailed as error:
        print(f"bench {options.name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"bench {options.name}: interrupted", file=sys.stderr)
        return 130
    print(report)
    if options.json is not None:
        report.write(options.json)
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
