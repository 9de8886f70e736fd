"""The session of an application on this machine, one for each folder and project name.

`Project` starts a developer control plane for an application, applies its objects and watches its files.
`find_session` finds the session of another process.

What the room guarantees
- Two folders, or two project names, are isolated: each has its own server, state, networks and volumes.
- The next session cleans up after a killed one.
- An edit creates new objects, updates or replaces changed ones and deletes undeclared ones. No other service restarts.
- An edit with an error is reported and changes nothing.
- A scale that does not fit is rejected, and never keeps an edit from being applied.
- If the record of a session is removed, the session stops in order.
"""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.projects.identity import ProjectError as ProjectError, ProjectIdentity as ProjectIdentity
from steersman.projects.scales import outdated_scales as outdated_scales, with_scales as with_scales
from steersman.projects.session_record import (
    SCALES as SCALES,
    SELECTION as SELECTION,
    SessionRecord as SessionRecord,
    SessionRunning as SessionRunning,
    clean_session as clean_session,
    find_session as find_session,
    find_sessions as find_sessions,
    has_owner as has_owner,
    locked as locked,
    read_record as read_record,
    wait_for_session as wait_for_session,
    write_record as write_record,
)
from steersman.projects.source import ApplicationSource as ApplicationSource, ServiceSelection as ServiceSelection
from steersman.workloads import state_home as state_home

# Imported on first use: a command that finds a session needs no server.
if TYPE_CHECKING:
    from steersman.projects.changes import (
        AppliedChanges as AppliedChanges,
        apply_application as apply_application,
        apply_objects as apply_objects,
    )
    from steersman.projects.project import Project as Project
    from steersman.projects.unfinished_work import stopping_work as stopping_work
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.projects.changes": ["AppliedChanges", "apply_application", "apply_objects"],
            "steersman.projects.project": ["Project"],
            "steersman.projects.unfinished_work": ["stopping_work"],
        },
    )

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
