"""Custom resources: what a server serves because of CustomResourceDefinitions."""

from steersman.apiserver.custom_resources.conversion import Converter
from steersman.apiserver.custom_resources.declared import declared, declared_definitions, install_declared
from steersman.apiserver.custom_resources.definitions import custom_definition, definitions_of
from steersman.apiserver.custom_resources.lifecycle import CustomResources
from steersman.apiserver.custom_resources.strategy import CustomStrategy
from steersman.apiserver.custom_resources.terminating import Terminating

__all__ = [
    "Converter",
    "CustomResources",
    "CustomStrategy",
    "Terminating",
    "custom_definition",
    "declared",
    "declared_definitions",
    "definitions_of",
    "install_declared",
]
