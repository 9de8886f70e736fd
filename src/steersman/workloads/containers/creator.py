"""Labels that say which control plane made a container, a network or a volume, and whether that one still runs."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from steersman.workloads.containers.container_processes import start_time

#: The session that an object of the runtime ends with; persistent ones have none.
SESSION = "steersman.dev/session"
#: The process that made it: machine, boot, pid namespace, pid and start time.
CREATOR = "steersman.dev/creator"
#: The name and uid of the object, and its lifecycle key.
NAME, UID, LIFECYCLE_KEY = "steersman.dev/name", "steersman.dev/uid", "steersman.dev/lifecycle-key"


class Creator(msgspec.Struct, frozen=True):
    """A control plane's process, for good: its pid alone may be given to another process."""

    machine: str
    boot: str
    namespace: str
    pid: str
    start: str

    @classmethod
    def here(cls) -> Self:
        """This process."""
        pid = os.getpid()
        return cls(_machine(), _boot(), _namespace(), str(pid), start_time(pid))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """A creator from its label; None for other text."""
        parts = text.split(":")
        return cls(*parts) if len(parts) == len(cls.__struct_fields__) else None

    def __str__(self) -> str:
        return ":".join(msgspec.structs.astuple(self))

    def is_gone(self, here: Creator) -> bool:
        """Whether the process has ended for certain; False if this process cannot tell."""
        if self.machine != here.machine:
            return False
        if self.boot != here.boot:
            return True
        return self.namespace == here.namespace and self.start != start_time(int(self.pid))


def session_labels(session: str, creator: Creator) -> Mapping[str, str]:
    """The labels of what ends with a session."""
    return {SESSION: session, CREATOR: str(creator)}


def is_leftover(labels: Mapping[str, str], here: Creator) -> bool:
    """Whether the control plane that made this for its session is gone."""
    creator = Creator.parse(labels.get(CREATOR, ""))
    return SESSION in labels and creator is not None and creator.is_gone(here)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def _machine() -> str:
    with suppress(OSError):
        if text := Path("/etc/machine-id").read_text().strip():
            return text
    return platform.node()
