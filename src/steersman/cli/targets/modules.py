"""Finds and imports the Python modules that a command line names, and explains what is wrong with them."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from steersman.aio import importing
from steersman.cli.failure import Failure, Misuse
from steersman.cli.working_folder import working_folder


def look_here_first() -> None:
    """Import from the current directory first, as ``python -m`` does."""
    if (here := str(working_folder())) not in sys.path:
        sys.path.insert(0, here)


def module_and_name(text: str, wanted: str, *, nothing: str) -> tuple[str, str]:
    """Split ``module`` or ``module:name``; the name is empty if omitted. ``nothing`` describes that in an error."""
    module, colon, attribute = text.partition(":")
    if colon and not attribute:
        raise Misuse(
            f"{text} names no {wanted}: write {module or 'MODULE'} for {nothing}, or {module or 'MODULE'}:NAME"
        )
    if "/" in module or os.sep in module or module.endswith(".py"):
        raise Misuse(f"{module} is a file: name the module {_module_of(Path(module))}{colon}{attribute}")
    if not all(module.split(".")):
        raise Misuse(f"{module or repr(text)} is not a module name: write one such as myoperator.api")
    return module, attribute


def _module_of(path: Path) -> str:
    """The module name of a file, relative to the nearest import directory above it."""
    whole = path.absolute().with_suffix("") if path.suffix == ".py" else path.absolute()
    whole = Path(os.path.normpath(whole))
    roots = [root for entry in sys.path if (root := Path(entry).absolute()) in whole.parents]
    nearest = max(roots, key=lambda root: len(root.parts), default=whole.parent)
    return ".".join(whole.relative_to(nearest).parts).removesuffix(".__init__")


def load_module(name: str) -> ModuleType:
    """Import a module; a failure is one sentence that names the place in its code."""
    try:
        with importing(name):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            todo = "run this in the directory that contains it, or install it first"
        else:
            todo = f"install what it imports first{_place(error)}"
        raise Failure(f"cannot import {name}: {error}; {todo}") from error
    except Exception as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        words = ": ".join(part for part in (type(error).__name__, " ".join(reason.split())) if part)
        raise Failure(f"cannot import {name}: {words}{_place(error)}; correct it first") from error


def _place(error: Exception) -> str:
    """Where an import failed in the imported code, skipping Python's machinery and our own."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f" ({error.filename}, line {error.lineno})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    # The first frame is this module's own.
    theirs = [frame for frame in frames[1:] if not frame.filename.startswith(_OURS)] or frames[1:]
    return f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs and theirs[-1].filename else ""


#: Frames in these directories lead to the mistake but do not contain it.
_OURS = (f"{Path(__file__).parents[2]}{os.sep}", f"{Path(asyncio.__file__).parent}{os.sep}")
