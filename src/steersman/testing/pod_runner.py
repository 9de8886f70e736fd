"""A kubelet without containers: Pods of an API server are scheduled, run, become ready, end and go.

Guarantees
- Every Pod that a scheduler would take is bound to the runner's node and given the status that its outcome asks for;
  a Pod that another node has is left alone.
- A Pod that is marked for deletion is let go at once, whatever grace period it has.
- A Pod that is as it should be is not written to: the runner is as quiet as its world.

Nothing is started and no image is read. There is no Node object, so DaemonSets have no Pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from steersman.aio import Supervisor, now
from steersman.cache import Cache, Informer, KindOptions
from steersman.client import Client
from steersman.controller import Cause, Context, Controller, Done, KeyRecord, Request, RequeueAfter, controller
from steersman.kinds.core_v1 import Binding, ObjectReference, Pod
from steersman.objects import Key, ObjectMeta
from steersman.objects.errors import NotFound
from steersman.testing.pod_status import PodOutcome, Running, Waiting, killed, observe
from steersman.testing.taking_part import taking_part

_CREATING = Waiting("ContainerCreating")
_OVER = frozenset({"Succeeded", "Failed"})


def runs(pod: Pod) -> PodOutcome:
    """The outcome of every Pod unless something else is said: it runs and is ready."""
    del pod
    return Running()


class _Part:
    """A runner as a test waits for it; whoever wants to know its runs asks for the Pods."""

    runs: tuple[tuple[str, KeyRecord], ...] = ()

    def __init__(self, controller: Controller, informer: Informer[Pod]) -> None:
        self.controllers = (controller,)
        self.informers = (informer,)

    def runs_of(self, key: Key) -> tuple[tuple[str, KeyRecord], ...]:
        del key
        return self.runs

    def check(self) -> None:
        """There is nothing in it that a test could break."""


class PodRunner:
    """Makes the Pods of an API server run, for as long as its block lasts.

    ```python
    async with PodRunner(client, delay=0.2, outcome=lambda pod: Waiting("ImagePullBackOff")):
        ...
    ```

    ``outcome`` is asked about a Pod whenever it changes, and says how far it comes: `Running`, `Waiting`, `Succeeded`
    or `Failed`. ``delay`` is how many seconds a Pod waits with ``ContainerCreating`` before that. ``namespaces`` limits
    the runner to some; ``node`` is the name that Pods are bound to.
    """

    def __init__(
        self,
        client: Client,
        *,
        outcome: Callable[[Pod], PodOutcome] = runs,
        delay: float = 0.0,
        namespaces: tuple[str, ...] = (),
        node: str = "pod-runner",
    ) -> None:
        if not 0 <= delay < float("inf"):
            raise ValueError(f"PodRunner: delay is a number of seconds, 0 or more; got {delay}")
        self._client = client
        self._outcome = outcome
        self._delay = delay
        self._namespaces = namespaces
        self._node = node
        #: When each Pod began to wait, in the loop's time.
        self._since: dict[str, float] = {}
        self._uids: dict[Key, str] = {}
        self._controller: Controller | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        if self._controller is not None:
            raise RuntimeError("a PodRunner is entered once: make another one")
        options = KindOptions(namespaces=self._namespaces)
        plan = controller(Pod, name="pod-runner").options(concurrency=8).run_with(self._reconcile)
        async with AsyncExitStack() as stack:
            cache = await stack.enter_async_context(Cache(self._client, kinds={Pod: options}))
            self._controller = plan.assemble(cache)
            tasks = await stack.enter_async_context(Supervisor())
            tasks.start(self._controller.run(), name="pod-runner")
            stack.enter_context(taking_part(_Part(self._controller, cache.informer(Pod))))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._controller is not None
        self._controller.stop()
        await self._stack.__aexit__(kind, error, trace)

    def look_again(self) -> None:
        """Ask ``outcome`` about every Pod again: what it goes by has changed."""
        if self._controller is None:
            raise RuntimeError("the PodRunner does not run: use it inside of `async with PodRunner(client) as runner:`")
        for key in self._uids:
            self._controller.add(Request(key), Cause(what="external", note="told to look again"))

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
        if pod.spec.node_name not in {None, self._node} or pod.spec.scheduling_gates:
            return Done()
        if pod.metadata.deletion_timestamp is not None:
            return await self._let_go(ctx, pod)
        if pod.status is not None and pod.status.phase in _OVER:
            return Done()
        if pod.spec.node_name is None:
            await self._bind(ctx, pod)
            pod = await ctx.client.get(Pod, pod.key)
        loop = asyncio.get_running_loop()
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
        # The server answers with a Status, of which nothing is needed.
        await ctx.client.create_subresource(Pod, pod.key, "binding", binding, returns=Binding)

    @staticmethod
    async def _report(ctx: Context, pod: Pod, outcome: PodOutcome) -> None:
        pod.status = observe(pod, outcome, now())
        await ctx.client.save(pod)

    async def _let_go(self, ctx: Context, pod: Pod) -> Done:
        """What a kubelet does at the end of a Pod: say how it ended, then remove it."""
        over = pod.status is not None and pod.status.phase in _OVER
        if pod.metadata.finalizers and not over and pod.status is not None and pod.status.start_time is not None:
            # Somebody waits for the end of it: a Job counts its Pods.
            pod.status = killed(pod, now())
            await ctx.client.save(pod)
        if pod.metadata.deletion_grace_period_seconds != 0:
            await ctx.client.delete(pod, grace_period_seconds=0)
        return Done()

    def _forget(self, key: Key) -> None:
        uid = self._uids.pop(key, None)
        if uid is not None:
            self._since.pop(uid, None)
