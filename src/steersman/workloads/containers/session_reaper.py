"""A session in a container runtime: what carries its labels is removed when the control plane ends, however it ends."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from steersman.workloads.containers.container_processes import RUNTIME_MISSING
from steersman.workloads.containers.container_record import ContainerRecord
from steersman.workloads.containers.creator import SESSION, Creator, session_labels

_log = logging.getLogger("steersman.workloads")
_REAPER = str(Path(__file__).with_name("reaper.py"))
#: Seconds that this program waits for the last look of the reaper, which continues by itself if the runtime does not answer.
_LAST_LOOK = 15.0


class SessionReaper:
    """The labels of a session, its containers, and the process that removes what is left of it: see `reaper`."""

    def __init__(self, identity: str, program: Sequence[str], record: ContainerRecord) -> None:
        self.id = identity
        #: In a folder that later sessions use too.
        self.record = record
        self.creator = Creator.here()
        self.labels: Mapping[str, str] = session_labels(identity, self.creator)
        self._program = tuple(program)
        self._containers: set[str] = set()
        self._may_have_made = False
        self._reaper: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The pid of the reaper; None while the session has made nothing."""
        return self._reaper.pid if self._reaper is not None else None

    async def guard(self) -> None:
        """Record the session, and start the reaper unless it runs. Call it before the session makes anything."""
        async with self._lock:
            if shutil.which(self._program[0]):
                # A runtime that was never there cannot have anything of this session; it may be installed later.
                self.record.begin(self.id, self.creator)
            if self._reaper is not None and self._reaper.returncode is None:
                return
            self._reaper = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", _REAPER, f"{SESSION}={self.id}", *self._program),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                # It must survive a signal to the whole group of the control plane.
                start_new_session=True,
            )
            # Repeats what an earlier reaper, which was killed, had received.
            for container in self._containers:
                self._tell(f"={container}\n")

    def made(self, container: str) -> None:
        """A container of the session was created: record its id, by which its processes are found."""
        self._tell(f"={container}\n")
        self._containers.add(container)
        self.record.add(container)

    def begun(self, pid: int) -> None:
        """A command that creates or starts something has begun."""
        self._tell(f"+{pid}\n")

    def ended(self, pid: int, code: int | None) -> None:
        """It has ended with an exit code; None, or a negative one, if it was killed."""
        self._may_have_made = self._may_have_made or code is None or code <= 0
        self._tell(f"-{pid}\n")

    async def close(self) -> None:
        """Have the reaper look once more, and wait for its end."""
        if self._reaper is None or self._reaper.stdin is None:
            return
        if not self._may_have_made:
            # Each command failed, as with a service that never ran: there is nothing to look for.
            self.record.end({self.id})
        self._tell("done\n")
        with suppress(OSError):
            self._reaper.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_LOOK):
                code = await self._reaper.wait()
                if code == 0:
                    # Those of a killed session stay until a later one has looked for them.
                    self.record.remove(self._containers)
                    self.record.end({self.id})
                elif code == RUNTIME_MISSING and self._containers:
                    _log.warning(
                        "%s is not installed any more, so containers of this session are left; the next steersman up with it"
                        " removes them",
                        self._program[0],
                    )

    def _tell(self, line: str) -> None:
        if self._reaper is not None and self._reaper.stdin is not None and not self._reaper.stdin.is_closing():
            self._reaper.stdin.write(line.encode())
