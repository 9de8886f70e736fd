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
import textwrap
from functools import cache
from itertools import pairwise
from typing import Any


def class_description(cls: type[Any]) -> str:
    """The docstring of the class itself, without inherited ones."""
    own = cls.__dict__.get("__doc__")
    return inspect.cleandoc(own) if isinstance(own, str) else ""


@cache
def field_descriptions(cls: type[Any]) -> dict[str, str]:
    """The strings below the fields of a class and its base classes, by Python name."""
    found: dict[str, str] = {}
    for ancestor in reversed(cls.__mro__):
        found |= _own_descriptions(ancestor)
    return found


@cache
def _own_descriptions(cls: type[Any]) -> dict[str, str]:
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return {}  # built at run time, typed into a shell, or shipped without source
    if not body or not isinstance(body[0], ast.ClassDef):
        return {}
    found: dict[str, str] = {}
    statements = body[0].body
    for field, below in pairwise(statements):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            value = below.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = inspect.cleandoc(value.value)
    return found
