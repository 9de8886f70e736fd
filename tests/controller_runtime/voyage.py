"""What happens to ships while their operator runs: the same on both servers, compared at every checkpoint."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import yaml
from controller_manager.stage import Stage
from controller_runtime.operators import Operator

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = ("ships", "deployments", "configmaps", "services")


def _ready(status: str, generation: int) -> Callable[[dict[str, Any]], bool]:
    def question(tree: dict[str, Any]) -> bool:
        found = tree.get("status", {})
        conditions = {each["type"]: each["status"] for each in found.get("conditions", [])}
        return found.get("observedGeneration") == generation and conditions.get("Ready") == status

    return question


async def install(stage: Stage) -> None:
    """Install the operator's kind."""
    definition = yaml.safe_load(Path(__file__).with_name("ships.yaml").read_text())
    await stage.api.made("POST", CRDS, definition)
    async with asyncio.timeout(30):
        while (await stage.api.send("GET", "/apis/fleet.example.com/v1/ships")).code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def _reach(stage: Stage, name: str, replicas: int) -> None:
    """Play the Deployment controller: all replicas are ready."""
    tree = await stage.until(f"deployments/{name}", lambda tree: tree["spec"]["replicas"] == replicas)
    status = {
        "observedGeneration": tree["metadata"]["generation"],
        **dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), replicas),
    }
    await stage.patch(f"deployments/{name}/status", {"status": status})


async def _told(stage: Stage) -> list[tuple[str, ...]]:
    """What the operator said of its ships."""
    found = await stage.api.made("GET", f"/apis/events.k8s.io/v1/namespaces/{stage.namespace}/events")
    return sorted(
        (
            each["regarding"]["kind"],
            each["regarding"]["name"],
            each["reason"],
            each["note"],
            each["reportingController"],
        )
        for each in found["items"]
        if each["regarding"]["kind"] == "Ship"
    )


async def voyage(stage: Stage, program: Path, folder: Path) -> None:
    """From the launch to the end of two ships, under three leaders."""
    async with AsyncExitStack() as exits:

        async def operator(name: str) -> Operator:
            log = folder / f"{stage.server.name}-{name}.log"
            one = Operator(program, stage.server.kubeconfig, stage.namespace, log)
            return await exits.enter_async_context(one)

        first = await operator("first")
        await first.leads()
        await _launch(stage)
        await _edit(stage)
        second = await operator("second")
        await first.end(signal.SIGTERM)
        await second.leads()
        await _change(stage)
        third = await operator("third")
        # the lease is not released: it has to run out
        await second.end(signal.SIGKILL)
        await third.leads()
        await _sink(stage)
        await third.end(signal.SIGTERM)
        lease = await stage.until("leases/fleet-operator", lambda tree: not tree["spec"].get("holderIdentity"))
        await stage.told("leaders", lease["spec"]["leaseTransitions"])


async def _launch(stage: Stage) -> None:
    chart = {"metadata": {"labels": {"fleet.example.com/chart": ""}}, "data": {"course": "north"}}
    await stage.create("configmaps", "atlantic", chart)
    ship = {"apiVersion": "fleet.example.com/v1", "kind": "Ship"}
    await stage.create("ships", "beagle", ship | {"spec": {"image": "beagle:1", "replicas": 2, "chart": "atlantic"}})
    await stage.create("ships", "victory", ship | {"spec": {"image": "victory:1", "class": "frigate"}})
    for name in ("beagle", "victory"):
        await stage.until(f"ships/{name}", _ready("False", 1))
    await stage.same("launched", *KINDS)
    await _reach(stage, "beagle", 2)
    await _reach(stage, "victory", 1)
    for name in ("beagle", "victory"):
        await stage.until(f"ships/{name}", _ready("True", 1))
    await stage.same("ready", *KINDS)
    refused = [
        await stage.api.send("PATCH", f"/apis/fleet.example.com/v1/namespaces/{stage.namespace}/ships/{name}", change,
                             content_type="application/merge-patch+json")
        for name, change in (("victory", {"spec": {"class": "brig"}}), ("beagle", {"spec": {"replicas": 4}}))
    ]  # fmt: skip
    await stage.told("refused", [(each.code, each.body) for each in refused])


async def _edit(stage: Stage) -> None:
    """Scale a ship, edit its children, and take one away: all comes back to what the ship says."""
    await stage.scale("ships/beagle", 3)
    await _reach(stage, "beagle", 3)
    await stage.until("ships/beagle", _ready("True", 2))
    await stage.image("deployments/victory", "pirate:1")
    await stage.until("deployments/victory", lambda tree: _image(tree) == "victory:1")
    await stage.patch("configmaps/victory-papers", {"data": {"class": "raft", "note": "forged"}})
    await stage.until("configmaps/victory-papers", lambda tree: tree["data"]["class"] == "frigate")
    service = await stage.get("services/victory")
    assert service is not None
    await stage.delete("services/victory")
    await stage.until("services/victory", lambda tree: tree["metadata"]["uid"] != service["metadata"]["uid"])
    lost = await stage.get("deployments/beagle")
    assert lost is not None
    await stage.delete("deployments/beagle")
    await stage.until("deployments/beagle", lambda tree: tree["metadata"]["uid"] != lost["metadata"]["uid"])
    await _reach(stage, "beagle", 3)
    await stage.until("ships/beagle", _ready("True", 2))
    await stage.same("edited", *KINDS)
    async with asyncio.timeout(30):
        launched = ("Ship", "beagle", "Launched", "launched beagle", "fleet-operator")
        while launched not in await _told(stage):  # noqa: ASYNC110 - the server is asked
            await asyncio.sleep(0.05)
    table = await stage.kubectl("get", "ships", "--field-selector=spec.chart=atlantic")
    await stage.told("as kubectl shows it", re.sub(r"\d+m?s\b", "AGE", table))


def _image(deployment: dict[str, Any]) -> str:
    return deployment["spec"]["template"]["spec"]["containers"][0]["image"]


async def _change(stage: Stage) -> None:
    """What the next leader finds, and a change of what a ship refers to, which only the index tells."""
    before = (await stage.until("deployments/beagle", lambda _: True))["spec"]["template"]["metadata"]["annotations"]
    await stage.patch("configmaps/atlantic", {"data": {"course": "south"}})
    await stage.until("deployments/beagle", lambda tree: tree["spec"]["template"]["metadata"]["annotations"] != before)
    await stage.patch("ships/victory", {"spec": {"image": "victory:2"}})
    await stage.until("deployments/victory", lambda tree: _image(tree) == "victory:2")
    await _reach(stage, "victory", 1)
    await stage.until("ships/victory", _ready("True", 2))
    await stage.same("changed", *KINDS)


async def _sink(stage: Stage) -> None:
    """A ship goes when its finalizer lets it, and all that it owns goes with it."""
    await stage.delete("ships/beagle")
    await stage.gone("ships/beagle", "deployments/beagle", "services/beagle", "configmaps/beagle-papers")
    await stage.same("one left", *KINDS)
    await stage.delete("ships/victory", "Foreground")
    await stage.gone("ships/victory")
    assert await stage.get("deployments/victory") is None
    await stage.same("none left", *KINDS)
