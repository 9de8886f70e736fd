"""Runs the terminal view: reads keys, log lines and changes of services, and draws frames.

Guarantees
- The terminal is restored however the view ends: by a key, an error, a cancellation, SIGTERM or SIGHUP.
- While the view is suspended or in the background, it neither reads nor writes the terminal.
- A key is handled in the next turn of the event loop, however much the services print.
- Without changes, the view computes one frame a second.
"""

from __future__ import annotations

import asyncio
import codecs
import locale
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

import msgspec

from steersman import aio
from steersman.errors import ApiError
from steersman.ui.board import Board
from steersman.ui.refusal import ActionRefused
from steersman.ui.terminal.attachment import Attachment, no_terminal_words, terminal_socket
from steersman.ui.terminal.browser import browser_program, open_in_browser
from steersman.ui.terminal.frame import Scene, frame, log_pane
from steersman.ui.terminal.keys import ESCAPE_TIMEOUT, KeyParser, KeyPress
from steersman.ui.terminal.log_buffer import LogBuffers
from steersman.ui.terminal.look import ASCII, UNICODE
from steersman.ui.terminal.screen import Screen
from steersman.ui.terminal.view import Action, Search, View
from steersman.workloads import TerminalConnection

#: Seconds between two frames that no key caused.
_FRAME: Final = 0.04
#: Seconds between two frames without a change, for ages and countdowns.
_TICK: Final = 1.0
#: Seconds before the logs are opened again after an error.
_RETRY: Final = 0.5


class PageLink(Protocol):
    """Returns a new link to the page; with ``own_user``, one that only processes of this user can use."""

    def __call__(self, *, own_user: bool = False) -> str: ...


class TerminalOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the view shows beside the services."""

    title: str = "steersman up"
    page_url: str | PageLink = ""
    """The URL that ``o`` opens, or a function that returns a new link each time."""
    question: str = "Stop all services and quit?"
    """The confirmation question of ``q``."""
    farewell: str = "Stopping all services; press Ctrl-C to kill them"
    """The message after the user has quit."""
    notices: aio.Channel[str] | None = None
    """Messages to show, such as errors of an edited file; each stays until the next key."""


#: Called when the view quits: with SIGINT for Ctrl-C, with None for ``q``, or with the signal that arrived.
QuitCallback = Callable[[signal.Signals | None], None]


def has_terminal(environment: Mapping[str, str]) -> bool:
    """Whether the view can run: stdin and stdout are a terminal with cursor control."""
    return environment.get("TERM", "dumb") != "dumb" and sys.stdin.isatty() and sys.stdout.isatty()


async def run_terminal(
    board: Board,
    *,
    on_quit: QuitCallback,
    options: TerminalOptions | None = None,
) -> None:
    """Show the services until the task is cancelled or the terminal is gone.

    - ``on_quit`` is called when the user quits, and again for each later Ctrl-C. The view keeps running, so that the user
      sees the services stop: cancel the task to end it.
    - SIGTERM and SIGHUP quit too, unless the program handles them itself.

    Print nothing to the terminal while the view runs.
    """
    encoding = codecs.lookup(locale.getpreferredencoding(False)).name
    screen = Screen(sys.stdout.fileno(), colors=not os.environ.get("NO_COLOR"), encoding=encoding)
    loop = _ViewLoop(board, screen, on_quit, options or TerminalOptions(), is_utf8=encoding == "utf-8")
    try:
        await loop.run()
    finally:
        screen.close()


class _ViewLoop:
    """One run of the view."""

    def __init__(
        self,
        board: Board,
        screen: Screen,
        on_quit: QuitCallback,
        options: TerminalOptions,
        *,
        is_utf8: bool,
    ) -> None:
        self._board, self._screen, self._on_quit = board, screen, on_quit
        self._options = options
        self._look = UNICODE if is_utf8 else ASCII
        self._view = View()
        self._logs = LogBuffers()
        self._keys = KeyParser()
        self._loop = asyncio.get_running_loop()
        #: Ends the view: a result when the terminal is gone, an exception of a callback.
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._next_frame: asyncio.TimerHandle | None = None
        self._escape: asyncio.TimerHandle | None = None
        self._last_frame = 0.0
        self._tasks = aio.Supervisor()
        self._attachment: Attachment | None = None
        self._searching: asyncio.Task[None] | None = None
        #: The text and the service of the last search in the whole logs.
        self._searched = ("", "")

    async def run(self) -> None:
        """Show the services until the terminal is gone."""
        signals = self._signals()
        try:
            async with self._tasks:
                self._resume()
                self._tasks.start(self._follow_logs(), name="terminal: logs")
                self._tasks.start(self._follow_rows(), name="terminal: services")
                self._tasks.start(self._tick(), name="terminal: clock")
                if self._options.notices is not None:
                    self._tasks.start(self._show_notices(self._options.notices), name="terminal: notices")
                await self._over
                self._tasks.cancel()
        finally:
            self._loop.remove_reader(self._screen.descriptor)
            for handle in (self._next_frame, self._escape):
                if handle is not None:
                    handle.cancel()
            for number in signals:
                self._loop.remove_signal_handler(number)

    # what arrives

    def _signals(self) -> list[signal.Signals]:
        """Handle the signals of a terminal. SIGTERM and SIGHUP are handled only if the program does not."""
        if threading.current_thread() is not threading.main_thread():
            return []
        calls: dict[signal.Signals, Callable[[], None]] = {
            signal.SIGWINCH: self._resize,
            signal.SIGCONT: self._resume,
            signal.SIGTSTP: self._suspend,
        }
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                calls[number] = partial(self._quit, number)
        for number, call in calls.items():
            self._loop.add_signal_handler(number, self._guarded, call)
        return [*calls]

    def _guarded(self, call: Callable[[], None]) -> None:
        """Run a callback of the event loop; its error ends the view."""
        try:
            call()
        except Exception as error:  # noqa: BLE001 - it is raised by run
            if not self._over.done():
                self._over.set_exception(error)

    def _read(self) -> None:
        try:
            data = os.read(self._screen.descriptor, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            return
        if self._attachment is not None:
            self._attachment.press(data)
            return
        if self._escape is not None:
            self._escape.cancel()
            self._escape = None
        for key in self._keys.feed(data):
            self._press(key)
        if self._keys.is_waiting:
            self._escape = self._loop.call_later(ESCAPE_TIMEOUT, self._guarded, self._end_escape)
        self._draw()

    def _end_escape(self) -> None:
        for key in self._keys.flush():
            self._press(key)
        self._draw()

    def _hang_up(self) -> None:
        """The terminal is gone."""
        self._loop.remove_reader(self._screen.descriptor)
        if not self._over.done():
            self._over.set_result(None)

    def _quit(self, number: signal.Signals | None) -> None:
        self._view.say(self._options.farewell)
        self._on_quit(number)
        self._draw()

    async def _follow_rows(self) -> None:
        version: int | None = None
        while True:
            version = await self._board.wait_changed(version)
            self._logs.keep({row.name for row in self._board.rows})
            self._changed()

    async def _follow_logs(self) -> None:
        while True:
            with suppress(ApiError, OSError):
                async with self._board.log_batches() as batches:
                    async for lines in batches:
                        for line in lines:
                            self._logs.append(line)
                        self._changed()
                        # A service that prints without a pause must not delay keys.
                        await asyncio.sleep(0)
            await asyncio.sleep(_RETRY)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            if self._screen.is_entered:
                self._changed()
            else:
                # The shell sends no signal when it brings a running program to the foreground, so check at each tick.
                self._guarded(self._resume)

    # what happens

    def _press(self, key: KeyPress) -> None:
        action = self._view.press(
            key, self._board.rows, self._logs, log_pane(self._scene(), self._view, self._screen.size)
        )
        if action is None:
            return
        match action.command:
            case "quit":
                self._quit(signal.SIGINT if key.name == "ctrl-c" else None)
            case "suspend":
                self._suspend()
            case "redraw":
                self._screen.forget()
            case "search":
                self._begin_search()
            case "open":
                self._tasks.start(self._open(), name="terminal: browser")
            case _:
                self._tasks.start(self._act(action), name=f"terminal: {action.command}")

    async def _act(self, action: Action) -> None:
        view, name = self._view, action.service
        try:
            match action.command:
                case "restart":
                    view.say(f"Restarting {name}")
                    await self._board.restart(name)
                case "stop":
                    view.say(f"Stopping {name}")
                    await self._board.stop(name)
                case "start":
                    view.say(f"Starting {name}")
                    await self._board.start(name)
                case _:
                    await self._connect(name)
        except Exception as error:  # noqa: BLE001 - the user sees it, and the view goes on
            view.say(f"{name}: {error}", is_error=True)
        self._draw()

    def _begin_search(self) -> None:
        """Search the whole logs, unless this search runs already: each key would begin it again."""
        search = self._view.wanted_search(self._board.rows, self._logs)
        wanted = (search.text, search.service)
        if self._searching is not None and not self._searching.done():
            if self._searched == wanted:
                return
            self._searching.cancel()
        self._searched = wanted
        self._searching = self._tasks.start(self._search(search), name="terminal: search")

    async def _search(self, search: Search) -> None:
        """Search the whole logs, which may be much longer than what the view keeps."""
        view, board = self._view, self._board
        try:
            found = await board.search_logs(search.text, [search.service] if search.service else [], known=search.known)
        except (ApiError, OSError, ActionRefused) as error:
            view.say(f"Cannot search older lines: {error}", is_error=True)
        else:
            pane = log_pane(self._scene(), view, self._screen.size)
            view.show_older(search, found, board.rows, self._logs, pane)
        self._changed()

    async def _connect(self, name: str) -> None:
        """Attach to the terminal of a service."""
        path = terminal_socket(self._board, name)
        if path is None:
            self._view.say(no_terminal_words(self._board, name), is_error=True)
            return
        async with TerminalConnection(path) as link:
            self._attachment = Attachment(self._screen, link)
            try:
                detached = await self._attachment.run(name)
            finally:
                self._attachment = None
                self._resume()
        self._view.say(f"Detached from {name}" if detached else f"The program of {name} has ended")

    async def _open(self) -> None:
        url = self._options.page_url
        program = browser_program()
        if not url:
            self._view.say("This view has no page: run steersman page for a link", is_error=True)
        elif program and await open_in_browser(program, url if isinstance(url, str) else url(own_user=True)):
            self._view.say("Opened the page in a browser")
        else:
            # A new link: this one may be opened on another machine.
            self._view.say(f"Open {url if isinstance(url, str) else url()}")
        self._draw()

    def _suspend(self) -> None:
        """Suspend the program, as Ctrl-Z does elsewhere; the shell resumes it with ``fg``."""
        self._loop.remove_reader(self._screen.descriptor)
        self._screen.leave()
        self._loop.remove_signal_handler(signal.SIGTSTP)
        os.kill(0, signal.SIGTSTP)
        self._loop.add_signal_handler(signal.SIGTSTP, self._guarded, self._suspend)
        self._resume()

    def _resize(self) -> None:
        if self._attachment is not None:
            self._attachment.resize()
        self._draw()

    def _resume(self) -> None:
        """Take the terminal, unless the program is in the background."""
        if self._over.done() or not self._screen.is_foreground:
            return
        try:
            self._screen.enter()
        except (termios.error, OSError):
            self._hang_up()
            return
        self._loop.add_reader(self._screen.descriptor, self._guarded, self._read)
        if self._attachment is not None:
            self._screen.lend()
        self._draw()

    # frames

    async def _show_notices(self, notices: aio.Channel[str]) -> None:
        async for text in notices:
            self._view.say(" ".join(text.split()), is_error="mistake" in text)
            self._changed()

    def _changed(self) -> None:
        """Schedule a frame: at most one in each interval."""
        if self._next_frame is None:
            when = max(self._last_frame + _FRAME, self._loop.time())
            self._next_frame = self._loop.call_at(when, self._guarded, self._draw)

    def _draw(self) -> None:
        if self._next_frame is not None:
            self._next_frame.cancel()
            self._next_frame = None
        if self._over.done() or self._attachment is not None or not self._screen.is_entered:
            return
        if self._screen.is_busy:
            self._screen.when_ready(self._changed)
            return
        size = self._screen.size
        self._screen.draw(frame(self._scene(), self._view, size), size)
        self._last_frame = self._loop.time()

    def _scene(self) -> Scene:
        return Scene(
            rows=self._board.rows,
            logs=self._logs,
            now=aio.utc_now(),
            title=self._options.title,
            is_connected=self._board.connected,
            look=self._look,
            question=self._options.question,
        )
