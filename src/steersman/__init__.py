"""Steersman: declare it, and Steersman keeps it true.

Typed resources, a client for any Kubernetes API server, controllers, an API server in your process, and the real
kube-apiserver in your tests.

This module has the names that most programs need. `steersman.markers` has the constraints of fields, `steersman.errors`
the errors, and other packages (``steersman.controller``, ``steersman.webhooks``, ...) the names for special purposes. Each
name is imported on first use, so a program loads only the packages that it uses. Programs may rely on the names in
``__all__``, here and in those packages: docs/reference.md lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman._version import __version__ as __version__

if TYPE_CHECKING:
    from steersman.aio import utc_now as utc_now
    from steersman.apiserver import ApiServer as ApiServer
    from steersman.client import (
        Client as Client,
        MergePatch as MergePatch,
        Verbs as Verbs,
        retry_on_conflict as retry_on_conflict,
    )
    from steersman.controller import (
        Context as Context,
        Done as Done,
        Reconciler as Reconciler,
        Request as Request,
        Requeue as Requeue,
        RequeueAfter as RequeueAfter,
        TerminalError as TerminalError,
    )
    from steersman.controlplane import ControlPlane as ControlPlane
    from steersman.manager import (
        HttpEndpoints as HttpEndpoints,
        LeaderElection as LeaderElection,
        Manager as Manager,
        Shards as Shards,
    )
    from steersman.objects import (
        Condition as Condition,
        Key as Key,
        Kind as Kind,
        Object as Object,
        ObjectMeta as ObjectMeta,
        PrinterColumn as PrinterColumn,
        Quantity as Quantity,
        Resource as Resource,
        Spec as Spec,
        Status as Status,
        Struct as Struct,
        Unstructured as Unstructured,
        field as field,
        find_condition as find_condition,
        set_condition as set_condition,
        set_owner as set_owner,
    )
    from steersman.patches import JsonPatch as JsonPatch
    from steersman.patterns import (
        Failed as Failed,
        Goto as Goto,
        Next as Next,
        Outputs as Outputs,
        StateMachine as StateMachine,
        Wait as Wait,
        finalizer as finalizer,
        generates as generates,
        reconciles as reconciles,
        reports as reports,
        state as state,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.aio": ["utc_now"],
            "steersman.apiserver": ["ApiServer"],
            "steersman.client": ["Client", "MergePatch", "Verbs", "retry_on_conflict"],
            "steersman.controller": [
                "Context",
                "Done",
                "Reconciler",
                "Request",
                "Requeue",
                "RequeueAfter",
                "TerminalError",
            ],
            "steersman.controlplane": ["ControlPlane"],
            "steersman.manager": ["HttpEndpoints", "LeaderElection", "Manager", "Shards"],
            "steersman.objects": [
                "Condition",
                "Key",
                "Kind",
                "Object",
                "ObjectMeta",
                "PrinterColumn",
                "Quantity",
                "Resource",
                "Spec",
                "Status",
                "Struct",
                "Unstructured",
                "field",
                "find_condition",
                "set_condition",
                "set_owner",
            ],
            "steersman.patches": ["JsonPatch"],
            "steersman.patterns": [
                "Failed",
                "Goto",
                "Next",
                "Outputs",
                "StateMachine",
                "Wait",
                "finalizer",
                "generates",
                "reconciles",
                "reports",
                "state",
            ],
        },
    )

__all__ = [
    "ApiServer",
    "Client",
    "Condition",
    "Context",
    "ControlPlane",
    "Done",
    "Failed",
    "Goto",
    "HttpEndpoints",
    "JsonPatch",
    "Key",
    "Kind",
    "LeaderElection",
    "Manager",
    "MergePatch",
    "Next",
    "Object",
    "ObjectMeta",
    "Outputs",
    "PrinterColumn",
    "Quantity",
    "Reconciler",
    "Request",
    "Requeue",
    "RequeueAfter",
    "Resource",
    "Shards",
    "Spec",
    "StateMachine",
    "Status",
    "Struct",
    "TerminalError",
    "Unstructured",
    "Verbs",
    "Wait",
    "field",
    "finalizer",
    "find_condition",
    "generates",
    "reconciles",
    "reports",
    "retry_on_conflict",
    "set_condition",
    "set_owner",
    "state",
    "utc_now",
]
