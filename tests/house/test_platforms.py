"""Linux-only calls stay in named modules, each with a fallback for other systems."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "steersman"

#: Names that only Linux has: functions, constants and folders.
LINUX_ONLY = (
    "/proc/",
    "/sys/",
    "CLOCK_BOOTTIME",
    "MFD_CLOEXEC",
    "SO_PEERCRED",
    "SOCK_CLOEXEC",
    "TCP_USER_TIMEOUT",
    "epoll",
    "eventfd",
    "inotify",
    "memfd_create",
    "pidfd_open",
    "prctl",
    "sched_getaffinity",
    "splice",
)

#: The modules that may use them, and what each does on other systems.
FALLBACKS = {
    "aio/clock.py": "reads the monotonic clock",
    "client/credentials/exec_process.py": "waits for the process in a thread",
    "telemetry/process.py": "reports the peak of the memory, and no start time",
    "testing/engine/parts.py": "does not wait for a stopped process",
    "testing/engine/supervisor.py": "ends its children itself; the kernel does not do it for a supervisor that was killed",
    "transport/peer.py": "does not know the user of a connection: a browser gets a private file instead of a link",
    "transport/tls.py": "writes a private temporary file",
    "workloads/containers/creator.py": (
        "is not used: the room refuses to start processes, and with them its control plane"
    ),
    "workloads/containers/container_processes.py": "containers run in a virtual machine: nothing to end",
    "workloads/linked_files.py": "follows every link as Python's own open does",
    "workloads/files/inotify.py": "refuses with a sentence",
    "workloads/files/inotify_watcher.py": "refuses with a sentence",
    "workloads/files/file_changes.py": "looks at files every 100 ms",
    "transport/reachability.py": "makes a socket non-blocking with a second call",
    "workloads/processes/orphans.py": "is not called: `ZygoteRunner` refuses with a sentence",
    "workloads/processes/terminal_connection.py": "is not called: no program has a terminal without `ZygoteRunner`",
    "workloads/monitored_process.py": "refuses to monitor a process",
    **dict.fromkeys(
        (f"workloads/processes/zygote/{name}.py" for name in ("program", "server", "shim", "system", "terminal")),
        "is not started: `ZygoteRunner` refuses with a sentence",
    ),
    "workloads/ports/listeners.py": "names no process, and takes every port to be free",
    **dict.fromkeys(
        (
            f"workloads/proxies/relay/{name}.py"
            for name in ("connection", "direction", "listeners", "loop", "server", "service")
        ),
        "is not started: `RelayProxy` refuses with a sentence",
    ),
}


def linux_only_names(text: str) -> Iterator[str]:
    """Yield the Linux-only names that code uses; docstrings and comments may speak of them."""
    if not any(name in text for name in LINUX_ONLY):
        return  # as in most files: parsing takes much longer
    tree = ast.parse(text)
    prose = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=str(name)) | ast.Name(id=str(name)):
                words = name
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                words = " ".join(each.name for each in names)
            case ast.Constant(value=str(value)) if id(node) not in prose:
                words = value
            case _:
                continue
        yield from (name for name in LINUX_ONLY if name in words)


def test_linux_only_calls_have_a_fallback() -> None:
    """A new one must be named here, with what other systems do instead."""
    found = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        if "kinds" not in path.parts and list(linux_only_names(path.read_text(encoding="utf-8")))
    }
    assert found == set(FALLBACKS)


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.pidfd_open(1)\n",
        "from os import memfd_create\n",
        "from pathlib import Path\nPath(f'/proc/{1}/stat')\n",
        "import time\nclock = getattr(time, 'CLOCK_BOOTTIME', None)\n",
    ],
)
def test_a_planted_call_is_found(text: str) -> None:
    assert list(linux_only_names(text))


def test_words_about_linux_are_no_calls() -> None:
    assert not list(linux_only_names('"""Reads nothing of /proc/, unlike prctl."""\n# pidfd_open\n'))
