"""Protobuf: reads messages of built-in kinds into JSON trees, and writes JSON as messages."""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: clients of custom kinds use JSON.
if TYPE_CHECKING:
    from steersman.apiserver.protobuf.reader import (
        Envelope as Envelope,
        Malformed as Malformed,
        Message as Message,
        fields_of as fields_of,
        read_envelope as read_envelope,
        read_message as read_message,
    )
    from steersman.apiserver.protobuf.writer import (
        ListWriter as ListWriter,
        has_protobuf as has_protobuf,
        to_protobuf as to_protobuf,
        watch_frame as watch_frame,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.apiserver.protobuf.reader": [
                "Envelope",
                "Malformed",
                "Message",
                "fields_of",
                "read_envelope",
                "read_message",
            ],
            "steersman.apiserver.protobuf.writer": ["ListWriter", "has_protobuf", "to_protobuf", "watch_frame"],
        },
    )
