"""Storage: where the API server keeps its objects."""

from steersman.apiserver.storage.compaction import compact_forever
from steersman.apiserver.storage.frames import DamagedJournal
from steersman.apiserver.storage.journal import JournaledStorage
from steersman.apiserver.storage.journal_folder import FolderInUse, Fsync, WriteFailed
from steersman.apiserver.storage.memory import MemoryStorage
from steersman.apiserver.storage.protocol import (
    Change,
    Compacted,
    Delivery,
    FutureRevision,
    Mismatch,
    Page,
    Progress,
    Record,
    Storage,
    StorageError,
    Watching,
)

__all__ = [
    "Change",
    "Compacted",
    "DamagedJournal",
    "Delivery",
    "FolderInUse",
    "Fsync",
    "FutureRevision",
    "JournaledStorage",
    "MemoryStorage",
    "Mismatch",
    "Page",
    "Progress",
    "Record",
    "Storage",
    "StorageError",
    "Watching",
    "WriteFailed",
    "compact_forever",
]
