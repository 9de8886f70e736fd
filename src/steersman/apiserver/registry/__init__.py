"""Registry: the served resources, and how each kind behaves."""

from steersman.apiserver.registry.builtin_resources import (
    GenericStrategy as GenericStrategy,
    builtin_definitions as builtin_definitions,
)
from steersman.apiserver.registry.definition import (
    ALL_VERBS as ALL_VERBS,
    Column as Column,
    Conversion as Conversion,
    Definition as Definition,
    ScalePaths as ScalePaths,
    Strategy as Strategy,
    Subresource as Subresource,
    Surroundings as Surroundings,
    Tree as Tree,
)
from steersman.apiserver.registry.registry import ResourceRegistry as ResourceRegistry
