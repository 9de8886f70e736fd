"""Public names that are imported on first use, each listed once.

    if TYPE_CHECKING:
        from steersman.client import Client as Client
    else:
        __getattr__, __dir__ = lazy_names()

Type checkers read the list as imports. Python does not run it: `lazy_names` reads it from the module's compiled code,
so it also works where no source is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import CodeType
from typing import Any


def lazy_names(needs: Mapping[str, str] | None = None) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of the calling module, for the names that it imports from this package.

    ``needs`` has the message for each optional package that is not installed.
    """
    frame = sys._getframe(1)  # noqa: SLF001 - the only way to the code of a module that is being imported
    code, module = frame.f_code, frame.f_globals
    homes: dict[str, str] = {}

    def listed() -> dict[str, str]:
        if not homes:
            homes.update(_imports(code))
        return homes

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(listed())
        if name.startswith("__") or name not in listed():
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        try:
            module[name] = value = getattr(import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            message = (needs or {}).get(error.name or "")
            if message is None:
                raise
            raise ModuleNotFoundError(message, name=error.name) from error
        return value

    def names() -> list[str]:
        return sorted({*listed(), *(name for name in module if name.startswith("__"))})

    return get, names


def _imports(code: CodeType) -> dict[str, str]:
    """The names that a module imports from public modules of this package, with these modules."""
    from dis import get_instructions  # noqa: PLC0415 - not needed to import the package

    homes: dict[str, str] = {}
    home = ""
    for instruction in get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            home = instruction.argval
        elif instruction.opname == "IMPORT_FROM" and home.startswith("steersman.") and "._" not in home:
            homes[instruction.argval] = home
    return homes
