"""``steersman generate crds``: the CustomResourceDefinitions of resource classes, as YAML."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

from steersman.cli.console import show_data
from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import write_files
from steersman.cli.modules import load_module, look_here_first, module_and_name
from steersman.objects import GroupKind, Object
from steersman.schemas import crd_yaml


def generate_crds(modules: Sequence[str], *, output: str | None = None, check: bool = False) -> int:
    """Write the CRDs of all resource classes in these modules; returns an exit code."""
    if check and output is None:
        raise Misuse("--check compares with a file; name the file with -o")
    look_here_first()
    wanted = [module_and_name(text, "class", nothing="all of them") for text in modules]
    kinds: dict[GroupKind, list[type[Object]]] = {}
    for module, attribute in wanted:
        for cls in resource_classes(module, attribute):
            versions = kinds.setdefault(cls.gvk().group_kind, [])
            if cls not in versions:
                versions.append(cls)
    try:
        text = "".join(crd_yaml(*versions) for _, versions in sorted(kinds.items()))
    except TypeError as error:
        raise Failure(str(error)) from error
    if output is None:
        show_data(text)
        return 0
    return write_files({Path(output): text}, check=check)


def resource_classes(name: str, attribute: str) -> list[type[Object]]:
    """The resource classes of a module and, for a package, of all its submodules; or only the named one."""
    module = load_module(name)
    if attribute:
        found: Any = getattr(module, attribute, None)
        if not _declares_kind(found):
            raise Failure(f"{name} has no resource class {attribute}; it has {_shown(_kinds_in(module))}")
        return [found]
    found_kinds = dict.fromkeys(cls for each in _with_modules_below(module) for cls in _kinds_in(each))
    if not found_kinds:
        raise Failure(f"{name} has no resource class; name a module with a class derived from Resource[...]")
    return sorted(found_kinds, key=lambda cls: cls.gvk())


def _with_modules_below(module: ModuleType) -> Iterator[ModuleType]:
    """A module and, for a package, its submodules, except ``__main__``, which would run the program."""
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ()), prefix=f"{module.__name__}."):
        if not found.name.endswith(".__main__"):
            yield from _with_modules_below(load_module(found.name))


def _kinds_in(module: ModuleType) -> list[type[Object]]:
    """Classes defined in a module or, for a package, in a submodule; not those imported from elsewhere."""
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
