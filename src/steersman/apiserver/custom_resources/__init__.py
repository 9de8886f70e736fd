"""Custom resources: what a server serves because of CustomResourceDefinitions."""

from steersman.apiserver.custom_resources.conversion import Converter as Converter
from steersman.apiserver.custom_resources.definitions import definitions_of as definitions_of
from steersman.apiserver.custom_resources.extensions import (
    CustomSubresource as CustomSubresource,
    Validator as Validator,
    extensions_of as extensions_of,
)
from steersman.apiserver.custom_resources.lifecycle import CustomResources as CustomResources
from steersman.apiserver.custom_resources.resource_classes import (
    crds_of as crds_of,
    install_crds as install_crds,
    listed as listed,
    unstored_definitions as unstored_definitions,
)
from steersman.apiserver.custom_resources.strategy import CustomStrategy as CustomStrategy
