"""CustomResourceDefinitions as objects: their form, their rules, their conditions."""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: a server that serves no CRDs needs none of their rules.
if TYPE_CHECKING:
    from steersman.apiserver.registry.crd.defaults import default_crd as default_crd, empty_crd as empty_crd
    from steersman.apiserver.registry.crd.validation import (
        validate_crd as validate_crd,
        validate_crd_status as validate_crd_status,
        validate_crd_update as validate_crd_update,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.apiserver.registry.crd.defaults": ["default_crd", "empty_crd"],
            "steersman.apiserver.registry.crd.validation": [
                "validate_crd",
                "validate_crd_status",
                "validate_crd_update",
            ],
        },
    )
