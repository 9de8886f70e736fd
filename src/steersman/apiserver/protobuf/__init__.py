"""Protobuf: reads messages of built-in kinds into JSON trees, and writes JSON as messages."""

from steersman.apiserver.protobuf.reader import (
    Envelope as Envelope,
    Malformed as Malformed,
    read_envelope as read_envelope,
    read_message as read_message,
)
from steersman.apiserver.protobuf.writer import (
    has_protobuf as has_protobuf,
    to_protobuf as to_protobuf,
    watch_frame as watch_frame,
)
