"""State in modules: a process that starts again has none of what the program kept in module variables.

A simulated crash ends no process, so `ModuleState` puts the variables of the program's modules back.

Guarantees
- Modules are those of the packages that define the scenario and the operator's own kinds.
- Numbers, texts and builtin containers are put back, also those in attributes of the program's own objects in module
  variables, such as a reconciler. What a container holds beside these stays the same object.
- An `ExternalSystem` keeps what it holds.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, MutableMapping
from copy import copy
from functools import partial
from typing import Any, TypeVar, cast

from steersman.objects import Object
from steersman.simulation.runs.external_system import ExternalSystem, external_objects
from steersman.simulation.scenario import Scenario

Container = TypeVar("Container", dict[Any, Any], list[Any])

_SCALARS = (bool, int, float, complex, str, bytes, type(None))


class ModuleState:
    """The variables of a program's modules at a moment."""

    def __init__(self, scenario: Scenario, kinds: Iterable[type[Object]]) -> None:
        names = {_module_of(part).partition(".")[0] for part in (scenario.setup, scenario.workload, *kinds)}
        self._packages = names - {"", "steersman", "builtins"}
        self._variables = [
            (where, namespace, {name: _copied(value) for name, value in namespace.items() if _is_state(name, value)})
            for where, namespace in self._namespaces()
        ]

    def _namespaces(self) -> Iterator[tuple[str, MutableMapping[str, Any]]]:
        """The modules, and the program's own objects in their variables."""
        for module_name, module in list(sys.modules.items()):
            if module_name.partition(".")[0] not in self._packages:
                continue
            yield module_name, vars(module)
            for name, value in list(vars(module).items()):
                ours = type(value).__module__.partition(".")[0] in self._packages
                if ours and hasattr(value, "__dict__") and not isinstance(value, type | ExternalSystem):
                    yield f"{module_name}.{name}", vars(value)

    def restore(self) -> list[str]:
        """Put the variables back; returns the names of those that had changed."""
        changed: list[str] = []
        for where, namespace, variables in self._variables:
            for name, value in variables.items():
                present = namespace.get(name)
                # A number that is not a number differs from itself.
                if present is not value and (type(present) is not type(value) or present != value):
                    changed.append(f"{where}.{name}")
                    namespace[name] = _refilled(present, value)
        return changed


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
        entries.extend(_copied(value))
        return entries
    if type(present) is type(value) and isinstance(present, dict | set):
        members = cast("dict[Any, Any]", present)
        members.clear()
        members.update(_copied(value))
        return members
    return _copied(value)
