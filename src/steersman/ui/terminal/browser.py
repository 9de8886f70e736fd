"""Opens a URL in a graphical browser, never in one that uses this terminal."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys


async def open_in_browser(url: str) -> bool:
    """Open a URL. Returns whether a graphical browser exists."""
    has_windows = sys.platform == "darwin" or any(os.environ.get(each) for each in ("DISPLAY", "WAYLAND_DISPLAY"))
    program = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if not has_windows or program is None:
        return False
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        program, url, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )
    try:
        async with asyncio.timeout(2):
            return await process.wait() == 0
    except TimeoutError:
        # The process is the browser itself, which keeps running.
        return True
