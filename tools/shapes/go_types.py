"""Write what the API server must know of Go's types to tell mistakes in Go's words: ``go_types.py NAMES OUTPUT``.

NAMES is what ``names/main.go`` printed. Kept is what `steersman.kinds` has a schema of.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from steersman.kinds import definitions


def is_known(name: str) -> bool:
    """Whether there is a schema of a type."""
    try:
        return "properties" in definitions.definition(name)
    except LookupError:
        return False


def main(names: str, output: str) -> None:
    """Read, leave out, write."""
    told: dict[str, dict[str, Any]] = json.loads(Path(names).read_text(encoding="utf-8"))
    kept = {part: {name: rows for name, rows in types.items() if is_known(name)} for part, types in told.items()}
    for fields in kept["omitted"].values():
        fields.sort()
    text = json.dumps(kept, sort_keys=True, indent=0, separators=(",", ":"))
    Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
