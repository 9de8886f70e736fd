"""The Node of the runner's Pods: ready and without taints, for as long as the runner runs.

Guarantees
- An existing Node of that name is left unchanged.
- The runner deletes the Node it made; another runner of the same name makes it again.
"""

from __future__ import annotations

from steersman.aio import utc_now
from steersman.client import Client, Verbs
from steersman.controller import Blueprint, Context, Done, Reconciler, Request, controller_for
from steersman.errors import AlreadyExists
from steersman.kinds.core_v1 import Node, NodeCondition, NodeStatus
from steersman.objects import ObjectMeta


class OwnNode(Reconciler[Node]):
    """Keeps a Node in existence."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._uid = ""

    def blueprint(self) -> Blueprint:
        """The controller's blueprint."""
        return controller_for(Node, name="runner-node").run_with(self)

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Create the Node again if it was deleted."""
        if request.key.name == self._name and await ctx.client.find(Node, self._name) is None:
            await self.make(ctx.client)
        return Done()

    async def make(self, client: Verbs) -> None:
        """Create the Node in the state that a kubelet and the node controller produce."""
        labels = {"kubernetes.io/hostname": self._name, "kubernetes.io/os": "linux"}
        try:
            node = await client.create(Node(metadata=ObjectMeta(name=self._name, labels=labels)))
        except AlreadyExists:
            return
        self._uid = node.metadata.uid or ""
        if node.spec is not None and node.spec.taints:
            # The server taints a new node until it is reported ready.
            node.spec.taints = None
            node = await client.update(node)
        moment = utc_now().replace(microsecond=0)
        ready = NodeCondition(
            type="Ready",
            status="True",
            reason="KubeletReady",
            message="WorkloadRunner plays the kubelet",
            last_heartbeat_time=moment,
            last_transition_time=moment,
        )
        node.status = node.status or NodeStatus()
        node.status.conditions = [ready]
        await client.update(node, subresource="status")

    async def remove(self, client: Client) -> None:
        """Delete the Node, if this runner made it."""
        if self._uid:
            await client.delete(Node, self._name, uid=self._uid, missing_ok=True)
