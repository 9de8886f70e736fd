from __future__ import annotations

import pytest

from steersman.aio import name_suffix
from steersman.testing import Engine, EngineError


async def test_an_existing_cluster_is_used_as_it_is(engine, tmp_path, crd_group, monkeypatch) -> None:
    """With USE_EXISTING_CLUSTER the default kubeconfig's cluster serves, and nothing of it can be killed."""
    # Two files, of which one only chooses the context: what kubectl merges, the engine sees.
    chosen = tmp_path / "chosen"
    chosen.write_text("apiVersion: v1\nkind: Config\ncurrent-context: admin-token\n")
    monkeypatch.setenv("USE_EXISTING_CLUSTER", "true")
    monkeypatch.setenv("KUBECONFIG", f"{chosen}:{engine.kubeconfig}")
    async with Engine.start() as existing:
        assert existing.is_existing_cluster
        assert existing.url == engine.url
        assert existing.kubeconfig.stat().st_mode & 0o777 == 0o600
        name = f"by-existing-{name_suffix()}"
        await existing.create_namespace(name)
        assert name in await engine.kubectl("get", "namespaces", "--output=name")
        await existing.delete_namespace(name)
        phase = await engine.kubectl("get", "namespace", name, "--output=jsonpath={.status.phase}")
        assert phase == "Terminating"
        await existing.delete_crds(crd_group)
        with pytest.raises(EngineError, match="unset USE_EXISTING_CLUSTER"):
            _ = existing.api_servers
        with pytest.raises(EngineError, match=r"Engine\.compact needs an engine that Steersman started"):
            await existing.compact()
    assert "serverVersion" in await engine.kubectl("version", "--output=json")


async def test_an_existing_cluster_that_is_nowhere_says_what_to_do(tmp_path, monkeypatch) -> None:
    """An empty kubeconfig is reported as such, before any test runs."""
    monkeypatch.setenv("USE_EXISTING_CLUSTER", "true")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))
    with pytest.raises(EngineError, match=r"the default kubeconfig is unusable .*use-context"):
        async with Engine.start():
            pass
