"""cert-manager, installed by helm from its own chart, works on the embedded server as on the engine."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from cert_manager.built import cert_manager, packaged_chart
from cert_manager.clusters import Cluster, embedded_cluster, engine_cluster
from cert_manager.installation import Installation
from charts.programs import helm

from samples.portions import ALL
from samples.tree_differences import differences


async def played(cluster: AbstractAsyncContextManager[Cluster], chart: Path) -> dict[str, Any]:
    async with cluster as running:
        installation = Installation(running, helm=helm(3), chart=chart)
        await installation.play()
        return installation.records


@pytest.mark.slow
@pytest.mark.skipif(not ALL, reason="builds two large Go programs: tools/cert-manager and .ci/full run it")
async def test_cert_manager_sees_no_difference(tmp_path: Path) -> None:
    """The chart installs, its webhook, injector and controller work, and helm upgrades and removes it as on Kubernetes."""
    program = await asyncio.to_thread(cert_manager)
    chart = await asyncio.to_thread(packaged_chart, tmp_path)
    for name in ("engine", "embedded"):
        (tmp_path / name).mkdir()
    expected, found = await asyncio.gather(
        played(engine_cluster(program, tmp_path / "engine"), chart),
        played(embedded_cluster(program, tmp_path / "embedded"), chart),
    )
    assert "\n".join(differences(expected, found)) == ""
    codes = {label: record[0] for label, record in expected.items() if isinstance(record, tuple)}
    assert codes["create: no name at all"] == 403
    assert codes["a user's request"] == 201
    assert codes["a clerk's approval"] == 403
    assert codes["without a webhook: no name at all"] == 201
    assert "objects after the removal" in expected
