"""Names that a package imports on first use.

    if TYPE_CHECKING:
        from steersman.client import Client as Client
    else:
        __getattr__, __dir__ = lazy_names(__name__, {"steersman.client": ["Client"]})

Type checkers and import-linter read the imports, Python reads the table; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, table: Mapping[str, Iterable[str]], *, needs: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package, for a table of modules and the names to import from them.

    ``__dir__`` lists ``__all__`` if the package has one. ``needs`` has the message for each optional package that is not
    installed.
    """
    homes = {name: home for home, names in table.items() for name in names}
    module = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module[name] = value = getattr(import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            message = (needs or {}).get(error.name or "")
            if message is None:
                raise
            raise ModuleNotFoundError(message, name=error.name) from error
        return value

    def names() -> list[str]:
        return sorted({*module.get("__all__", homes), *(name for name in module if name.startswith("__"))})

    return get, names
