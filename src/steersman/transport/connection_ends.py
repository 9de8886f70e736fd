"""The end of a connection, also of one that is closed already.

asyncio's TLS transport loses its protocol when it is closed a second time, and aiohttp closes some connections twice.
Asking such a transport for its unsent bytes raises AttributeError in every Python, and so does aborting it before 3.11.5.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress


def abort(transport: asyncio.Transport) -> None:
    """Close a connection immediately: an orderly close would wait for a peer that may never read again."""
    with suppress(AttributeError):
        transport.abort()


def unsent_bytes(transport: asyncio.Transport) -> int:
    """The bytes that the peer has not taken yet; 0 if the connection is closed for good."""
    try:
        return transport.get_write_buffer_size()
    except AttributeError:
        return 0
