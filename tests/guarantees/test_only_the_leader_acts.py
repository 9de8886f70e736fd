"""Guarantee 6: only the leader acts. The API server's audit log is the witness.

Candidates are processes that write all the time while they lead. Each has its identity for a user agent, so the log
tells who sent what and when the server received it. A write counts as that of a deposed leader if the server received
it when the Lease named another process, or none.

The residue, which no client can prevent: a write that left in time and was held up on its way. A late write is that if,
and only if, it was *sent* (which it says in its own body) while its sender led by its last renewal. Only the test that
holds bytes back on purpose may see one.
"""

import asyncio
import json
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from steersman import ObjectMeta
from steersman.kinds.core_v1 import ConfigMap
from steersman.testing import Engine

LEASE, RENEW, RETRY = 6.0, 4.0, 0.5
PROGRAM = Path(__file__).with_name("candidate.py")
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Request
  verbs: [create, update, patch, delete]
  resources:
  - {group: "", resources: [configmaps]}
  - {group: coordination.k8s.io, resources: [leases]}
- level: None
"""


class Seen:
    """One request as the server saw it."""

    def __init__(self, event):
        self.user = event["userAgent"]
        self.resource = event["objectRef"]["resource"]
        self.received = datetime.fromisoformat(event["requestReceivedTimestamp"])
        self.code = event.get("responseStatus", {}).get("code", 0)
        self.body = event.get("requestObject") or {}
        self.timeout = parse_qs(urlsplit(event["requestURI"]).query).get("timeout")

    def __repr__(self):
        return f"<{self.user} {self.resource} {self.received:%H:%M:%S.%f} {self.code}>"

    @property
    def sent(self):
        return datetime.fromisoformat(self.body["data"]["sent"])


class Record:
    """What the audit log says of one namespace."""

    def __init__(self, seen):
        seen = sorted(seen, key=lambda each: each.received)
        self.leases = [each for each in seen if each.resource == "leases" and each.code in {200, 201}]
        self.writes = [each for each in seen if each.resource == "configmaps" and "sent" in str(each.body)]

    def holders(self):
        """Who held the Lease, one after the other, without repetitions."""
        found = []
        for each in self.leases:
            holder = each.body["spec"].get("holderIdentity") or ""
            if not found or found[-1][1] != holder:
                found.append((each.received, holder))
        return found

    def holder_at(self, moment):
        names = [holder for since, holder in self.holders() if since <= moment]
        return names[-1] if names else ""

    def late(self):
        """The writes that the server received when their sender did not hold the Lease."""
        return [each for each in self.writes if self.holder_at(each.received) != each.user]

    def is_residue(self, write, *, renew):
        """Whether a late write was sent while its sender led."""
        renewals = [
            each.received
            for each in self.leases
            if each.user == write.user
            and each.body["spec"].get("holderIdentity") == write.user
            and each.received < write.received
        ]
        return bool(renewals) and write.sent < renewals[-1] + timedelta(seconds=renew)


class Log:
    """The audit log of one namespace, read as it grows."""

    def __init__(self, path, namespace):
        self._path = path
        self._namespace = namespace
        self._position = 0
        self._seen = {}

    def read(self):
        with self._path.open("rb") as log:
            log.seek(self._position)
            whole, end, _ = log.read().rpartition(b"\n")
        self._position += len(whole) + len(end)
        for line in whole.splitlines():
            event = json.loads(line)
            if event["objectRef"].get("namespace") == self._namespace:
                # the last stage of a request says the most
                self._seen[event["auditID"]] = Seen(event)
        return Record(self._seen.values())


class Candidate:
    """A process that takes part."""

    def __init__(self, process, identity):
        self.process = process
        self.identity = identity

    async def says(self, word, *, seconds=60.0):
        """Wait until it says a word."""
        async with asyncio.timeout(seconds):
            while (line := await self.process.stdout.readline()) != f"{word}\n".encode():
                assert line, f"{self.identity} ended before it said {word!r}"

    def signal(self, number):
        self.process.send_signal(number)

    async def ends(self):
        self.signal(signal.SIGTERM)
        await self.says("ended")
        assert await self.process.wait() == 0


class Election:
    """Starts candidates for one Lease, and reads the record."""

    def __init__(self, engine, log, namespace, tmp_path):
        self._engine = engine
        self._log = Log(log, namespace)
        self._stack = AsyncExitStack()
        self.namespace = namespace
        self.tmp_path = tmp_path

    async def start(self, identity, *, times=f"{LEASE},{RENEW},{RETRY}", skew=0.0, kubeconfig=None):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(PROGRAM),
            str(kubeconfig or self._engine.kubeconfig),
            self.namespace,
            identity,
            times,
            str(skew),
            stdout=asyncio.subprocess.PIPE,
        )
        self._stack.push_async_callback(_end, process)
        candidate = Candidate(process, identity)
        await candidate.says("runs")
        return candidate

    def record(self):
        return self._log.read()

    async def wait(self, condition, *, seconds=60.0):
        """Wait until the record meets a condition."""
        async with asyncio.timeout(seconds):
            while not condition(record := self.record()):  # noqa: ASYNC110 - a file sets no event
                await asyncio.sleep(0.1)
        return record

    async def close(self):
        await self._stack.aclose()


async def _end(process):
    if process.returncode is None:
        process.kill()
    # what it still had to say is read, so that its pipe can close
    await process.communicate()


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """An engine that keeps an audit log, and the log."""
    folder = tmp_path_factory.mktemp("audit")
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(POLICY)
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
    with Engine.start(flags={"kube-apiserver": flags}) as engine:
        yield engine, log


@pytest.fixture
async def election(audited, request, tmp_path):
    engine, log = audited
    namespace = request.node.name.replace("_", "-")[:60].strip("-")
    await engine.create_namespace(namespace)
    async with engine.client(namespace=namespace) as client:
        for name in ("tick", "log"):
            await client.create(ConfigMap(metadata=ObjectMeta(name=name)))
    election = Election(engine, log, namespace, tmp_path)
    yield election
    await election.close()


def _wrote(identity, *, after=None):
    return lambda record: any(
        each.user == identity and each.code == 200 and (after is None or each.received > after)
        for each in record.writes
    )


def _assert_bounded(record):
    """Every write told the server to give it up before the lease could be taken, whenever it was renewed last."""
    limits = [int(each.timeout[0].removesuffix("ms")) for each in record.writes]
    assert limits
    assert max(limits) <= 1000 * (LEASE - RETRY)


@pytest.mark.slow
async def test_only_the_leader_acts_stopped_and_continued(election):
    """Suspended beyond the lease, another leads, SIGCONT: not one write arrives late; then it leads again, as it is."""
    one = await election.start("one")
    await one.says("leads")
    two = await election.start("two")
    one.signal(signal.SIGUSR1)  # see candidate.py
    await two.says("leads")
    await election.wait(_wrote("two"))
    one.signal(signal.SIGCONT)
    await one.says("refused")
    await two.ends()
    await one.says("leads")
    record = await election.wait(_wrote("one", after=election.record().holders()[-1][0]))
    await one.ends()
    assert [holder for _, holder in record.holders()] == ["one", "two", "", "one"]
    record = election.record()
    assert record.late() == []
    assert record.holders()[-1][1] == "", "it was not released"
    _assert_bounded(record)


@pytest.mark.slow
async def test_only_the_leader_acts_killed(election):
    """Three candidates whose clocks are hours apart: none takes a lease that is held, each takes one that is not."""
    first = await election.start("first", skew=-3600.0)
    await first.says("leads")
    others = {"ahead": await election.start("ahead", skew=7200.0), "right": await election.start("right")}
    # longer than a lease: who compared clocks would have taken it
    since = election.record().leases[0].received
    record = await election.wait(
        lambda record: record.leases[-1].received - since > timedelta(seconds=LEASE + 2 * RETRY)
    )
    assert {holder for _, holder in record.holders()} == {"first"}
    first.signal(signal.SIGKILL)
    record = await election.wait(lambda record: len(record.holders()) == 2)
    renewals = [each.received for each in record.leases if each.user == "first"]
    moment, second = record.holders()[1]
    waited = (moment - renewals[-1]).total_seconds()
    assert LEASE <= waited < LEASE + 20
    await others[second].says("leads")
    await election.wait(_wrote(second))
    others[second].signal(signal.SIGKILL)
    (third,) = {"ahead", "right"} - {second}
    await others[third].says("leads")
    record = await election.wait(_wrote(third))
    assert [holder for _, holder in record.holders()] == ["first", second, third]
    assert record.late() == []


async def test_only_the_leader_acts_and_hands_over_at_once(election):
    """On SIGTERM the lease is released after the last write, and the successor does not wait for it to run out."""
    times = "15,10,2"
    one = await election.start("one", times=times)
    await one.says("leads")
    await election.start("two", times=times)
    await one.ends()
    record = await election.wait(_wrote("two"))
    ((_, first), (released, none), (_, second)) = record.holders()
    assert (first, none, second) == ("one", "", "two")
    assert record.late() == []
    begun = next(each.received for each in record.writes if each.user == "two")
    assert begun - released < timedelta(seconds=10), "a lease lasts fifteen seconds"


class SlowLine:
    """A way to the server on which every piece takes its time, and on which requests can be held."""

    def __init__(self, port):
        self._port = port
        self.delay = 0.0
        self.open = asyncio.Event()
        self.open.set()
        self._tasks = set()

    @asynccontextmanager
    async def serve(self):
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader, writer):
        there, away = await asyncio.open_connection("127.0.0.1", self._port)
        for work in (self._carry(reader, away, request=True), self._carry(there, writer, request=False)):
            self._tasks.add(asyncio.get_running_loop().create_task(work))

    async def _carry(self, reader, writer, *, request):
        pieces = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def take():
            piece = b"-"
            while piece:
                try:
                    piece = await reader.read(65536)
                except ConnectionError:
                    piece = b""
                pieces.put_nowait((loop.time() + self.delay, piece))

        taking = loop.create_task(take())
        try:
            while True:
                due, piece = await pieces.get()
                await asyncio.sleep(due - loop.time())
                if request:
                    await self.open.wait()
                if not piece:
                    return
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            taking.cancel()
            writer.close()


@pytest.mark.slow
async def test_only_the_leader_acts_on_a_slow_line(election, audited):
    """Slow is not lost. When nothing gets through, the other leads; what arrives late then was sent in time."""
    engine, _ = audited
    lease, renew, retry = 6.0, 4.5, 0.5
    times = f"{lease},{renew},{retry}"
    line = SlowLine(urlsplit(engine.url).port)
    async with line.serve() as port:
        kubeconfig = election.tmp_path / "slow"
        kubeconfig.write_text(engine.kubeconfig.read_text().replace(engine.url, f"https://127.0.0.1:{port}"))
        far = await election.start("far", kubeconfig=kubeconfig, times=times)
        await far.says("leads")
        near = await election.start("near", times=times)
        line.delay = 0.25
        count = len(election.record().leases)
        record = await election.wait(lambda record: len(record.leases) >= count + 3)
        assert [holder for _, holder in record.holders()] == ["far"]
        assert record.late() == []
        line.open.clear()
        await near.says("leads")
        record = await election.wait(_wrote("near"))
        assert record.late() == []
        # what was held on the way arrives now, from a process that knows that it does not lead
        await far.says("refused")
        line.open.set()
        record = await election.wait(lambda record: record.late())
        await near.ends()
        await far.says("leads")
        record = election.record()
    assert {each.user for each in record.late()} == {"far"}
    assert [each for each in record.late() if not record.is_residue(each, renew=renew)] == []
