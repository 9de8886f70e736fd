"""The developer control plane: processes, containers and services as objects.

`DeveloperControlPlane` owns a server, the controllers (`controllers`) and their outside world (`parts`).

What the room guarantees
- **No orphans.** On Linux every process ends with its session: a daemonized grandchild too, also after kill -9. What
  cannot be guaranteed on another system is refused.
- State moves through the API alone: what a dashboard shows is what any client can read.
- A service keeps its address between runs.
"""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.workloads.kinds import (
    GROUP as GROUP,
    KINDS as KINDS,
    RESTARTED_AT as RESTARTED_AT,
    STOPPED as STOPPED,
    VERSION as VERSION,
)

# Imported on first use: a program that only needs the kinds needs no server.
if TYPE_CHECKING:
    from steersman.workloads.containers import (
        ContainerRunner as ContainerRunner,
        ContainerRuntimeError as ContainerRuntimeError,
        attach_arguments as attach_arguments,
        reported_error as reported_error,
    )
    from steersman.workloads.containers.container_record import recorded_runtimes as recorded_runtimes
    from steersman.workloads.control_plane import (
        DeveloperControlPlane as DeveloperControlPlane,
        PartsFactory as PartsFactory,
    )
    from steersman.workloads.environment import MASK as MASK, masked as masked
    from steersman.workloads.files import (
        FileWatcher as FileWatcher,
        Watched as Watched,
        escaped as escaped,
        has_match as has_match,
    )
    from steersman.workloads.launch_subresource import ProgramContext as ProgramContext, read_context as read_context
    from steersman.workloads.linked_files import open_owned as open_owned, open_readable as open_readable
    from steersman.workloads.monitored_process import (
        is_suspended as is_suspended,
        start_time as start_time,
        wait_for_end as wait_for_end,
    )
    from steersman.workloads.parts import (
        Parts as Parts,
        real_parts as real_parts,
        simulated_parts as simulated_parts,
    )
    from steersman.workloads.processes import (
        CannotRun as CannotRun,
        ForegroundCommand as ForegroundCommand,
        TerminalConnection as TerminalConnection,
        kill_session_processes as kill_session_processes,
        run_in_foreground as run_in_foreground,
    )
    from steersman.workloads.session import (
        SESSION_RECORD as SESSION_RECORD,
        check_state_home as check_state_home,
        open_session as open_session,
        session_folder as session_folder,
        state_home as state_home,
        trusted_users as trusted_users,
        write_private as write_private,
    )
    from steersman.workloads.templates import reached_services as reached_services
    from steersman.workloads.transitions import TRANSITIONS as TRANSITIONS
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.workloads.containers": [
                "ContainerRunner",
                "ContainerRuntimeError",
                "attach_arguments",
                "reported_error",
            ],
            "steersman.workloads.containers.container_record": ["recorded_runtimes"],
            "steersman.workloads.control_plane": ["DeveloperControlPlane", "PartsFactory"],
            "steersman.workloads.environment": ["MASK", "masked"],
            "steersman.workloads.files": ["FileWatcher", "Watched", "escaped", "has_match"],
            "steersman.workloads.launch_subresource": ["ProgramContext", "read_context"],
            "steersman.workloads.linked_files": ["open_owned", "open_readable"],
            "steersman.workloads.monitored_process": ["is_suspended", "start_time", "wait_for_end"],
            "steersman.workloads.parts": ["Parts", "real_parts", "simulated_parts"],
            "steersman.workloads.processes": [
                "CannotRun",
                "ForegroundCommand",
                "TerminalConnection",
                "kill_session_processes",
                "run_in_foreground",
            ],
            "steersman.workloads.session": [
                "SESSION_RECORD",
                "check_state_home",
                "open_session",
                "session_folder",
                "state_home",
                "trusted_users",
                "write_private",
            ],
            "steersman.workloads.templates": ["reached_services"],
            "steersman.workloads.transitions": ["TRANSITIONS"],
        },
    )

__all__ = [
    "DeveloperControlPlane",
    "TerminalConnection",
]
