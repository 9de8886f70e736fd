"""Managed fields and server-side apply for served resources: verbs and mutating policies use them."""

from steersman.apiserver.field_managers.scale import (
    SCALE as SCALE,
    ScaledFields as ScaledFields,
    managed_scale as managed_scale,
)
from steersman.apiserver.field_managers.versions import (
    Managed as Managed,
    ServedVersions as ServedVersions,
    managed_of as managed_of,
)
from steersman.apiserver.field_managers.webhook_results import (
    WebhookResults as WebhookResults,
    results_for as results_for,
)
from steersman.apiserver.field_managers.writes import (
    applied as applied,
    described as described,
    forget_new_times as forget_new_times,
    keep_readable as keep_readable,
    manager_of as manager_of,
    updated as updated,
    without_managed as without_managed,
)
