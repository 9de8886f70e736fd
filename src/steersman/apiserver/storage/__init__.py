"""Storage: where the API server keeps its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.apiserver.storage.compaction import compact_forever as compact_forever
from steersman.apiserver.storage.memory import MemoryStorage as MemoryStorage
from steersman.apiserver.storage.protocol import (
    Change as Change,
    Compacted as Compacted,
    FutureRevision as FutureRevision,
    Mismatch as Mismatch,
    Page as Page,
    Record as Record,
    Storage as Storage,
    StorageError as StorageError,
    Watching as Watching,
    settled as settled,
)

# Imported on first use: most servers in tests keep their objects in memory.
if TYPE_CHECKING:
    from steersman.apiserver.storage.frames import DamagedJournal as DamagedJournal
    from steersman.apiserver.storage.journal import JournaledStorage as JournaledStorage
    from steersman.apiserver.storage.journal_folder import (
        FolderInUse as FolderInUse,
        Fsync as Fsync,
        WriteFailed as WriteFailed,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.apiserver.storage.frames": ["DamagedJournal"],
            "steersman.apiserver.storage.journal": ["JournaledStorage"],
            "steersman.apiserver.storage.journal_folder": ["FolderInUse", "Fsync", "WriteFailed"],
        },
    )
