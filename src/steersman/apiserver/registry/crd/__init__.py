"""CustomResourceDefinitions as objects: their form, their rules, their conditions."""

from steersman.apiserver.registry.crd.form import default_crd, empty_crd
from steersman.apiserver.registry.crd.validation import validate_crd, validate_crd_status, validate_crd_update

__all__ = ["default_crd", "empty_crd", "validate_crd", "validate_crd_status", "validate_crd_update"]
