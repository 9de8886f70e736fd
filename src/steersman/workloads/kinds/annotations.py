"""Annotations that restart, stop and start an ExecutableReplicaSet or a Container, and that explain a Service."""

from __future__ import annotations

from typing import Final

from steersman.objects import Object

#: A new value, such as the current time, restarts the workload in any state.
RESTARTED_AT: Final = "steersman.dev/restarted-at"
#: ``true`` stops the workload and keeps it stopped; removing the annotation starts it again.
STOPPED: Final = "steersman.dev/stopped"
#: The message of a workload that the annotation has stopped.
STOPPED_MESSAGE: Final = f"Stopped by the annotation {STOPPED}; remove the annotation to start it again."

#: Annotation of a Service: where the user sets its port, for messages; without it they name ``spec.port``.
PORT_SETTING: Final = "steersman.dev/port-setting"


def is_stopped(obj: Object) -> bool:
    """Whether an annotation keeps a workload stopped."""
    return (obj.metadata.annotations or {}).get(STOPPED, "").lower() == "true"


def requested_restart(obj: Object) -> str:
    """The value of the annotation that requests a restart; empty without it."""
    return (obj.metadata.annotations or {}).get(RESTARTED_AT, "")
