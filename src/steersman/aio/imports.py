"""Guards the import of a module that a command searches for a manager.

Guarantee: a manager does not run while a command imports its module, so ``steersman plan`` and ``steersman generate``
never write anything by accident.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_module: ContextVar[str] = ContextVar("steersman_imported_module", default="")


@contextmanager
def importing(module: str) -> Generator[None]:
    """Forbid running a manager in this block."""
    token = _module.set(module)
    try:
        yield
    finally:
        _module.reset(token)


def check_not_importing() -> None:
    """Raise if a command is importing a module."""
    if module := _module.get():
        raise RuntimeError(
            f"importing {module} runs its manager, which the command should do; move that below"
            " if __name__ == '__main__':"
        )
