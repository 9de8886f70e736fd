"""Programs as setups: a module that is imported again for each start, as in a new process.

Guarantee: nothing that the module, or another one of its package, keeps in variables survives a crash. Other packages are
imported once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import takewhile
from types import CodeType, ModuleType

from steersman.manager import Manager


def program(module: str, attribute: str = "manager") -> Callable[[], Manager]:
    """A setup that imports a module again and returns its manager."""
    package = _Package(module.partition(".")[0])

    def setup() -> Manager:
        found = getattr(package.imported_anew(module), attribute, None)
        if isinstance(found, Manager):
            return found
        if callable(found) and isinstance(made := found(), Manager):
            return made
        raise TypeError(f"{module} has no Manager named {attribute!r}: name the variable or the function that has one")

    return setup


class _Package:
    """Imports modules of a package again, beside those that the process has.

    Every run with a crash does so. It finds and compiles each file once, and reads the names of all modules only if there are
    more of them: reading them writes to their memory, which a forked process then has to copy.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        #: The package's modules that the process has, when it had so many modules in all.
        self._own: tuple[str, ...] = ()
        self._count = 0
        self._known: dict[str, ModuleSpec] = {}

    def imported_anew(self, module: str) -> ModuleType:
        """Import a module, and those of its package that it imports; the process keeps the modules that it has."""
        if len(sys.modules) != self._count:
            self._own = tuple(filter(self._has, sys.modules))
        own = {name: sys.modules.pop(name) for name in self._own if name in sys.modules}
        last = next(reversed(sys.modules))
        sys.meta_path.insert(0, self)
        try:
            return import_module(module)
        finally:
            sys.meta_path.remove(self)
            for name in list(filter(self._has, takewhile(lambda name: name != last, reversed(sys.modules)))):
                del sys.modules[name]
            sys.modules.update(own)
            self._count = len(sys.modules)

    def _has(self, name: str) -> bool:
        return name == self._name or name.startswith(f"{self._name}.")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`: modules of the package, as the other finders find them for the first time."""
        if not self._has(fullname):
            return None
        if fullname not in self._known:
            found = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
            spec = next(filter(None, found), None)
            # Other loaders may do more than to read a file.
            if spec is None or not (_is_folder(spec) or type(spec.loader) is SourceFileLoader):
                return spec
            if spec.origin is not None:
                spec.loader = _CompiledOnce(fullname, spec.origin)
            self._known[fullname] = spec
        return _again(self._known[fullname])


def _is_folder(spec: ModuleSpec) -> bool:
    """Whether it is a package without an ``__init__``."""
    return spec.origin is None and spec.submodule_search_locations is not None


def _again(known: ModuleSpec) -> ModuleSpec | None:
    """The same module, to be loaded once more."""
    if known.origin is None:
        spec = ModuleSpec(known.name, None, is_package=True)
        spec.submodule_search_locations = list(known.submodule_search_locations or ())
        return spec
    return spec_from_file_location(
        known.name, known.origin, loader=known.loader, submodule_search_locations=known.submodule_search_locations
    )


class _CompiledOnce(SourceFileLoader):
    """Loads a module from the code that it had at first."""

    _code: CodeType | None = None

    def get_code(self, fullname: str) -> CodeType | None:
        """See `importlib.abc.InspectLoader`."""
        if self._code is None:
            self._code = super().get_code(fullname)
        return self._code
