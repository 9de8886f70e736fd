"""Custom resources: what a server serves because of CustomResourceDefinitions."""

from steersman.apiserver.custom_resources.conversion import Converter
from steersman.apiserver.custom_resources.definitions import custom_definition, definitions_of
from steersman.apiserver.custom_resources.lifecycle import CustomResources
from steersman.apiserver.custom_resources.resource_classes import crds_of, install_crds, unstored_definitions
from steersman.apiserver.custom_resources.strategy import CustomStrategy

__all__ = [
    "Converter",
    "CustomResources",
    "CustomStrategy",
    "crds_of",
    "custom_definition",
    "definitions_of",
    "install_crds",
    "unstored_definitions",
]
