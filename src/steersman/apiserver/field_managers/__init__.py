"""Managed fields and server-side apply for served resources; only verbs use it."""

from steersman.apiserver.field_managers.managers import (
    applied,
    described,
    forget_new_times,
    keep_readable,
    manager_of,
    updated,
    without_managed,
)
from steersman.apiserver.field_managers.scaling import SCALE, ScaledFields, managed_scale
from steersman.apiserver.field_managers.versions import Managed, ServedVersions, managed_of

__all__ = [
    "SCALE",
    "Managed",
    "ScaledFields",
    "ServedVersions",
    "applied",
    "described",
    "forget_new_times",
    "keep_readable",
    "managed_of",
    "managed_scale",
    "manager_of",
    "updated",
    "without_managed",
]
