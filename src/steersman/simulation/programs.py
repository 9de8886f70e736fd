"""Programs as setups: a module that is imported again for each start, as in a new process.

Guarantee: nothing that the module, or another one of its package, keeps in variables survives a crash. Other packages are
imported once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from steersman.manager import Manager


def program(module: str, attribute: str = "manager") -> Callable[[], Manager]:
    """A setup that imports a module again and returns its manager."""

    def setup() -> Manager:
        found = getattr(_imported_anew(module), attribute, None)
        if isinstance(found, Manager):
            return found
        if callable(found) and isinstance(made := found(), Manager):
            return made
        raise TypeError(f"{module} has no Manager named {attribute!r}: name the variable or the function that has one")

    return setup


def _imported_anew(module: str) -> object:
    package = module.partition(".")[0]
    own = {name: sys.modules[name] for name in sys.modules if name == package or name.startswith(f"{package}.")}
    for name in own:
        del sys.modules[name]
    try:
        return import_module(module)
    finally:
        # The rest of the process continues with the modules that it has.
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]
        sys.modules.update(own)
