"""Writes a module of plain msgspec structs with the fields of one of our group-versions, and of its imports."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from steersman.objects import Struct

_BARE = """from __future__ import annotations
from datetime import datetime
from typing import Annotated, Any
import msgspec
from msgspec import Raw
MicroTime = datetime
Quantity = str
IntOrString = int | str
Condition = OwnerReference = ObjectMeta = ListMeta = Any
"""


def write_bare_module(folder: Path, module: str) -> Path:
    """Write ``bare_kinds.py``: the classes of ``module`` and of the kinds it imports, as plain msgspec structs."""
    importlib.import_module(module)
    lines = [_BARE]
    for name in sorted(sys.modules):
        if name.startswith("steersman.kinds.") and name.endswith(("_v1", "_v2")):
            lines += _classes(sys.modules[name])
    path = folder / "bare_kinds.py"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _classes(module: Any) -> list[str]:
    lines: list[str] = []
    for name, cls in vars(module).items():
        if inspect.isclass(cls) and issubclass(cls, Struct) and cls.__module__ == module.__name__:
            lines.append(f'class {name}(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):')
            lines += [
                f"    {field}: {hint if isinstance(hint, str) else hint.__name__} | None = None"
                for field, hint in cls.__own_annotations__.items()
            ] or ["    pass"]
    return lines
