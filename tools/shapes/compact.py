"""Write the API server's data of built-in kinds: ``compact.py SHAPES INTERNAL FOLDER``.

SHAPES and INTERNAL are the outputs of the two Go programs beside this file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def short(name: str) -> str:
    """A type's name without the common prefix."""
    return name.replace("io.k8s.api.", "").replace("io.k8s.apimachinery.pkg.apis.", "")


def write(path: Path, entries: dict[str, list[str]]) -> None:
    """Write one type per line, for readable diffs between versions."""
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(rows, separators=(',', ':'))}" for name, rows in entries.items()
    )
    path.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


def main(shapes: str, internal: str, folder: str) -> None:
    """Read, shorten, write."""
    published: dict[str, Any] = json.loads(Path(shapes).read_text(encoding="utf-8"))
    write(
        Path(folder, "shapes.json"),
        {
            short(name): [
                " ".join(filter(None, [field, short(kind), options.replace("ez", "z")]))
                for field, kind, options in published[name] or ()
            ]
            for name in sorted(published)
            if not name.endswith("List") and not short(name).startswith("io.k8s")
        },
    )
    inside: dict[str, Any] = json.loads(Path(internal).read_text(encoding="utf-8"))
    write(
        Path(folder, "internal.json"),
        {
            name: [
                " ".join(filter(None, [go_name or "-", kind, versioned or "-", options]))
                for go_name, kind, versioned, options in inside[name] or ()
            ]
            for name in sorted(inside)
        },
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
