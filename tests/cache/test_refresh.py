"""Reading everything again, asked for by several at once and by those who then lose patience."""

import asyncio
import json

from samples.virtual_time import run_virtual
from steersman import Client
from steersman.cache import Informer, KindOptions
from steersman.kinds.core_v1 import ConfigMap
from steersman.transport import InProcessTransport, ServerResponse

JSON = (("Content-Type", "application/json"),)
#: How long the server takes to let go of a stream: those who come meanwhile must wait.
SLOW = 0.5


def frame(type_, version, **metadata):
    obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": str(version), **metadata}}
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


class Server:
    """Holds one ConfigMap in each namespace, changed at every beginning of a stream; knows who listens to what."""

    def __init__(self):
        self.version = 10
        self.listening = {}
        self.most = 0

    async def __call__(self, request):
        await asyncio.sleep(0.01)
        return ServerResponse(status=200, headers=JSON, body=self._stream(request))

    async def _stream(self, request):
        namespace = request.path.split("/")[4]
        self.version += 1
        self.listening[namespace] = self.listening.get(namespace, 0) + 1
        self.most = max(self.most, self.listening[namespace])
        try:
            uid = f"uid-{namespace}"
            yield frame("ADDED", self.version, name="one", namespace=namespace, uid=uid)
            yield frame("BOOKMARK", self.version, annotations={"k8s.io/initial-events-end": "true"})
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(SLOW)
            self.listening[namespace] -= 1


def run(scenario, *namespaces):
    server = Server()

    async def meet():
        client = Client(InProcessTransport(server))
        async with client, Informer(client, ConfigMap, options=KindOptions(namespaces=namespaces)) as informer:
            await informer.wait_synced()
            await scenario(server, informer)

    run_virtual(meet(), seed=1)
    assert server.most == 1
    return server


def versions(informer):
    return sorted(int(stored.resource_version) for stored in informer.store)


def test_two_at_once_leave_one_that_follows():
    async def scenario(server, informer):
        before = server.version
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(informer.refresh())
                await asyncio.sleep(0.2)
        assert versions(informer)[0] > before
        await asyncio.sleep(5)
        assert server.listening == {"a": 1}

    run(scenario, "a")


def test_who_loses_patience_leaves_one_that_follows():
    async def scenario(server, informer):
        for moment in (0, 0.1, 0.505, 0.6):
            async with asyncio.TaskGroup() as tasks:
                asked = tasks.create_task(informer.refresh())
                await asyncio.sleep(moment)
                asked.cancel()
            await asyncio.sleep(5)
            assert server.listening == {"a": 1}, moment

    run(scenario, "a")


def test_every_scope_is_read_after_the_question():
    """None of several namespaces counts as read again because an earlier caller had it read."""

    async def scenario(server, informer):
        for moment in (0.4, SLOW + 0.005, SLOW + 0.015, 2 * SLOW + 0.005):
            async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
                tasks.create_task(informer.refresh())
                await asyncio.sleep(moment)
                before = server.version
                await informer.refresh()
                assert versions(informer)[0] > before, moment

    run(scenario, "a", "b")
