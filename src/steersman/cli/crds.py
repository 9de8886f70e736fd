"""``steersman generate crds``: the CustomResourceDefinitions of resource classes, as YAML."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

from steersman.cli.failure import Failure
from steersman.cli.files import write_files
from steersman.objects import GroupKind, Object
from steersman.schemas import crd_yaml


def generate_crds(modules: Sequence[str], *, output: str | None = None, check: bool = False) -> int:
    """Write the CRDs of all resource classes in these modules; the result is an exit code."""
    if check and output is None:
        raise Failure("--check compares with a file; name it with -o")
    kinds: dict[GroupKind, list[type[Object]]] = {}
    for named in modules:
        for cls in _classes(named):
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


def _classes(named: str) -> list[type[Object]]:
    """The resource classes of ``module``, or the one that ``module:name`` names."""
    name, _, attribute = named.partition(":")
    module = _module(name)
    if attribute:
        found: Any = getattr(module, attribute, None)
        if not _declares_kind(found):
            raise Failure(f"{name} has no resource class {attribute}; it has {_shown(_kinds_in(module))}")
        return [found]
    classes = _kinds_in(module)
    if not classes:
        raise Failure(f"{name} defines no resource class; name a module with a class derived from Resource[...]")
    return classes


def _kinds_in(module: ModuleType) -> list[type[Object]]:
    """Classes defined in a module or, for a package, below it; not those it merely imported from elsewhere."""
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
    """Import a module as ``python -m`` would: the current directory comes first."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise Failure(
            f"cannot import {name}: {error}; run this in the directory that holds it, or install it first"
        ) from error
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(str(error).split())
        raise Failure(
            f"cannot import {name}: {type(error).__name__}: {said} ({place.filename}, line {place.lineno}); correct it first"
        ) from error
