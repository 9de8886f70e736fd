"""``steersman generate crds``: the CustomResourceDefinitions of resource classes, as YAML."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import write_files
from steersman.objects import GroupKind, Object
from steersman.schemas import crd_yaml


def generate_crds(modules: Sequence[str], *, output: str | None = None, check: bool = False) -> int:
    """Write the CRDs of all resource classes in these modules; the result is an exit code."""
    if check and output is None:
        raise Misuse("--check compares with a file; name it with -o")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)  # as python -m would: the current directory comes first
    wanted = [_named(text) for text in modules]
    kinds: dict[GroupKind, list[type[Object]]] = {}
    for module, attribute in wanted:
        for cls in _classes(module, attribute):
            versions = kinds.setdefault(cls.gvk().group_kind, [])
            if cls not in versions:
                versions.append(cls)
    try:
        text = "".join(crd_yaml(*versions) for _, versions in sorted(kinds.items()))
    except TypeError as error:
        raise Failure(str(error)) from error
    if output is None:
        print(text, end="")
        return 0
    return write_files({Path(output): text}, check=check)


def _named(text: str) -> tuple[str, str]:
    """``module`` or ``module:name`` in two parts; the second is empty for all classes of the module."""
    module, colon, attribute = text.partition(":")
    if colon and not attribute:
        raise Misuse(f"{text} names no class: write {module or 'MODULE'} for all of them, or {module or 'MODULE'}:NAME")
    if "/" in module or os.sep in module or module.endswith(".py"):
        raise Misuse(f"{module} is a file: name the module {_module_of(Path(module))}{colon}{attribute}")
    if not all(module.split(".")):
        raise Misuse(f"{module or repr(text)} is no module's name: write one such as myoperator.api")
    return module, attribute


def _module_of(path: Path) -> str:
    """The name under which a file is imported: from the nearest folder above it that modules are looked for in."""
    whole = path.absolute().with_suffix("") if path.suffix == ".py" else path.absolute()
    whole = Path(os.path.normpath(whole))
    roots = [root for entry in sys.path if (root := Path(entry).absolute()) in whole.parents]
    nearest = max(roots, key=lambda root: len(root.parts), default=whole.parent)
    return ".".join(whole.relative_to(nearest).parts).removesuffix(".__init__")


def _classes(name: str, attribute: str) -> list[type[Object]]:
    """The resource classes of a module and, for a package, of all modules below it; or the one that is named."""
    module = _module(name)
    if attribute:
        found: Any = getattr(module, attribute, None)
        if not _declares_kind(found):
            raise Failure(f"{name} has no resource class {attribute}; it has {_shown(_kinds_in(module))}")
        return [found]
    found_kinds = dict.fromkeys(cls for each in _with_modules_below(module) for cls in _kinds_in(each))
    if not found_kinds:
        raise Failure(f"{name} defines no resource class; name a module with a class derived from Resource[...]")
    return sorted(found_kinds, key=lambda cls: cls.gvk())


def _with_modules_below(module: ModuleType) -> Iterator[ModuleType]:
    """A module and, if it is a package, everything in it; a ``__main__`` is a program, which is not to be run."""
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ()), prefix=f"{module.__name__}."):
        if not found.name.endswith(".__main__"):
            yield from _with_modules_below(_module(found.name))


def _kinds_in(module: ModuleType) -> list[type[Object]]:
    """Classes that a module defines or, for a package, has from a module below it; not those imported from elsewhere."""
    own = (module.__name__, f"{module.__name__}.")
    found = [
        value
        for value in vars(module).values()
        if _declares_kind(value) and (value.__module__ == own[0] or value.__module__.startswith(own[1]))
    ]
    return sorted(dict.fromkeys(found), key=lambda cls: cls.gvk())


def _declares_kind(value: Any) -> TypeGuard[type[Object]]:
    return isinstance(value, type) and issubclass(value, Object) and "__resource__" in vars(value)


def _shown(classes: Iterable[type[Object]]) -> str:
    return ", ".join(cls.__name__ for cls in classes) or "none"


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            todo = "run this in the directory that holds it, or install it first"
        else:
            todo = f"install what it imports first{_place(error)}"
        raise Failure(f"cannot import {name}: {error}; {todo}") from error
    except Exception as error:
        told = error.msg if isinstance(error, SyntaxError) else str(error)
        said = ": ".join(part for part in (type(error).__name__, " ".join(told.split())) if part)
        raise Failure(f"cannot import {name}: {said}{_place(error)}; correct it first") from error


def _place(error: Exception) -> str:
    """Where an import failed, in the code that was imported: not in Python's own machinery."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f" ({error.filename}, line {error.lineno})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    # The first frame is this module's own.
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if len(frames) > 1 and frames[-1].filename else ""
