"""Objects that are closed at the end of a block."""

from __future__ import annotations

from typing import Self


class Closable:
    """Ends an ``async with`` block with `close`."""

    __slots__ = ()

    async def close(self) -> None:
        """Free everything; closing twice does nothing."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
