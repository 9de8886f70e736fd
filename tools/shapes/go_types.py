"""Write what the API server needs of Go's types to report errors in Go's words: ``go_types.py NAMES OUTPUT``.

NAMES is the output of ``names/main.go``. Only types with a schema in `steersman.kinds` are kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from steersman.kinds import definitions


def is_known(name: str) -> bool:
    """Whether a type has a schema."""
    try:
        return "properties" in definitions.definition(name)
    except LookupError:
        return False


def main(names: str, output: str) -> None:
    """Read, filter, write."""
    told: dict[str, dict[str, Any]] = json.loads(Path(names).read_text(encoding="utf-8"))
    kept = {part: {name: rows for name, rows in types.items() if is_known(name)} for part, types in told.items()}
    for part in ("omitted", "pointers"):
        for fields in kept[part].values():
            fields.sort()
    text = json.dumps(kept, sort_keys=True, indent=0, separators=(",", ":"))
    Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
