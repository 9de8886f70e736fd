"""A kubelet without containers: schedules the Pods of an API server and moves them through their life.

Guarantees
- Every Pod that a scheduler would accept is bound to the runner's node and gets the status of its outcome. Pods on
  another node, or meant for one, are ignored.
- A Pod marked for deletion is removed immediately, whatever its grace period.
- A Pod with the right status is not written: the runner is as quiet as its cluster.

It starts nothing and reads no image. It has no Node object; a `WorkloadRunner` has one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Self

from steersman.aio import Supervisor, utc_now
from steersman.cache import Cache, Informer, KindOptions
from steersman.client import Client
from steersman.controller import Cause, Context, Controller, Done, KeyRecord, Request, RequeueAfter, controller_for
from steersman.errors import NotFound
from steersman.kinds.core_v1 import Binding, ObjectReference, Pod
from steersman.objects import Key, ObjectMeta
from steersman.testing.participants import participation
from steersman.testing.pods.placement import node_of
from steersman.testing.pods.status import PodOutcome, PodRunning, PodWaiting, killed, observe

_CREATING = PodWaiting("ContainerCreating")
_OVER = frozenset({"Succeeded", "Failed"})


def runs(pod: Pod) -> PodOutcome:
    """The default outcome: the Pod runs and is ready."""
    del pod
    return PodRunning()


class _Part:
    """The runner as a participant of a test; it records no runs, since its Pods show them."""

    runs: tuple[tuple[str, KeyRecord], ...] = ()

    def __init__(self, controller: Controller, informer: Informer[Pod]) -> None:
        self.controllers = (controller,)
        self.informers = (informer,)

    def runs_of(self, key: Key) -> tuple[tuple[str, KeyRecord], ...]:
        del key
        return self.runs

    def check(self) -> None:
        """Never raises: a test cannot break the runner."""


class PodRunner:
    """Makes the Pods of an API server run, for the duration of its block.

    ```python
    async with PodRunner(client, delay=0.2, outcome=lambda pod: PodWaiting("ImagePullBackOff")):
        ...
    ```

    ``outcome`` is called for a Pod whenever it changes, and decides how far it gets: `PodRunning`, `PodWaiting`, `PodSucceeded`
    or `PodFailed`. Before that, a Pod waits ``delay`` seconds with ``ContainerCreating``. A deleted Pod takes
    ``stop_delay`` seconds to end. ``namespaces`` limits the runner; ``node`` is the name of the node to bind Pods to.
    """

    def __init__(
        self,
        client: Client,
        *,
        outcome: Callable[[Pod], PodOutcome] = runs,
        delay: float = 0.0,
        stop_delay: float = 0.0,
        namespaces: tuple[str, ...] = (),
        node: str = "pod-runner",
    ) -> None:
        for name, seconds in (("delay", delay), ("stop_delay", stop_delay)):
            if not 0 <= seconds < float("inf"):
                raise ValueError(f"PodRunner: {name} must be a non-negative number of seconds (got {seconds})")
        self._client = client
        self._outcome = outcome
        self._delay = delay
        self._stop_delay = stop_delay
        self._namespaces = namespaces
        self._node = node
        #: When each Pod started to wait, in the loop's time.
        self._since: dict[str, float] = {}
        #: When each deleted Pod started to end.
        self._ending: dict[str, float] = {}
        self._uids: dict[Key, str] = {}
        self._controller: Controller | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        if self._controller is not None:
            raise RuntimeError("a PodRunner can be entered once: make another one")
        options = KindOptions(namespaces=self._namespaces)
        blueprint = controller_for(Pod, name="pod-runner").options(concurrency=8).run_with(self._reconcile)
        async with AsyncExitStack() as stack:
            cache = await stack.enter_async_context(Cache(self._client, kinds={Pod: options}))
            self._controller = blueprint.assemble(cache)
            tasks = await stack.enter_async_context(Supervisor())
            tasks.start(self._controller.run(), name="pod-runner")
            stack.enter_context(participation(_Part(self._controller, cache.informer(Pod))))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: Any) -> None:
        assert self._controller is not None
        self._controller.stop()
        await self._stack.__aexit__(*error)

    def look_again(self) -> None:
        """Call ``outcome`` again for every Pod, after its inputs have changed."""
        if self._controller is None:
            raise RuntimeError("the PodRunner is not running: use it inside `async with PodRunner(client) as runner:`")
        for key in self._uids:
            self._controller.add(Request(key), Cause(what="external", note="PodRunner.look_again()"))

    async def _reconcile(self, ctx: Context, request: Request) -> Done | RequeueAfter:
        try:
            pod = await ctx.client.get(Pod, request.key)
            return await self._run(ctx, pod)
        except NotFound:
            self._forget(request.key)
            return Done()

    async def _run(self, ctx: Context, pod: Pod) -> Done | RequeueAfter:
        uid = pod.metadata.uid or ""
        if self._uids.get(pod.key) != uid:
            self._forget(pod.key)
            self._uids[pod.key] = uid
        if node_of(pod) not in {"", self._node} or pod.spec.scheduling_gates:
            return Done()
        loop = asyncio.get_running_loop()
        if pod.metadata.deletion_timestamp is not None:
            left = self._ending.setdefault(uid, loop.time()) + self._stop_delay - loop.time()
            return RequeueAfter(left) if left > 0 else await self._let_go(ctx, pod)
        if pod.status is not None and pod.status.phase in _OVER:
            return Done()
        if pod.spec.node_name is None:
            await self._bind(ctx, pod)
            pod = await ctx.client.get(Pod, pod.key)
        left = self._since.setdefault(uid, loop.time()) + self._delay - loop.time()
        if left > 0:
            await self._report(ctx, pod, _CREATING)
            return RequeueAfter(left)
        await self._report(ctx, pod, self._outcome(pod))
        return Done()

    async def _bind(self, ctx: Context, pod: Pod) -> None:
        binding = Binding(
            metadata=ObjectMeta(name=pod.metadata.name, namespace=pod.metadata.namespace, uid=pod.metadata.uid),
            target=ObjectReference(kind="Node", name=self._node),
        )
        # The server answers with a Status, which is not needed.
        await ctx.client.create_subresource(Pod, pod.key, "binding", binding, returns=Binding)

    @staticmethod
    async def _report(ctx: Context, pod: Pod, outcome: PodOutcome) -> None:
        pod.status = observe(pod, outcome, utc_now())
        await ctx.client.save(pod)

    async def _let_go(self, ctx: Context, pod: Pod) -> Done:
        """End a Pod as a kubelet does: report how it ended, then remove it."""
        over = pod.status is not None and pod.status.phase in _OVER
        if pod.metadata.finalizers and not over and pod.status is not None and pod.status.start_time is not None:
            # A finalizer waits for its end: a Job counts its Pods.
            pod.status = killed(pod, utc_now())
            await ctx.client.save(pod)
        if pod.metadata.deletion_grace_period_seconds != 0:
            await ctx.client.delete(pod, grace_period_seconds=0)
        return Done()

    def _forget(self, key: Key) -> None:
        uid = self._uids.pop(key, None)
        if uid is not None:
            self._since.pop(uid, None)
            self._ending.pop(uid, None)
