"""What another user of this machine reaches of a session: ``other_user.py JSON`` becomes that user and prints the answers."""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path

UID = 65534


def read(path: str) -> str:
    """The name of the error, or what was read."""
    try:
        if Path(path).is_dir():
            return f"listed {os.listdir(path)}"  # noqa: PTH208 - an unreadable folder must raise here
        return f"read {Path(path).read_bytes()[:40]!r}"
    except OSError as error:
        return type(error).__name__


def connect(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except OSError as error:
            return type(error).__name__
        return "connected"


def ask(method: str, url: str, headers: dict[str, str]) -> int:
    """The status of a response."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def command_lines() -> str:
    """The command lines and environments of all processes, as far as they can be read."""
    return " ".join(
        read_all(each / name)
        for each in Path("/proc").iterdir()
        if each.name.isdigit()
        for name in ("cmdline", "environ")
    )


def read_all(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def main() -> None:
    wanted = json.loads(sys.argv[1])
    # The other user may not be able to read this Python: import everything before.
    for each in wanted["requests"]:
        ask(*each)
    os.setgroups([])
    os.setgid(UID)
    os.setuid(UID)
    found = {
        "files": {path: read(path) for path in wanted["files"]},
        "sockets": {path: connect(path) for path in wanted["sockets"]},
        "requests": [ask(*each) for each in wanted["requests"]],
        "sees_secret": wanted["secret"][::-1] in command_lines(),
    }
    sys.stdout.write(json.dumps(found))


main()
