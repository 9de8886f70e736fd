"""Errors about stored objects that cannot be converted to the version of a request."""

from __future__ import annotations

from steersman.apiserver.context import VerbContext
from steersman.apiserver.errors import RequestRejected, internal, unnamed
from steersman.apiserver.storage import Record


async def read_one(context: VerbContext, record: Record) -> Record:
    """A stored object in the version of a request that reads it."""
    try:
        return await context.readable(record)
    except RequestRejected as refused:
        definition = context.definition
        key = f"/{definition.gvk.group}/{definition.resource}/{record.key.removeprefix(definition.prefix)}"
        why = f"ResourceVersion: 0, AdditionalErrorMsg: {_words(record, refused)}"
        raise internal(f"StorageError: corrupt object, Code: 7, Key: {key}, {why}") from None


async def read_for_write(context: VerbContext, record: Record) -> Record:
    """A stored object in the version of a request that changes it."""
    try:
        return await context.readable(record)
    except RequestRejected as refused:
        raise unnamed(_words(record, refused)) from None


def _words(record: Record, refused: RequestRejected) -> str:
    return f"object not decodable revision={record.modified}: {refused.status.message}"
