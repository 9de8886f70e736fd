"""Registry: the served resources, and how each kind behaves."""

from steersman.apiserver.registry.builtin_resources import (
    GenericStrategy as GenericStrategy,
    builtin_definitions as builtin_definitions,
)
from steersman.apiserver.registry.conversion import Conversion as Conversion
from steersman.apiserver.registry.definition import (
    ALL_VERBS as ALL_VERBS,
    Column as Column,
    Definition as Definition,
    ScalePaths as ScalePaths,
    Subresource as Subresource,
    Tree as Tree,
)
from steersman.apiserver.registry.registry import ResourceRegistry as ResourceRegistry
from steersman.apiserver.registry.strategy import Strategy as Strategy, Surroundings as Surroundings
