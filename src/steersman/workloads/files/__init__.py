"""Files whose change restarts a workload, and files of output that grow: see `file_changes`.

Guarantees
- A change of a file that a glob matches is reported, also in folders that are created later.
- A limit that leaves files unwatched is reported, with what to do.
- Changes in ``.git`` are never reported.
- When the block of a watcher ends, nothing is watched.
"""

from steersman.workloads.files.file_changes import FileChanges as FileChanges
from steersman.workloads.files.globs import escaped as escaped, matches as matches, roots as roots
from steersman.workloads.files.inotify_watcher import InotifyWatcher as InotifyWatcher
from steersman.workloads.files.search import has_match as has_match
from steersman.workloads.files.watcher import (
    FileListener as FileListener,
    FileWatcher as FileWatcher,
    SimulatedFileWatcher as SimulatedFileWatcher,
    Watched as Watched,
)
