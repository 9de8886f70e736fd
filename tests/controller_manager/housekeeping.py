"""Scenarios of what controllers do behind the workloads: deletion, namespaces, accounts, endpoints, budgets, quotas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from controller_manager.manifests import deployment, owned_by
from controller_manager.stage import SECONDS, Stage
from controller_manager.states import RESOURCES


async def _until(stage: Stage, path: str, question: Callable[[dict[str, Any]], bool]) -> None:
    """Wait for an answer about something that is in no namespace."""
    seen: Any = None
    try:
        async with asyncio.timeout(SECONDS):
            while not question(seen := (await stage.api.send("GET", path)).body):  # noqa: ASYNC110 - the server is asked
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{stage.server.name}: {path} did not become what it should: {seen}") from None


async def _creation_answers(stage: Stage, resource: str, code: int) -> None:
    """Wait until a creation for trial gets an answer: the server hears of quotas later than it says so."""
    path = f"/api/v1/namespaces/{stage.namespace}/{resource}?dryRun=All"
    answer: Any = None
    try:
        async with asyncio.timeout(SECONDS):
            while (answer := await stage.api.send("POST", path, {"metadata": {"name": "trial"}})).code != code:  # noqa: ASYNC110 - the server is asked
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{stage.server.name}: {path} did not answer {code}: {answer.body}") from None


def _available(replicas: int) -> Any:
    return lambda tree: tree.get("status", {}).get("availableReplicas") == replicas


async def deletions(stage: Stage) -> None:
    """The three ways to delete an owner: its dependents go after it, before it, or stay."""
    kinds = ("deployments", "replicasets", "pods")
    for name in ("background", "foreground", "orphan"):
        await stage.create("deployments", name, deployment(name, 2))
    for name in ("background", "foreground", "orphan"):
        await stage.until(f"deployments/{name}", _available(2))
    await stage.same("created", *kinds)
    await stage.delete("deployments/background", "Background")
    await stage.gone("deployments/background")
    await stage.delete("deployments/foreground", "Foreground")
    await stage.gone("deployments/foreground")
    # what goes in the foreground is gone together with its owner
    assert await stage.all("pods", "app=foreground") == []
    assert await stage.all("replicasets", "app=foreground") == []
    await stage.delete("deployments/orphan", "Orphan")
    await stage.gone("deployments/orphan")
    await stage.count("pods", 0, "app=background")
    await stage.count("replicasets", 0, "app=background")
    await stage.same("deleted", *kinds)
    # a new owner finds what the old one left
    await stage.create("deployments", "orphan", deployment("orphan", 2))
    await stage.until("deployments/orphan", _available(2))
    await stage.same("adopted", *kinds)


async def owners(stage: Stage) -> None:
    """The garbage collector goes by uid: several owners, one that blocks, one that never was, a circle, a namespace too far."""
    kinds = ("configmaps",)
    first = await stage.create("configmaps", "first", {})
    second = await stage.create("configmaps", "second", {})
    await stage.create("configmaps", "of-first", owned_by(first, "v1", "ConfigMap"))
    both = owned_by(first, "v1", "ConfigMap")
    both["metadata"]["ownerReferences"] += owned_by(second, "v1", "ConfigMap")["metadata"]["ownerReferences"]
    await stage.create("configmaps", "of-both", both)
    await stage.create(
        "configmaps", "of-none", owned_by({"metadata": {"name": "none", "uid": "1-2-3"}}, "v1", "ConfigMap")
    )
    stranger = {"metadata": {"name": "second", "uid": "00000000-0000-4000-8000-000000000000"}}
    await stage.create("configmaps", "of-a-namesake", owned_by(stranger, "v1", "ConfigMap"))
    await stage.gone("configmaps/of-none", "configmaps/of-a-namesake")
    await stage.same("without an owner", *kinds)
    await stage.delete("configmaps/first")
    await stage.gone("configmaps/first", "configmaps/of-first")
    await stage.until("configmaps/of-both", lambda tree: len(tree["metadata"]["ownerReferences"]) == 1)
    await stage.same("one of two owners gone", *kinds)
    blocking = owned_by(second, "v1", "ConfigMap", blockOwnerDeletion=True)
    blocking["metadata"]["finalizers"] = ["example.com/held"]
    await stage.create("configmaps", "blocks", blocking)
    await stage.delete("configmaps/second", "Foreground")
    await stage.until("configmaps/blocks", lambda tree: "deletionTimestamp" in tree["metadata"])
    await stage.gone("configmaps/of-both")
    await stage.same("held by a dependent", *kinds)
    await stage.patch("configmaps/blocks", {"metadata": {"finalizers": None}})
    await stage.gone("configmaps/blocks", "configmaps/second")
    one = await stage.create("configmaps", "one", {})
    other = await stage.create("configmaps", "other", owned_by(one, "v1", "ConfigMap"))
    await stage.patch("configmaps/one", owned_by(other, "v1", "ConfigMap"))
    await stage.delete("configmaps/one", "Foreground")
    await stage.gone("configmaps/one", "configmaps/other")
    await stage.same("a circle", *kinds)


async def namespaces(stage: Stage) -> None:
    """A namespace goes with everything in it, says what holds it up, and takes nothing new meanwhile."""
    path = f"/api/v1/namespaces/{stage.namespace}"
    await stage.create("deployments", "web", deployment("web", 2))
    await stage.create("services", "web", {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})
    await stage.create("configmaps", "held", {"metadata": {"finalizers": ["example.com/held"]}})
    await stage.until("deployments/web", _available(2))
    await stage.api.made("DELETE", path)
    await _until(stage, path, _waits_for_finalizers)
    await stage.count("pods", 0)
    await stage.same("held up", *(name for name in RESOURCES if name not in {"serviceaccounts", "ships"}))
    answer = await stage.api.send("POST", f"{path}/configmaps", {"metadata": {"name": "late"}})
    await stage.told("too late", (answer.code, answer.body))
    await stage.told("conditions", _conditions(await stage.api.made("GET", path)))
    await stage.patch("configmaps/held", {"metadata": {"finalizers": None}})
    await _until(stage, path, lambda tree: tree.get("code") == 404)


def _waits_for_finalizers(namespace: dict[str, Any]) -> bool:
    found = {each["type"]: each["status"] for each in namespace["status"].get("conditions", [])}
    wanted = {"NamespaceFinalizersRemaining": "True", "NamespaceContentRemaining": "True"}
    texts = " ".join(each.get("message", "") for each in namespace["status"].get("conditions", []))
    return wanted.items() <= found.items() and "Some resources are remaining: configmaps. has 1" in texts


def _conditions(namespace: dict[str, Any]) -> list[tuple[Any, ...]]:
    conditions = namespace["status"]["conditions"]
    return sorted(tuple(each.get(name) for name in ("type", "status", "reason", "message")) for each in conditions)


async def accounts(stage: Stage) -> None:
    """Every namespace has a default service account, which comes back when it is deleted."""
    await stage.count("serviceaccounts", 1)
    first = await stage.until("serviceaccounts/default", lambda _: True)
    await stage.delete("serviceaccounts/default")
    uid = first["metadata"]["uid"]
    await stage.until("serviceaccounts/default", lambda tree: tree["metadata"]["uid"] != uid)
    await stage.same("there again", "serviceaccounts")
    token = await stage.kubectl("create", "token", "default")
    assert token.count(".") == 2


async def endpoints(stage: Stage) -> None:
    """A Service has the addresses of the Pods that are ready, and of no others."""
    kinds = ("services", "endpointslices", "pods")
    await stage.create("deployments", "web", deployment("web", 3))
    body = {"spec": {"selector": {"app": "web"}, "ports": [{"name": "web", "port": 80, "targetPort": "http"}]}}
    await stage.create("services", "web", body)
    await stage.create("services", "nobody", {"spec": {"selector": {"app": "nobody"}, "ports": [{"port": 80}]}})
    await stage.until("deployments/web", _available(3))
    await stage.same("ready", *kinds)
    await stage.scale("deployments/web", 1)
    await stage.count("pods", 1)
    await stage.same("scaled down", *kinds)
    await stage.image("deployments/web", "example.com/nothing", outcome="waits")
    await stage.until("deployments/web", lambda tree: tree["status"].get("unavailableReplicas") == 1)
    await stage.same("one not ready", *kinds)
    await stage.delete("services/web")
    await stage.count("endpointslices", 1)
    await stage.same("without the Service", *kinds)


async def budgets(stage: Stage) -> None:
    """A budget counts healthy Pods and refuses an eviction that would break it."""
    await stage.create("deployments", "web", deployment("web", 3))
    body = {"spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}}
    await stage.until("deployments/web", _available(3))
    await stage.create("poddisruptionbudgets", "web", body)
    await stage.until("poddisruptionbudgets/web", lambda tree: tree["status"].get("disruptionsAllowed") == 1)
    await stage.same("one may go", "poddisruptionbudgets")
    await stage.patch("poddisruptionbudgets/web", {"spec": {"minAvailable": "100%"}})
    await stage.until("poddisruptionbudgets/web", lambda tree: tree["status"].get("disruptionsAllowed") == 0)
    await stage.same("none may go", "poddisruptionbudgets")
    pods = await stage.count("pods", 3)
    name = pods[0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{stage.namespace}/pods/{name}/eviction"
    refused = await stage.api.send("POST", path, eviction)
    await stage.told("refused", (refused.code, refused.body))
    await stage.patch("poddisruptionbudgets/web", {"spec": {"minAvailable": 2}})
    await stage.until("poddisruptionbudgets/web", lambda tree: tree["status"].get("disruptionsAllowed") == 1)
    evicted = await stage.api.send("POST", path, eviction)
    await stage.told("evicted", (evicted.code, evicted.body))
    await stage.gone(f"pods/{name}")
    await stage.until("poddisruptionbudgets/web", lambda tree: tree["status"].get("disruptionsAllowed") == 1)
    await stage.same("replaced", "poddisruptionbudgets", "pods")


async def quotas(stage: Stage) -> None:
    """The status of a quota says what is used; what exceeds it is refused, until something is deleted."""
    await stage.create("configmaps", "counted", {})
    body = {"spec": {"hard": {"pods": "9", "count/configmaps": "5", "services": "3"}}}
    await stage.create("resourcequotas", "most", body)
    await stage.until("resourcequotas/most", lambda tree: tree.get("status", {}).get("used"))
    # the controller may have counted before its watch had the ConfigMap: it counts again when the quota changes
    await stage.patch("resourcequotas/most", {"spec": {"hard": {"pods": "10"}}})
    await stage.until("resourcequotas/most", lambda tree: tree["status"]["hard"]["pods"] == "10")
    await stage.same("counted", "resourcequotas")
    counted = int((await stage.get("resourcequotas/most") or {})["status"]["used"]["count/configmaps"])
    hard = {"count/configmaps": str(counted + 1), "secrets": "0"}
    await stage.patch("resourcequotas/most", {"spec": {"hard": hard}})
    await _creation_answers(stage, "secrets", 403)
    await stage.create("configmaps", "last", {})
    path = f"/api/v1/namespaces/{stage.namespace}/configmaps"
    refused = await stage.api.send("POST", path, {"metadata": {"name": "more"}})
    await stage.told("refused", (refused.code, refused.body))
    await stage.same("full", "resourcequotas")
    await stage.delete("configmaps/last")
    await _creation_answers(stage, "configmaps", 201)
    await stage.same("with room again", "resourcequotas")


async def roles(stage: Stage) -> None:
    """A ClusterRole that aggregates others has their rules."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    label = {"aggregates": stage.namespace}
    whole = {
        "metadata": {"name": stage.namespace},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": label}]},
    }
    await stage.api.made("POST", path, whole)
    rules = [{"apiGroups": ["example.com"], "resources": ["sites"], "verbs": ["get", "list"]}]
    part = {"metadata": {"name": f"{stage.namespace}-part", "labels": label}, "rules": rules}
    await stage.api.made("POST", path, part)
    await _until(stage, f"{path}/{stage.namespace}", lambda tree: tree["rules"] == rules)
    found = await stage.api.made("GET", f"{path}/{stage.namespace}")
    await stage.told("aggregated", [found["rules"], found["aggregationRule"]])
