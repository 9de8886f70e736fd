"""Watch streams: bytes to frames and back.

kube-apiserver ends every frame of a JSON watch with a newline, and JSON text contains none, so a stream is split at
newlines, wherever the network cut it.

Guarantees
- Splitting takes linear time, however small the pieces are, and buffers at most one frame of `max_frame` bytes; a
  longer one is a `ProtocolError`.
- A frame cut off by the end of the stream is an error, never an event.
- A frame's object is a copy of its own bytes; nothing keeps the stream's buffer alive.
"""

from typing import Literal, cast

import msgspec

from steersman.errors import UNREADABLE, ProtocolError

FrameType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]

_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})

#: The default limit of a frame; ten times the limit of a stored object.
MAX_FRAME = 16 * 1024 * 1024


class WatchFrame(msgspec.Struct, frozen=True):
    """One event of a watch: its type, and the object as received bytes."""

    type: FrameType
    object: bytes


class FrameSplitter:
    """Splits a byte stream into frames: feed it chunks as they arrive, and call `finish` at the end of the stream."""

    __slots__ = ("_max_frame", "_pending")

    def __init__(self, *, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._pending = bytearray()

    @property
    def pending(self) -> int:
        """How many bytes of an incomplete frame are buffered."""
        return len(self._pending)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add bytes and return the frames they complete, without their newlines."""
        pending = self._pending
        lines = chunk.split(b"\n")
        if len(pending) + len(chunk) > self._max_frame:
            self._check(lines)
        if len(lines) == 1:
            # a bytearray grows in amortized constant time: joining at every chunk would be quadratic
            pending += chunk
            return []
        if pending:
            pending += lines[0]
            lines[0] = bytes(pending)
        self._pending = bytearray(lines.pop())
        return [line for line in lines if line and not line.isspace()]

    def finish(self) -> list[bytes]:
        """End the stream: return a last frame without its newline; raises if it was cut off."""
        last = bytes(self._pending)
        self._pending = bytearray()
        if not last or last.isspace():
            return []
        try:
            _raw_decoder.decode(last)
        except (msgspec.DecodeError, RecursionError):
            raise ProtocolError(f"the watch stream ended inside a frame, after {len(last)} bytes of it") from None
        return [last]

    def _check(self, lines: list[bytes]) -> None:
        if max(len(self._pending) + len(lines[0]), *map(len, lines)) > self._max_frame:
            self._pending = bytearray()
            raise ProtocolError(
                f"a frame of the watch stream is longer than {self._max_frame} bytes:"
                " is this a Kubernetes API server? If objects of that size are expected, allow larger frames"
            )


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


_raw_decoder = msgspec.json.Decoder(msgspec.Raw)
_event_decoder = msgspec.json.Decoder(_WatchEvent)


def decode_frame(frame: bytes) -> WatchFrame:
    """Parse one frame without decoding its object; raises ProtocolError if it is not a watch event."""
    try:
        event = _event_decoder.decode(frame)
    except UNREADABLE as error:
        # the frame is not shown: it may contain a Secret
        raise ProtocolError(f"the server sent an invalid watch frame of {len(frame)} bytes: {error}") from None
    if event.type not in _TYPES:
        raise ProtocolError(f"the server sent a watch event of unknown type {event.type[:40]!r}")
    return WatchFrame(cast("FrameType", event.type), bytes(event.object))


def encode_frame(type_: FrameType, obj: bytes) -> bytes:
    """Print one event as a server sends it, with a newline; `obj` is JSON without newlines."""
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), obj)
