"""How long each test file runs, and how much of that it computes, as a table that plans of runs read.

``STEERSMAN_TIMINGS=FOLDER pytest -n 4`` measures it, and ``tools/test --write-durations FOLDER`` writes the table. The start of
the engine belongs to no file: each worker starts one, whatever it runs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("durations.json")
#: What a file that is not in the table is taken for.
UNKNOWN = (2.0, 2.0)
#: The least that a file counts for: it is imported at least.
LEAST = 0.1
#: A file whose tests compute for less than this share of their time waits.
WAITING = 0.5


def seconds_of(file: str) -> float:
    """The seconds of a test file, such as ``tests/cache/test_refresh.py``."""
    return table().get(file, UNKNOWN)[0]


def waits(files: Iterable[str]) -> bool:
    """Whether the tests of these files mostly wait."""
    walls, computed = zip(*(table().get(file, UNKNOWN) for file in files), strict=True)
    return sum(computed) < WAITING * sum(walls)


@cache
def table() -> dict[str, tuple[float, float]]:
    """The seconds and the CPU seconds of all files that were measured."""
    return json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}


def measured(folder: Path) -> dict[str, tuple[float, float]]:
    """The seconds and CPU seconds of the files in the records of `samples.timings`."""
    seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for records in sorted(folder.glob("*.jsonl")):
        engine = 0.0  # the record of a fixture precedes that of the test that asked for it
        for line in records.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("fixture") == "engine" and record["scope"] == "session":
                engine += record["wall"]
            elif "test" in record:
                sums = seconds[record["test"].partition("::")[0]]
                # as long as on a machine with a core for each program
                sums[0] += max(record["cpu"], record["wall"] - record["queued"] - engine)
                sums[1] += record["cpu"] + record["below"]
                engine = 0.0
    return {
        file: (max(LEAST, round(wall, 1)), max(LEAST, round(cpu, 1))) for file, (wall, cpu) in sorted(seconds.items())
    }


def write_table(new: dict[str, tuple[float, float]], root: Path, path: Path = TABLE) -> None:
    """Write the table anew: what was measured now, and before for the files that are still there."""
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = (
        f"{json.dumps(file)}: {json.dumps(seconds)}"
        for file, seconds in sorted({**old, **new}.items())
        if (root / file).exists()
    )
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
