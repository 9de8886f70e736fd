"""Kinds: every stable built-in kind of Kubernetes, typed. Pure: no IO beyond reading the package's own files.

Guarantees
- Each stable group-version is one module: ``from steersman.kinds.apps_v1 import Deployment, DeploymentSpec``.
- Importing this package imports none of them. ``from steersman.kinds import Deployment`` imports the module of that
  kind, in the version that Kubernetes prefers. Import a name that two groups share (``Event``) from its module.
- The modules are generated from kube-apiserver's OpenAPI; continuous integration compares them with it.
- The schemas, with list-map keys, patch strategies and map-key defaults, are data files beside the modules, read on
  first use (`schema_of`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steersman.kinds import index
from steersman.kinds.definitions import (
    definition as definition,
    resolve as resolve,
    resources_of as resources_of,
    schema_of as schema_of,
)
from steersman.kinds.registry import (
    all_group_versions as all_group_versions,
    all_kinds as all_kinds,
    class_of as class_of,
    class_of_definition as class_of_definition,
)

if TYPE_CHECKING:
    from steersman.kinds.index import *  # noqa: F403 - the kinds by name, for type checkers; see __getattr__

__all__: list[str] = []
__all__ += index.__all__


def __getattr__(name: str) -> Any:
    module = index.NAMES.get(name)
    if module is not None:
        return getattr(import_module(f"steersman.kinds.{module}"), name)
    shared = sorted(holder for holder, held in index.KINDS.items() if name in held)
    if shared:
        places = " or ".join(f"steersman.kinds.{holder}" for holder in shared)
        raise AttributeError(f"several groups have a kind {name}; import it from {places}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; import parts of kinds from their module")


def __dir__() -> list[str]:
    return sorted([*globals(), *index.NAMES])
