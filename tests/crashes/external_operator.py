"""An operator of Tickets, each of which is one thing outside: candidates that are made to be killed.

The program imports everything and says ``ready``. For each name that it reads it forks a candidate, which is an operator in
a process of its own, and says its process id. ``OUTSIDE`` is the address of the service outside. The service takes no
token: asked twice, it makes two things. Candidates end with the program.
"""

import asyncio
import ctypes
import os
import signal
import sys

import aiohttp

from steersman import Done, Manager, Resource, Spec, Status
from steersman.manager import LeaderElection
from steersman.patterns import Absent, External, ExternalKey, Outputs, Present, StateMachine, Wait, finalizer, state

#: What the service does at all it has done so many seconds after it was asked.
LATE = 1.0


class TicketSpec(Spec):
    title: str


class TicketStatus(Status):
    thing: str | None = None


class Ticket(Resource[TicketSpec, TicketStatus], group="outside.test.steersman.dev", version="v1"):
    """Something that stands for one thing outside."""


class Things:
    """The things outside, found by the UID of their Ticket."""

    def __init__(self) -> None:
        self._url = os.environ.get("OUTSIDE", "")

    async def _call(self, method: str, path: str) -> list[str]:
        async with aiohttp.ClientSession() as session, session.request(method, self._url + path) as answer:
            answer.raise_for_status()
            found: list[str] = await answer.json()
            return found

    async def find(self, key: ExternalKey, _: Ticket) -> str | None:
        found = await self._call("GET", f"/{key.uid}")
        return found[0] if found else None

    async def create(self, key: ExternalKey, _: Ticket) -> str:
        return (await self._call("POST", f"/{key.uid}"))[0]

    async def delete(self, key: ExternalKey, _: Ticket, found: str) -> None:
        await self._call("DELETE", f"/{key.uid}/{found}")


class Tickets(StateMachine[Ticket]):
    def __init__(self) -> None:
        self.things = External(Things(), name="thing", timeout=5.0, late=LATE)

    @state(condition="Made")
    async def make(self, ticket: Ticket, _: Outputs) -> Done | Wait:
        """The thing itself."""
        match self.things.ensure(ticket):
            case Present(found):
                ticket.status = ticket.status or TicketStatus()
                ticket.status.thing = found
                return Done()
            case pending:
                return pending.wait

    @finalizer
    async def clean_up(self, ticket: Ticket, _: Outputs) -> Done | Wait:
        match self.things.remove(ticket):
            case Absent():
                return Done()
            case pending:
                return pending.wait


def make(identity: str) -> Manager:
    """One candidate."""
    election = LeaderElection("tickets", namespace="default", identity=identity, lease=2.0, renew=1.5, retry=0.3)
    manager = Manager(name="tickets", leader=election, grace=1.0)
    manager.add(Tickets())
    return manager


def main() -> None:
    # ended candidates are not waited for
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while name := sys.stdin.readline().strip():
        candidate = os.fork()
        if candidate == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asyncio.run(make(name).run())
            os._exit(0)
        sys.stdout.write(f"{candidate}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
