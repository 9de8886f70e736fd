"""Kubernetes' own e2e specs pass on the embedded server, under kube-controller-manager."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.clusters import running_cluster
from e2e.lists import QUICK, read_list
from e2e.suite import Suite


@pytest.mark.slow
async def test_the_quick_specs_pass_on_the_embedded_server(tmp_path: Path) -> None:
    """Programs written against kube-apiserver would fail where one of these does."""
    specs = read_list(QUICK)
    async with running_cluster("embedded", tmp_path) as cluster:
        suite = Suite(cluster, tmp_path, timeout=120, on_result=lambda spec, result: None)
        results = await suite.run(specs, processes=2)
    failed = {spec: result for spec, result in results.items() if result.state != "passed"}
    assert not failed
    assert sorted(results) == specs
