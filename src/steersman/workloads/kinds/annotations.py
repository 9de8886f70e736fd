"""Annotations that restart, stop and start workloads, explain a Service, and say which names may change."""

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

#: Annotation of a Container or ContainerNetwork: ``true`` if its name in the runtime gets a suffix when another has it.
GENERATED_NAME: Final = "steersman.dev/generated-name"


def runtime_names(obj: Object, name: str) -> tuple[str, ...]:
    """The names in the runtime for an object, in the order in which they are tried."""
    generated = (obj.metadata.annotations or {}).get(GENERATED_NAME, "").lower() == "true"
    return (name, f"{name}-{obj.uid[:8]}") if generated else (name,)


def is_stopped(obj: Object) -> bool:
    """Whether an annotation keeps a workload stopped."""
    return (obj.metadata.annotations or {}).get(STOPPED, "").lower() == "true"


def requested_restart(obj: Object) -> str:
    """The value of the annotation that requests a restart; empty without it."""
    return (obj.metadata.annotations or {}).get(RESTARTED_AT, "")
