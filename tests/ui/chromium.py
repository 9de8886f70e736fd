"""Chromium without a window, driven by its own protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")


class Tab:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        #: Errors and warnings of the page, such as violations of its policy.
        self.complaints: list[str] = []

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=60)
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            match message.get("method"):
                case "Log.entryAdded" if message["params"]["entry"]["level"] != "verbose":
                    self.complaints.append(message["params"]["entry"]["text"])
                case "Runtime.exceptionThrown":
                    self.complaints.append(str(message["params"]["exceptionDetails"]))

    async def run(self, script: str) -> Any:
        """The value of an expression of JavaScript."""
        result = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, script: str) -> Any:
        """Wait until an expression is true."""
        last = None
        try:
            async with asyncio.timeout(60):
                while not (last := await self.run(script)):  # noqa: ASYNC110 - the page says nothing by itself
                    await asyncio.sleep(0.05)
        except TimeoutError:
            text = await self.run("document.body.innerText")
            raise AssertionError(f"{script} is {last!r}; the page shows: {text}; {self.complaints}") from None
        return last

    async def show(self, *, width: int, height: int, dark: bool = False) -> None:
        """Set the size and the color scheme."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def screenshot(self, path: Path, *, full: bool = False) -> None:
        """Save a picture."""
        shot = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(shot["data"]))


def _port(folder: Path) -> str:
    """The port of the protocol; empty until Chromium listens."""
    file = folder / "DevToolsActivePort"
    lines = file.read_text().splitlines() if file.exists() else []
    return lines[0] if len(lines) > 1 else ""


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Tab]:
    """Run Chromium for a block, with a profile of its own."""
    assert PROGRAM is not None
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--remote-debugging-port=0",
        f"--user-data-dir={folder}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(30):
            while not (port := _port(folder)):
                assert process.returncode is None, "Chromium has ended"
                await asyncio.sleep(0.05)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                targets = await answer.json()
            url = next(each["webSocketDebuggerUrl"] for each in targets if each["type"] == "page")
            async with session.ws_connect(url, max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Log"):
                    await tab.call(f"{domain}.enable")
                yield tab
                await tab.call("Browser.close")
    finally:
        if process.returncode is None:
            try:
                await asyncio.wait_for(process.wait(), 5)
            except TimeoutError:
                process.kill()
        await process.wait()
