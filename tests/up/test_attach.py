"""The terminal of a service in the view of ``steersman up``: a debugger works, and every key is the program's."""

import sys
from pathlib import Path

import pytest
from up.test_up import LOOP, Place, marked

from samples.terminal import Terminal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")

PROGRAM = """\
import time
value = 6
breakpoint()
print("the value is", value, flush=True)
while True:
    time.sleep(0.05)
"""
SHOP = f"""\
services:
  app: {{command: [{sys.executable}, app.py], tty: true}}
  late: {{command: sleep 1000, tty: true, depends_on: {{app: {{condition: service_completed_successfully}}}}}}
  plain: {{command: "{LOOP}", shell: true}}
"""


def test_pdb_in_the_view(tmp_path: Path) -> None:
    """Attach to a breakpoint, change a variable, continue, interrupt, detach, and attach again."""
    place = Place(tmp_path / "shop", tmp_path / "state")
    place.write(SHOP)
    place.write(PROGRAM, "app.py")
    command = (sys.executable, "-m", "steersman", "up")
    window = Terminal(*command, environment=place.environment, folder=place.folder)
    try:
        # The output of a terminal is in the logs too.
        window.wait_line("-> print(")
        window.send(b"j")
        window.wait_line("Logs of late")
        window.send(b"t")
        window.wait_line("late has not started: it waits for app to complete")
        window.send(b"j")
        window.wait_line("Logs of plain")
        window.send(b"t")
        window.wait_line("plain has no terminal: set tty: true")
        window.send(b"kk")
        window.wait_line("Logs of app")
        window.send(b"t")
        window.wait_output(b"Attached to app. Ctrl-] detaches.")
        window.wait_output(b"(Pdb) ")
        window.send(b"value = value * 7\rc\r")
        window.wait_output(b"the value is 42")
        window.send(b"\x1d")
        window.wait_line("Detached from app")
        window.wait_line("the value is 42")
        window.output = b""
        window.send(b"t")
        window.wait_output(b"Attached to app")
        window.send(b"\x03")
        window.wait_output(b"Program interrupted")
        window.wait_output(b"(Pdb) ")
        window.send(b"q\r")
        window.wait_line("The program of app has ended")
        window.send(b"\x03")
        assert window.wait_end() == 130
        assert window.is_restored
    finally:
        window.close()
    assert marked(place) == []
