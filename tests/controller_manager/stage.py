"""One scenario on two servers, step by step: what it does, what it waits for, and where both must be in the same state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from controller_manager.servers import Server
from controller_manager.states import path_of, state_of

from samples.meeting import Meeting
from samples.raw_api import JSON_PATCH, MERGE, STRATEGIC
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.existing_cluster import find_kubectl
from steersman.testing.engine.kubectl import run_kubectl

#: How long controllers may take for one step.
SECONDS = 40.0

Scenario: TypeAlias = Callable[["Stage"], Awaitable[None]]


class Stage:
    """What a scenario works with on one server: a namespace of its own."""

    def __init__(self, server: Server, namespace: str, meeting: Meeting, *, hashes: bool = True) -> None:
        self.server = server
        self.api = server.api
        self.namespace = namespace
        self._meeting = meeting
        #: Whether both sides hash templates in the same way.
        self._hashes = hashes

    # writing

    async def create(self, resource: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object."""
        tree = dict(body)
        tree["metadata"] = {"name": name, **tree.get("metadata", {})}
        return await self.api.made("POST", path_of(resource, self.namespace), tree)

    async def patch(self, target: str, body: Any, *, how: str = MERGE) -> dict[str, Any]:
        """Patch an object: ``deployments/web``, or ``deployments/web/scale``."""
        if isinstance(body, list):
            how = JSON_PATCH
        return await self.api.made("PATCH", self._path(target), body, content_type=how)

    async def scale(self, target: str, replicas: int) -> None:
        """Set a scale."""
        await self.patch(f"{target}/scale", {"spec": {"replicas": replicas}})

    async def image(self, target: str, image: str, **annotations: str) -> None:
        """Give the containers of a template another image."""
        changed = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "main", "image": image}]}}
        await self.patch(target, {"spec": {"template": changed}}, how=STRATEGIC)

    async def delete(self, target: str, policy: str = "Background") -> None:
        """Delete an object; what becomes of its dependents is the policy."""
        await self.api.made("DELETE", self._path(target), {"propagationPolicy": policy})

    async def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the namespace."""
        program = find_kubectl(Environment.read())
        return await run_kubectl(
            program, [f"--namespace={self.namespace}", *arguments], kubeconfig=self.server.kubeconfig
        )

    # reading

    async def get(self, target: str) -> dict[str, Any] | None:
        """An object; None if there is none."""
        answer = await self.api.send("GET", self._path(target))
        assert answer.code in {200, 404}, f"{target}: {answer.body}"
        return answer.body if answer.code == 200 else None

    async def all(self, resource: str, labels: str = "") -> list[dict[str, Any]]:
        """All objects of a resource in the namespace."""
        found = await self.api.made("GET", f"{path_of(resource, self.namespace)}?labelSelector={labels}")
        return found["items"]

    async def until(self, target: str, question: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Wait until an object is as it should be."""
        seen: dict[str, Any] | None = None
        try:
            async with asyncio.timeout(SECONDS):
                while (seen := await self.get(target)) is None or not question(seen):  # noqa: ASYNC110 - the server is asked
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{self.server.name}: {target} did not become what it should: {seen}") from None
        return seen

    async def gone(self, *targets: str) -> None:
        """Wait until none of these objects is there."""
        for target in targets:
            try:
                async with asyncio.timeout(SECONDS):
                    while await self.get(target) is not None:  # noqa: ASYNC110 - the server is asked
                        await asyncio.sleep(0.05)
            except TimeoutError:
                raise AssertionError(f"{self.server.name}: {target} never went: {await self.get(target)}") from None

    async def count(self, resource: str, number: int, labels: str = "") -> list[dict[str, Any]]:
        """Wait until there are exactly so many."""
        found: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(SECONDS):
                while len(found := await self.all(resource, labels)) != number:  # noqa: ASYNC110 - the server is asked
                    await asyncio.sleep(0.05)
        except TimeoutError:
            names = [each["metadata"]["name"] for each in found]
            raise AssertionError(f"{self.server.name}: {number} {resource} expected, not {names}") from None
        return found

    async def same(self, label: str, *resources: str, events: bool = False) -> None:
        """Both servers must be in the same state now, or be about to."""
        await self._meeting.compare(
            self.server.name,
            label,
            lambda: state_of(self.api, self.namespace, resources, events=events, hashes=self._hashes),
        )

    async def told(self, label: str, value: object) -> None:
        """Both plays must have seen the same."""

        async def seen() -> list[Any]:
            return [json.loads(json.dumps(value).replace(self.namespace, "<namespace>"))]

        await self._meeting.compare(self.server.name, label, seen)

    def _path(self, target: str) -> str:
        resource, _, name = target.partition("/")
        return path_of(resource, self.namespace, name)


async def play(scenario: Scenario, stages: tuple[Stage, Stage], meeting: Meeting) -> None:
    """Play a scenario on both servers; raises what went wrong first."""

    async def one(stage: Stage) -> None:
        try:
            body = {"metadata": {"name": stage.namespace}}
            await stage.api.made("POST", "/api/v1/namespaces", body)
            await scenario(stage)
        except BaseException:
            await meeting.leave()
            raise

    results = await asyncio.gather(*(one(stage) for stage in stages), return_exceptions=True)
    failures = [each for each in results if isinstance(each, BaseException)]
    for each in failures:
        # the other play was only let go
        if not isinstance(each, asyncio.BrokenBarrierError):
            raise each
    if failures:
        raise failures[0]
