"""The first lines of ``steersman up``."""

import subprocess
import sys


def test_the_services_are_shown_before_the_modules_of_a_server_are_imported():
    """Their import takes a second, during which the screen would be blank."""
    program = "import sys, steersman.cli.up.command; print([each for each in ('aiohttp', 'steersman.apiserver') if each in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
