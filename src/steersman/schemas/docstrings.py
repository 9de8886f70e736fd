"""Descriptions from source code: the docstring of a class, and the string below a field.

```python
class SiteSpec(Spec):
    replicas: int = 1
    \"\"\"How many pods serve the site.\"\"\"
```

Python drops the second kind, so it is read from the source. Without source there is no description, and no error.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any, Generic


def class_description(cls: type[Any]) -> str:
    """The docstring of the class itself, without inherited ones."""
    own = cls.__dict__.get("__doc__")
    return inspect.cleandoc(own) if isinstance(own, str) else ""


@cache
def field_descriptions(cls: type[Any]) -> dict[str, str]:
    """The strings below the fields of a class and its base classes, by Python name."""
    found: dict[str, str] = {}
    for ancestor in reversed(cls.__mro__):
        # Generic has no fields, and its module is large.
        found |= own_descriptions(ancestor) if ancestor is not Generic else {}
    return found


def own_descriptions(cls: type[Any]) -> dict[str, str]:
    """The strings below the fields that a class itself declares, by Python name."""
    module = sys.modules.get(cls.__module__)
    return _descriptions(module).get(cls.__qualname__, {}) if module is not None else {}


@cache
def _descriptions(module: ModuleType) -> dict[str, dict[str, str]]:
    """The strings below the fields of all classes in the source of a module, by qualified name.

    Parses a module once for all of its classes, and does not keep the tree: it takes ten times the memory.
    """
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return {}  # built at run time, typed into a shell, or shipped without source
    found: dict[str, dict[str, str]] = {}
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    for prefix, node in waiting:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.ClassDef(name=name):
                    if f"{prefix}{name}" not in found:
                        found[f"{prefix}{name}"] = _fields(child)
                    waiting.append((f"{prefix}{name}.", child))
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    waiting.append((f"{prefix}{name}.<locals>.", child))
                case ast.stmt():
                    waiting.append((prefix, child))
                case _:
                    pass
    return found


def _fields(definition: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, below in pairwise(definition.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            value = below.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = inspect.cleandoc(value.value)
    return found
