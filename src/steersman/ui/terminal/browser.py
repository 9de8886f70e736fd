"""Opens a URL in a graphical browser, never in one that uses this terminal.

Guarantee: no other user of the machine can use the URL, although every user can read the arguments of a browser. On Linux
the URL works only for processes of this user (`steersman.ui.page.access`). Elsewhere the argument is a file that only
this user can read, and that leads to the URL.
"""

from __future__ import annotations

import asyncio
import html
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

#: Seconds for which the file exists.
_FILE_SECONDS = 20.0


def browser_program() -> str | None:
    """The program that opens URLs; None without a graphical browser."""
    has_windows = sys.platform == "darwin" or any(os.environ.get(each) for each in ("DISPLAY", "WAYLAND_DISPLAY"))
    return shutil.which("open" if sys.platform == "darwin" else "xdg-open") if has_windows else None


async def open_in_browser(program: str, url: str) -> bool:
    """Open a URL. Returns whether a browser opened it."""
    if sys.platform == "linux":
        return await _run(program, url)
    with redirect_file(url) as file:
        opened = await _run(program, str(file))
        # The browser reads the file after its program has ended.
        await asyncio.sleep(_FILE_SECONDS if opened else 0.0)
    return opened


@contextmanager
def redirect_file(url: str) -> Generator[Path]:
    """A file that leads a browser to a URL, and that only this user can read."""
    number, name = tempfile.mkstemp(prefix="steersman-page-", suffix=".html")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(url)}">\n')
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


async def _run(program: str, argument: str) -> bool:
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        program, argument, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )
    try:
        async with asyncio.timeout(2):
            return await process.wait() == 0
    except TimeoutError:
        # The process is the browser itself, which keeps running.
        return True
