"""State in modules: a process that starts again has none of what the program kept in module variables.

A simulated crash ends no process, so `ModuleState` puts the variables of the program's modules back. Several processes of an
operator share the modules, so it also exchanges the variables whenever another process acts.

Guarantees
- Modules are those of the packages that define the scenario and the operator's own kinds, without the test modules of
  other scenarios.
- Numbers, texts and builtin containers are put back, also those in attributes of the program's own objects in module
  variables, such as a reconciler. What a container holds beside these stays the same object.
- A container in a module variable is the same object for all processes, with the contents of the one that acts.
- An `ExternalSystem` keeps what it holds.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from copy import copy
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from steersman.objects import Object
from steersman.simulation.runs.external_system import ExternalSystem, external_objects
from steersman.simulation.scenario import Scenario

Container = TypeVar("Container", dict[Any, Any], list[Any])

#: The number of a module or object, and the name of a variable in it.
_Variable: TypeAlias = tuple[int, str]

_SCALARS = (bool, int, float, complex, str, bytes, type(None))


class ModuleState:
    """The variables of a program's modules at a moment, and what the processes have changed since; ``process`` acts first."""

    def __init__(self, scenario: Scenario, kinds: Iterable[type[Object]], process: str = "") -> None:
        self._modules = {_module_of(part) for part in (scenario.setup, scenario.workload, *kinds)}
        self._packages = {name.partition(".")[0] for name in self._modules} - {"", "steersman", "builtins"}
        self._variables = [
            (where, namespace, {name: _copied(value) for name, value in namespace.items() if _is_state(name, value)})
            for where, namespace in self._namespaces()
        ]
        self._process = process
        #: What the other processes have changed.
        self._others: dict[str, dict[_Variable, Any]] = {}

    def _namespaces(self) -> Iterator[tuple[str, MutableMapping[str, Any]]]:
        """The modules, and the program's own objects in their variables."""
        for module_name, module in list(sys.modules.items()):
            if module_name.partition(".")[0] not in self._packages:
                continue
            # A test run has hundreds of them, and pytest puts all into one package.
            if _is_test(module_name) and module_name not in self._modules:
                continue
            yield module_name, vars(module)
            for name, value in list(vars(module).items()):
                ours = type(value).__module__.partition(".")[0] in self._packages
                if ours and hasattr(value, "__dict__") and not isinstance(value, type | ExternalSystem):
                    yield f"{module_name}.{name}", vars(value)

    def restore(self, process: str = "") -> list[str]:
        """Put the variables of a process back; returns the names of those that had changed."""
        acting = self._process
        self.enter(process)
        changed = self._changed()
        self._put(dict.fromkeys(changed), {})
        self.enter(acting)
        return [f"{self._variables[number][0]}.{name}" for number, name in changed]

    def enter(self, process: str) -> None:
        """Give the modules the variables of the process that acts from now on."""
        if process == self._process:
            return
        # What is in a container stays the same object: the process may hold it.
        left = {(number, name): copy(self._variables[number][1].get(name)) for number, name in self._changed()}
        entered = self._others.pop(process, {})
        self._put(dict.fromkeys((*left, *entered)), entered)
        self._others[self._process], self._process = left, process

    def _changed(self) -> list[_Variable]:
        return [
            (number, name)
            for number, (_, namespace, variables) in enumerate(self._variables)
            for name, value in variables.items()
            if _differs(namespace.get(name), value)
        ]

    def _put(self, places: Iterable[_Variable], values: Mapping[_Variable, Any]) -> None:
        """Give some variables these values, and the others those of the start."""
        for number, name in places:
            _, namespace, variables = self._variables[number]
            value = values[number, name] if (number, name) in values else _copied(variables[name])
            namespace[name] = _refilled(namespace.get(name), value)


def _differs(present: Any, value: Any) -> bool:
    # A number that is not a number differs from itself.
    return present is not value and (type(present) is not type(value) or present != value)


def _is_test(module_name: str) -> bool:
    last = module_name.rpartition(".")[2]
    return last.startswith("test_") or last.endswith("_test")


def _module_of(part: Any) -> str:
    while isinstance(part, partial):
        part = cast("partial[Any]", part).func
    return getattr(part, "__module__", "") or ""


def _is_state(name: str, value: object) -> bool:
    is_ours = not name.startswith("__") and not any(value is held for held in external_objects().values())
    return is_ours and (type(value) in _SCALARS or isinstance(value, list | dict | set | deque))


def _copied(value: Any) -> Any:
    """A copy that shares nothing but objects that are no builtin containers."""
    if isinstance(value, dict):
        mapping = _emptied(cast("dict[Any, Any]", value))
        mapping.update({key: _copied(each) for key, each in cast("dict[Any, Any]", value).items()})
        return mapping
    if isinstance(value, list | deque):
        entries = _emptied(cast("list[Any]", value))
        entries.extend(map(_copied, cast("list[Any]", value)))
        return entries
    return copy(cast("set[Any]", value)) if isinstance(value, set) else value


def _emptied(container: Container) -> Container:
    """An empty container of the same class."""
    emptied = copy(container)
    emptied.clear()
    return emptied


def _refilled(present: Any, value: Any) -> Any:
    """The same container with other contents: other modules may have imported it."""
    if type(present) is type(value) and isinstance(present, list | deque):
        entries = cast("list[Any]", present)
        entries.clear()
        entries.extend(value)
        return entries
    if type(present) is type(value) and isinstance(present, dict | set):
        members = cast("dict[Any, Any]", present)
        members.clear()
        members.update(value)
        return members
    return value
