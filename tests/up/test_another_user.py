"""Another user of this machine: the API, the page, the files and the secrets of a session are out of reach."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from up.test_up import LOOP, Place

from steersman.projects import find_session
from steersman.workloads.kinds import GROUP, VERSION

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

SECRET = "hunter2-of-the-database"
SHOP = f"""\
services:
  web:
    command: echo web begins; {LOOP}
    shell: true
    tty: true
    environment: {{DB_PASSWORD: {SECRET}}}
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(dir="/tmp"))
    made.chmod(0o755)
    yield made
    while made.exists():
        # A process that ends now removes its own files.
        shutil.rmtree(made, ignore_errors=True)


async def test_another_user_reaches_nothing(folder: Path) -> None:
    """A shared machine is common, and loopback is open to all of its users."""
    place = Place(folder / "shop", folder / "state")
    place.write(SHOP)
    async with place.up() as session:
        await session.until("web-1 | web begins")
        record = find_session(place.folder, place.environment)
        assert record is not None
        state = Path(record.state)
        below = list(state.rglob("*"))  # noqa: ASYNC240 - local files
        files = [state, *(each for each in below if not each.is_socket())]
        assert {"kubeconfig", "session.json", "lock"} <= {each.name for each in files}
        assert any(each.suffix == ".out" for each in files)
        sockets = [str(each) for each in below if each.is_socket()]
        row = (await place.rows())["web"]
        api = f"{record.url}/apis/{GROUP}/{VERSION}/executables"
        requests = [
            ("GET", api, {}),
            ("GET", api, {"Authorization": "Bearer guessed"}),
            *(("PATCH", f"{record.url}/admin/{name}", {}) for name in ("execution", "scales", "selection")),
            ("GET", f"{api}/web/log", {}),
            ("GET", record.page, {}),
            ("GET", f"{record.page}/open/guessed", {}),
            ("POST", f"{record.page}/link", {"Authorization": "Bearer guessed"}),
        ]
        wanted = {
            "files": [*map(str, files), f"/proc/{row['pid']}/environ", f"/proc/{record.pid}/environ"],
            "sockets": sockets,
            "requests": requests,
            # Reversed: the probe's own command line must not contain it.
            "secret": SECRET[::-1],
        }
        program = Path(__file__).with_name("other_user.py")
        result = subprocess.run(  # noqa: ASYNC221 - nothing else runs here
            [sys.executable, str(program), json.dumps(wanted)], capture_output=True, text=True, check=True
        )
        found = json.loads(result.stdout)
        assert set(found["files"].values()) == {"PermissionError"}, found["files"]
        assert sockets
        assert set(found["sockets"].values()) == {"PermissionError"}
        assert set(found["requests"]) <= {401, 403, 404}, list(zip(requests, found["requests"], strict=True))
        assert found["requests"][:2] == [401, 401]
        assert not found["sees_secret"]
        assert SECRET not in await place.run("ps", "--json")
