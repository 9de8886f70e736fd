"""The workload runner does what kube-controller-manager does: the same work for both, and the same state at every checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest
from controller_manager import housekeeping, workloads
from controller_manager.servers import Server, engine_server, runner_server
from controller_manager.stage import Meeting, Scenario, Stage, play

from samples import portions
from steersman.aio import name_suffix

SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        workloads.deployments,
        workloads.stuck_rollouts,
        workloads.scaled_rollouts,
        workloads.refused_pods,
        workloads.recreated,
        workloads.adopted,
        workloads.stateful_sets,
        workloads.stateful_set_policies,
        workloads.retained_claims,
        workloads.daemon_sets,
        workloads.jobs,
        workloads.troubled_jobs,
        housekeeping.deletions,
    )
}


@pytest.fixture(scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[Server, Server]]:
    """The engine with its kube-controller-manager, and the embedded control plane with a runner."""
    async with AsyncExitStack() as exits:
        engine = await exits.enter_async_context(engine_server())
        runner = await exits.enter_async_context(runner_server(tmp_path_factory.mktemp("runner")))
        yield engine, runner


@pytest.mark.slow
@pytest.mark.parametrize("name", portions.some(SCENARIOS, 6))
async def test_the_runner_ends_where_kube_controller_manager_does(servers: tuple[Server, Server], name: str) -> None:
    """A test that passes with the runner would otherwise be about another world than the cluster's."""
    meeting, namespace = Meeting(), f"{name.replace('_', '-')}-{name_suffix()}"
    first, second = (Stage(server, namespace, meeting, hashes=False) for server in servers)
    try:
        async with asyncio.timeout(120):
            await play(SCENARIOS[name], (first, second), meeting)
    except TimeoutError:
        pytest.fail(f"{name} was at {meeting.checkpoints[-1:]} after 120 s. {_described(meeting)}")
    assert meeting.differences == {}, _described(meeting)
    assert meeting.checkpoints


def _described(meeting: Meeting) -> str:
    return "\n".join(f"{label}:\n{text}" for label, text in meeting.differences.items())
