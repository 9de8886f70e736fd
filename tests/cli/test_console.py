"""The console: nothing that a command writes to a terminal controls it, and data in a pipe is exact."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

EVIL = "\x1b]52;c;cHduZWQ=\x07\x1b[2J\x1b[6n\nsteersman: forged\r\x9b31m\u202e\x1b[8m"
PREAMBLE = (
    "import logging, sys, threading, warnings\nfrom steersman.cli import console\n"
    f"from steersman.cli.log_copy import LogCopy\nEVIL = {EVIL!r}\n"
)
#: Each way in which text reaches stdout or stderr.
WAYS = {
    "result": "console.show(EVIL)",
    "message": "console.tell(EVIL)",
    "failure": "console.tell_failure(EVIL)",
    "data as text": "console.show_data(EVIL)",
    "data as bytes": "console.show_data(EVIL.encode() + b'\\xff')",
    "log": "copy = LogCopy(); copy.write(EVIL.encode()); copy.write(b'\\n\\xc2'); copy.write(b'\\x9b6n'); copy.close()",
    "log in pieces": "copy = LogCopy(); [copy.write(bytes([each])) for each in EVIL.encode()]; copy.close()",
    "traceback": "console.tell_traceback(ValueError(EVIL))",
    "error that nothing catches": "console.take_over_reports(); raise ValueError(EVIL)",
    "cancellation that nothing catches": (
        "import asyncio; console.take_over_reports(); raise asyncio.CancelledError(EVIL)"
    ),
    "group of errors that nothing catches": (
        "console.take_over_reports(); raise BaseExceptionGroup(EVIL, [KeyboardInterrupt()])"
    ),
    "error of a thread": ("console.take_over_reports(); threading.Thread(target=lambda: int(EVIL), name=EVIL).start()"),
    "error in a destructor": (
        "console.take_over_reports()\nclass Broken:\n    def __del__(self): raise ValueError(EVIL)\nBroken()"
    ),
    "warning": "console.take_over_reports(); warnings.warn(EVIL)",
    "warning for a file": (
        "console.take_over_reports(); warnings.showwarning(EVIL, UserWarning, 'x.py', 1, file=sys.stderr)"
    ),
    "log without a handler": "console.take_over_reports(); logging.getLogger('x').warning('%s', EVIL)",
    "command line": "sys.argv = ['steersman', EVIL]; from steersman.cli import main; main()",
    "command that fails": "sys.argv = ['steersman', 'convert', '-f', EVIL]; from steersman.cli import main; main()",
}


def on_terminal(program: str) -> str:
    """What a terminal gets from a program."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + program], stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    found = b""
    try:
        while piece := os.read(controller, 65536):
            found += piece
    except OSError:
        # Linux reports the end of a terminal as an error.
        pass
    finally:
        os.close(controller)
        process.wait()
    return found.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("way", WAYS)
def test_no_text_controls_the_terminal(way: str) -> None:
    """A hostile server, file or object would otherwise write the clipboard, or forge what it likes."""
    found = on_terminal(WAYS[way])
    assert "forged" in found
    assert re.sub(r"\n|\x1b\[0?m", "", found).isprintable(), found


def test_a_failure_cannot_forge_another_one() -> None:
    """A line feed in a message of a server must not begin a line that looks like ours."""
    assert "\n  steersman: forged" in on_terminal(WAYS["failure"])
    piped = subprocess.run(
        [sys.executable, "-c", PREAMBLE + WAYS["failure"]], capture_output=True, text=True, check=True
    )
    assert piped.stderr.splitlines()[1].startswith("  steersman: forged\\r\\x9b31m\\u202e\\x1b[8m")


def test_colors_are_for_terminals() -> None:
    """A log keeps its colors on a terminal, and messages have ours."""
    program = (
        "from steersman.telemetry import painted\n"
        "console.tell(painted('ours', '31'))\n"
        "copy = LogCopy(); copy.write(b'\\x1b[3'); copy.write(b'2mtheirs\\n'); copy.write(b'prompt> ')\n"
        "copy.close()"
    )
    assert on_terminal(program) == "\x1b[31mours\x1b[0m\n\x1b[32mtheirs\x1b[0m\nprompt> "
    piped = subprocess.run([sys.executable, "-c", PREAMBLE + program], capture_output=True, check=True)
    assert piped.stderr == b"ours\n"
    assert piped.stdout == b"\x1b[32mtheirs\nprompt> "


def test_lines_of_a_log_end_as_on_windows_too() -> None:
    """A piece of a log may end between the two characters that end a line; a carriage return alone is shown."""
    pieces = [b"one\r", b"\ntwo\r\nthree", b"\r", b"\r", b"\nfo\r", b"ur\r"]
    program = f"copy = LogCopy(); [copy.write(each) for each in {pieces!r}]; copy.close()"
    assert on_terminal(program) == "one\ntwo\nthree\\r\nfo\\rur\\r"


class BrokenLog(BaseHTTPRequestHandler):
    """A server that ends in the middle of a log."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"\x1b[32mlast words")

    def log_message(self, *words: object) -> None: ...


def test_a_broken_log_is_shown_to_its_end(tmp_path: Path) -> None:
    """The line that was held back for its escape sequences is often the one that says what went wrong."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BrokenLog) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        kubeconfig = tmp_path / "kubeconfig"
        cluster = {"name": "x", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
        config = {"clusters": [cluster], "contexts": [context], "users": [{"name": "x", "user": {}}]}
        kubeconfig.write_text(json.dumps({**config, "current-context": "x"}))
        words = ["steersman", "logs", "web", "--kubeconfig", str(kubeconfig)]
        found = on_terminal(f"sys.argv = {words!r}; from steersman.cli import main; main()")
        server.shutdown()
        thread.join()
    assert "last words" in found
    assert "steersman: " in found


@pytest.mark.parametrize("way", ["data as text", "data as bytes", "log", "log in pieces"])
def test_data_in_a_pipe_is_exact(way: str) -> None:
    """Another program reads it: a changed byte is an error there."""
    piped = subprocess.run([sys.executable, "-c", PREAMBLE + WAYS[way]], capture_output=True, check=True)
    end = {"data as bytes": b"\xff", "log": b"\n\xc2\x9b6n"}.get(way, b"")
    assert piped.stdout == EVIL.encode() + end


def test_a_file_with_a_hostile_name_is_shown(tmp_path: Path) -> None:
    """An error of a command names files, and a repository chooses their names."""
    name = f"{tmp_path}/a\x1b[2J\u202e.yaml"
    Path(name).write_text("{", encoding="utf-8")
    command = [sys.executable, "-m", "steersman", "generate", "models", name, "-o", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "a\\x1b[2J\\u202e.yaml is neither YAML nor JSON" in done.stderr
