"""kube-controller-manager with a service account for each controller: the default roles allow all that they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from controller_manager.manifests import deployment
from controller_manager.servers import accounts_server
from controller_manager.stage import Stage

from samples.meeting import Meeting


@pytest.mark.slow
async def test_controllers_work_with_the_permissions_of_their_own_accounts(tmp_path: Path) -> None:
    async with accounts_server(tmp_path) as server:
        await server.api.made("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        stage = Stage(server, "team", Meeting())
        await stage.create("deployments", "web", deployment("web", 2))
        await stage.until("deployments/web", lambda tree: tree.get("status", {}).get("availableReplicas") == 2)
        await stage.delete("deployments/web", "Foreground")
        await stage.gone("deployments/web")
        assert await stage.all("pods") == []
        await server.api.made("DELETE", "/api/v1/namespaces/team", {})
        await stage.count("configmaps", 0)
        accounts = await server.api.made("GET", "/api/v1/namespaces/kube-system/serviceaccounts")
        names = {each["metadata"]["name"] for each in accounts["items"]}
        assert {"deployment-controller", "replicaset-controller", "namespace-controller"} <= names
        log = server.log.read_text()
        assert "is forbidden" not in log, [line for line in log.splitlines() if "is forbidden" in line][:5]
