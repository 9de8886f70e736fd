"""Registry: the served resources, and how each kind behaves."""

from steersman.apiserver.registry.builtin_resources import (
    GenericStrategy,
    builtin_definitions,
    generic_definitions,
)
from steersman.apiserver.registry.definition import (
    ALL_VERBS,
    Column,
    Conversion,
    Definition,
    ScalePaths,
    Strategy,
    Subresource,
    Surroundings,
    Tree,
)
from steersman.apiserver.registry.registry import Registry

__all__ = [
    "ALL_VERBS",
    "Column",
    "Conversion",
    "Definition",
    "GenericStrategy",
    "Registry",
    "ScalePaths",
    "Strategy",
    "Subresource",
    "Surroundings",
    "Tree",
    "builtin_definitions",
    "generic_definitions",
]
