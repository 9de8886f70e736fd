"""A program ends when it must, whatever its reconciles do, and says what kept it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steersman import Context, Done, Key, LeaderElection, Manager, MergePatch, ObjectMeta, Request
from steersman.aio import Supervisor
from steersman.debug import CheckResult
from steersman.errors import NotLeading
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap

HERE = Path(__file__).parent
OPERATOR = HERE / "stuck_operator.py"


def line_of(words: str) -> int:
    """The line of the operator's source that holds these words."""
    lines = OPERATOR.read_text(encoding="utf-8").splitlines()
    return 1 + next(number for number, line in enumerate(lines) if words in line)


class Program:
    """``steersman run`` in a process of its own, and what it logged."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = ""

    async def until(self, words: str) -> None:
        assert self.process.stderr is not None
        while words not in self.said:
            line = await self.process.stderr.readline()
            assert line, f"it ended before it said {words!r}: {self.said}"
            self.said += line.decode()

    async def ended(self) -> int:
        assert self.process.stderr is not None
        self.said += (await self.process.stderr.read()).decode()
        return await self.process.wait()


@asynccontextmanager
async def operator(api_server, namespace: str, mode: str, *, grace: float) -> AsyncIterator[Program]:
    settings = {
        "KUBECONFIG": str(api_server.kubeconfig),
        "PYTHONPATH": str(HERE),
        "OPERATOR_NAMESPACE": namespace,
        "OPERATOR_MODE": mode,
        "OPERATOR_GRACE": str(grace),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "steersman", "run", "stuck_operator:manager", "--log-format", "text"),
        env={**os.environ, **settings},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def stuck(namespace: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="stuck", namespace=namespace))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "line"),
    [
        ("swallow", "await asyncio.sleep(3600)"),
        ("block", "time.sleep(3600)  # noqa"),
        ("thread", "await asyncio.to_thread(time.sleep, 3600)"),
    ],
)
async def test_a_process_ends_after_its_grace_period(api_server, client, namespace, mode, line) -> None:
    """Whatever a reconcile does. The log names its controller, its key and its line."""
    await client.create(stuck(namespace))
    async with asyncio.timeout(120), operator(api_server, namespace, mode, grace=1.0) as program:
        await program.until("it is stuck from here on")
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 1
    where = f"the reconcile of {namespace}/stuck in controller stuck at {OPERATOR}:{line_of(line)}"
    assert where in program.said


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["swallow", "block", "thread", "long"])
async def test_a_second_signal_ends_a_process_long_before_its_grace_period(api_server, client, namespace, mode) -> None:
    await client.create(stuck(namespace))
    async with asyncio.timeout(120), operator(api_server, namespace, mode, grace=3600.0) as program:
        await program.until("it is stuck from here on")
        program.process.send_signal(signal.SIGTERM)
        if mode == "block":
            # nothing is logged while the loop is blocked but for what blocks it
            await program.until("the event loop was blocked")
        else:
            await program.until("stopping: 1 running reconciles")
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 1
    assert f"the reconcile of {namespace}/stuck in controller stuck at {OPERATOR}" in program.said


async def test_a_third_signal_ends_a_process_at_once(api_server, client, namespace) -> None:
    await client.create(stuck(namespace))
    async with asyncio.timeout(60), operator(api_server, namespace, "swallow", grace=3600.0) as program:
        await program.until("it is stuck from here on")
        program.process.send_signal(signal.SIGTERM)
        await program.until("stopping: 1 running reconciles")
        program.process.send_signal(signal.SIGINT)
        await program.until("cancelled after a second signal")
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 1
    assert "after signal number 3" in program.said


async def test_a_signal_ends_a_start_that_waits_for_the_server(tmp_path) -> None:
    """The first process of a container ignores signals that it does not handle: it must handle them from the beginning."""
    arrived = asyncio.Event()

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await reader.read()
        writer.close()

    class Silent:
        kubeconfig = tmp_path / "kubeconfig"

    async with asyncio.timeout(60), await asyncio.start_server(ignore, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        Silent.kubeconfig.write_text(
            "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
            f' clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}], users: [{{name: u, user: {{}}}}]}}',
            encoding="utf-8",
        )
        async with operator(Silent, "default", "long", grace=3600.0) as program:
            await arrived.wait()
            program.process.send_signal(signal.SIGTERM)
            assert await program.ended() == 0
    assert "stopped before the manager started" in program.said


async def test_a_signal_stops_every_manager_of_a_process(client, namespace) -> None:
    """The first one that ends leaves the signals to the others, and the last one restores what was there before."""
    before = signal.getsignal(signal.SIGTERM)

    async def reconcile(ctx: Context, request: Request) -> Done:
        return Done()

    async def working(manager: Manager) -> None:
        while manager.phase != "running":  # noqa: ASYNC110 - a manager sets no event
            await asyncio.sleep(0.01)

    one, two, three = (Manager(client, name=name, namespaces=(namespace,)) for name in ("one", "two", "three"))
    async with asyncio.timeout(60), Supervisor() as tasks:
        running = []
        for manager in (one, two, three):
            manager.controller(ConfigMap, name=manager.name).run_with(reconcile)
            running.append(tasks.start(manager.run(), name=manager.name))
            await working(manager)
        one.stop()
        await asyncio.wait(running[:1])
        os.kill(os.getpid(), signal.SIGTERM)
    assert [each.signaled for each in (one, two, three)] == [False, True, True]
    assert not any(each.cut_short for each in (one, two, three))
    assert signal.getsignal(signal.SIGTERM) is before


async def test_a_program_that_embeds_a_stuck_manager_goes_on_without_leadership(client, namespace) -> None:
    """Its writes are refused, the Lease is not renewed, health fails; the manager ends when the reconcile does."""
    went_on, writes = asyncio.Event(), []
    election = LeaderElection("ship", namespace=namespace, identity="us", lease=6.0, renew=4.0, retry=0.5)
    manager = Manager(client, name="stuck", leader=election, namespaces=(namespace,), grace=0.1)
    began = asyncio.Event()

    async def reconcile(ctx: Context, request: Request) -> Done:
        if request.key.name != "stuck":
            return Done()
        began.set()
        while not went_on.is_set():
            try:
                await went_on.wait()
            except asyncio.CancelledError:
                continue
        try:
            await ctx.client.patch(ConfigMap, request.key, MergePatch({"data": {"written": "too late"}}))
        except NotLeading:
            writes.append("refused")
        return Done()

    manager.controller(ConfigMap, name="stuck").run_with(reconcile)
    await client.create(stuck(namespace))
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name="manager")
        await began.wait()
        assert not await _failing(manager)
        manager.stop()
        while not (failing := await _failing(manager)):  # noqa: ASYNC110 - checks set no event
            await asyncio.sleep(0.05)
        (failed,) = failing
        assert failed.name == "shutdown"
        assert f"the reconcile of {namespace}/stuck in controller stuck at {__file__}" in failed.message
        # another candidate need not wait for this process
        async with (
            LeaderElection("ship", namespace=namespace, lease=30.0, renew=20.0, retry=0.5).campaign(client) as other,
            await anext(other),
        ):
            went_on.set()
    assert writes == ["refused"]
    assert (await client.get(Lease, Key(namespace, "ship"))).spec.holder_identity is None


async def _failing(manager: Manager) -> list[CheckResult]:
    return [each for each in await manager.health.run() if not each.ok]


async def test_a_child_process_ends_by_its_own_signals(client, namespace) -> None:
    """A pool of processes that a reconcile uses is forked; it must not inherit the manager's handlers."""

    async def reconcile(ctx: Context, request: Request) -> Done:
        return Done()

    manager = Manager(client, name="forks", namespaces=(namespace,), grace=1.0)
    manager.controller(ConfigMap).run_with(reconcile)
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        while manager.phase != "running":  # noqa: ASYNC110 - a phase sets no event
            await asyncio.sleep(0.01)
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            os.write(writing, b"x")
            signal.pause()
            os._exit(7)  # it heard the signal and went on
        assert os.read(reading, 1) == b"x"
        os.close(reading)
        os.close(writing)
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - it ends at once, or the test fails
        assert (os.WIFSIGNALED(status), os.WTERMSIG(status)) == (True, signal.SIGTERM)
        assert manager.phase == "running"
        manager.stop()


async def test_a_port_that_still_answers_does_not_look_stuck(api_server, namespace):
    """Behind a Service, webhooks answer for some seconds after the signal, however short the grace period is."""
    async with operator(api_server, namespace, "webhooks", grace=0.5) as program:
        await program.until("serving webhooks at")
        program.process.terminate()
        assert await program.ended() == 0, program.said
