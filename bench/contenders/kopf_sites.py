"""The converge benchmark's work with kopf, in its own environment (requirements/bench-kopf.txt).

kopf does not watch children, so it repairs no drift. On SIGUSR1 it prints its number of reconciles.
"""

from __future__ import annotations

import asyncio
import signal

import kopf
from kubernetes_asyncio import client, config

LIMIT = asyncio.Semaphore(16)
reconciles = 0


@kopf.on.startup()
async def startup(settings: kopf.OperatorSettings, memo: kopf.Memo, **_):
    settings.posting.enabled = False
    await config.load_kube_config()
    memo.api = client.CoreV1Api(client.ApiClient())
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print_reconciles)


def print_reconciles():
    print("reconciles", reconciles, flush=True)


@kopf.on.cleanup()
async def cleanup(memo: kopf.Memo, **_):
    await memo.api.api_client.close()


@kopf.on.resume("bench.example.com", "v1", "sites")
@kopf.on.create("bench.example.com", "v1", "sites")
@kopf.on.update("bench.example.com", "v1", "sites", field="spec")
async def reconcile(spec, meta, body, name, namespace, patch, memo: kopf.Memo, **_):
    global reconciles  # noqa: PLW0603 - kopf's handlers are functions of the module
    reconciles += 1
    page = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {
            "image": spec["image"],
            "replicas": str(spec["replicas"]),
            "index.html": f"<h1>{spec['message']}</h1>",
        },
    }
    kopf.append_owner_reference(page, owner=body)
    async with LIMIT:
        await memo.api.patch_namespaced_config_map(
            name, namespace, page, field_manager="sites", force=True, _content_type="application/apply-patch+yaml"
        )
    patch.status["observedGeneration"] = meta["generation"]
    patch.status["readyReplicas"] = spec["replicas"]
