"""CustomResourceDefinitions as objects: their form, their rules, their conditions."""

from steersman.apiserver.registry.crd.defaults import default_crd as default_crd, empty_crd as empty_crd
from steersman.apiserver.registry.crd.validation import (
    validate_crd as validate_crd,
    validate_crd_status as validate_crd_status,
    validate_crd_update as validate_crd_update,
)
