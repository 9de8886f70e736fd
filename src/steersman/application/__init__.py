"""Reads the files of an application, and returns the objects that it becomes.

The room reads ``steersman.yaml``, Compose files and Procfiles, and does no other IO.

What the room guarantees
- All errors of all files are reported at once, each with file, line and column.
- A warning lists the keys that have no effect; an unknown key is an error.
- The same files give the same objects: an edit changes only the objects that depend on the edited keys.
"""

from steersman.application.labels import (
    DEPENDS_ON as DEPENDS_ON,
    NO_ADDRESS as NO_ADDRESS,
    ORDER as ORDER,
    PROJECT as PROJECT,
    SERVICE as SERVICE,
)
from steersman.application.model import (
    SCALE_MAX as SCALE_MAX,
    Application as Application,
    ApplicationError as ApplicationError,
    Problem as Problem,
    ServiceDefinition as ServiceDefinition,
    WatchRule as WatchRule,
)
from steersman.application.objects import (
    application_objects as application_objects,
    object_warnings as object_warnings,
)
from steersman.application.source import (
    find_files as find_files,
    is_edited as is_edited,
    load_application as load_application,
    select_services as select_services,
)

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
