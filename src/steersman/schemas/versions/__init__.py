"""What the versions of a kind share: what a change of its definition would remove or break, and objects without some parts. Pure."""

from steersman.schemas.versions.definition_changes import (
    DefinitionChange as DefinitionChange,
    definition_changes as definition_changes,
)
from steersman.schemas.versions.definition_losses import (
    removed_parts as removed_parts,
    version_differences as version_differences,
)
from steersman.schemas.versions.partial_objects import convert_parts as convert_parts, lacks_parts as lacks_parts
