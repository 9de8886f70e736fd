"""Public names that are imported on first use, each listed once.

```python
if TYPE_CHECKING:
    from steersman.client import Client as Client
else:
    __getattr__, __dir__ = lazy_names()
```

Type checkers read the list as imports. Python does not run it: `lazy_names` reads it from the module's compiled code,
so it also works where no source is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names() -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of the calling module, for the names that it imports from this package."""
    frame = sys._getframe(1)  # noqa: SLF001 - the only way to the code of a module that is being imported
    code, module = frame.f_code, frame.f_globals
    homes: dict[str, str] = {}

    def listed() -> dict[str, str]:
        if not homes:
            from dis import get_instructions  # noqa: PLC0415 - not needed to import the package

            home = ""
            for instruction in get_instructions(code):
                if instruction.opname == "IMPORT_NAME":
                    home = instruction.argval
                elif instruction.opname == "IMPORT_FROM" and home.startswith("steersman.") and "._" not in home:
                    homes[instruction.argval] = home
        return homes

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(listed())
        if name.startswith("__") or (home := listed().get(name)) is None:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        module[name] = value = getattr(import_module(home), name)
        return value

    def names() -> list[str]:
        return sorted({*listed(), *(name for name in module if name.startswith("__"))})

    return get, names
