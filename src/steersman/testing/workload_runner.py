"""Deployments that become available without a cluster: the workload controllers, and Pods that run.

Guarantees
- Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs get the same Pods as from kube-controller-manager.
- No status is invented: a Pod is ready when `PodRunner` reports it, and the rest follows from Pods.
- A converged cluster is not written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Self, Unpack

import msgspec

from steersman.client import Client
from steersman.kinds.core_v1 import Pod
from steersman.testing.drain import drained
from steersman.testing.operators import running
from steersman.testing.pods.runner import PodRunner, runs
from steersman.testing.pods.status import PodOutcome
from steersman.testing.workload_controllers import NAME, workload_manager
from steersman.testing.workload_controllers.own_node import OwnNode
from steersman.transport import Response, SendOptions, TransportWrapper
from steersman.wire import HttpRequest


class _NamedTransport(TransportWrapper):
    """A transport that sets the controllers' user agent: deletions carry no field manager to attribute them by."""

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        kept = tuple(each for each in request.headers if each[0].lower() != "user-agent")
        named = msgspec.structs.replace(request, headers=(("User-Agent", NAME), *kept))
        return await self._inner.send(named, **options)


class WorkloadRunner:
    """Makes Deployments, StatefulSets, DaemonSets and Jobs work, and runs their Pods, for the duration of its block.

    ```python
    async with WorkloadRunner(client):
        await client.create(deployment)
        await eventually(client, Deployment, "web", has={"status": {"availableReplicas": 3}})
    ```

    It is a `PodRunner` with controllers, and takes the same options: ``outcome`` decides how far each Pod gets,
    ``delay`` how long that takes, ``namespaces`` limits it, and ``node`` names the Node, which exists as long as the
    runner. With ``crashes=True``, a controller that crashes on an object only logs it; otherwise the end of the block
    raises. Use it where kube-controller-manager does not run its own workload controllers; the two would undo each
    other's work.
    """

    def __init__(
        self,
        client: Client,
        *,
        outcome: Callable[[Pod], PodOutcome] = runs,
        delay: float = 0.0,
        namespaces: tuple[str, ...] = (),
        node: str = "pod-runner",
        crashes: bool = False,
    ) -> None:
        self._client = client
        self._crashes = crashes
        self._namespaces = namespaces
        self._pods = PodRunner(client, outcome=outcome, delay=delay, namespaces=namespaces, node=node)
        self._node = OwnNode(node)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        client = self._client.with_transport(_NamedTransport, field_manager=NAME)

        async def settled() -> None:
            """Do nothing: the control plane belongs to the test."""

        async def nothing_left(*, within: float = 10.0) -> None:
            await drained(client, settled, within=within)

        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._pods)
            await self._node.make(client)
            stack.push_async_callback(self._node.remove, client)
            manager = workload_manager(self._node, self._namespaces)
            await stack.enter_async_context(running(manager, client, drained=nothing_left, crashes=self._crashes))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)

    def look_again(self) -> None:
        """Call ``outcome`` again for every Pod, after its inputs have changed."""
        self._pods.look_again()
