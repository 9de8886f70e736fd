"""Storage: where the API server keeps its objects."""

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
    "Delivery",
    "FutureRevision",
    "MemoryStorage",
    "Mismatch",
    "Page",
    "Progress",
    "Record",
    "Storage",
    "StorageError",
    "Watching",
]
