"""A client for the terminal of a program; `zygote.terminal` is the server."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import TracebackType
from typing import Self

_FRAME = 0xFFFF


class TerminalConnection:
    """Attaches to the terminal of an Executable, by the path in ``status.terminalSocketPath``.

    Use it with ``async with``. The end of the block detaches; the program keeps running.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        path = Path(self._path)
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # By descriptor, because a socket path is limited to 107 bytes.
            short = f"/proc/self/fd/{folder}/{path.name}"
            self._reader, self._writer = await asyncio.open_unix_connection(short)
        finally:
            os.close(folder)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    async def read(self) -> bytes:
        """Read output of the program, starting with its latest output. Returns no bytes when the program has ended."""
        assert self._reader is not None, "use the connection inside its async with block"
        try:
            return await self._reader.read(65536)
        except ConnectionError:
            return b""

    def write(self, data: bytes) -> None:
        """Send input to the program."""
        for start in range(0, len(data), _FRAME):
            piece = data[start : start + _FRAME]
            self._send(b"d" + len(piece).to_bytes(2, "big") + piece)

    def resize(self, *, columns: int, rows: int) -> None:
        """Change the size of the terminal; the program gets SIGWINCH."""
        self._send(b"r" + min(columns, _FRAME).to_bytes(2, "big") + min(rows, _FRAME).to_bytes(2, "big"))

    def _send(self, frame: bytes) -> None:
        assert self._writer is not None, "use the connection inside its async with block"
        self._writer.write(frame)
