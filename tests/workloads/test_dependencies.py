"""Which dependency a workload waits for: the words of ``unmet``, for dependencies that may fail."""

import pytest

from steersman.objects import Condition, MicroTime, ObjectMeta
from steersman.workloads.dependencies import UNHEALTHY, unmet
from steersman.workloads.kinds import (
    STOPPED,
    Container,
    ContainerSpec,
    ContainerStatus,
    Dependency,
    Executable,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableReplicaSetStatus,
    ExecutableSpec,
    ExecutableStatus,
    ExecutableTemplate,
    ReplicaSetObservation,
)


def executable(**status):
    spec = ExecutableSpec(executable_path="x")
    return Executable(metadata=ObjectMeta(name="db"), spec=spec, status=ExecutableStatus(**status))


def container(annotations=None, restart_policy=None, **status):
    spec = ContainerSpec(image="x", restart_policy=restart_policy)
    metadata = ObjectMeta(name="db", annotations=annotations)
    return Container(metadata=metadata, spec=spec, status=ContainerStatus(**status))


def replica_set(*, ended=0, reason="SomeReplicas", **observed):
    template = ExecutableTemplate(spec=ExecutableSpec(executable_path="x"))
    status = ExecutableReplicaSetStatus(
        finished_replicas=ended,
        steersman=ReplicaSetObservation(**observed),
        conditions=[Condition(type="Healthy", status="False", reason=reason, message="")],
    )
    spec = ExecutableReplicaSetSpec(replicas=2, template=template)
    return ExecutableReplicaSet(metadata=ObjectMeta(name="db"), spec=spec, status=status)


FAILED = {
    "ended": executable(state="Finished", exit_code=1),
    "not started": executable(state="FailedToStart"),
    "unhealthy": executable(state="Running", health_status="Unhealthy"),
    "container ended": container(state="Exited", exit_code=1),
    "container not started": container(state="FailedToStart", restart_policy="always"),
    "container unhealthy": container(state="Running", health_status="Unhealthy"),
    "set ended": replica_set(ended=2),
    "set unhealthy": replica_set(reason=UNHEALTHY),
}
WAITING = {
    "starting": executable(state="Starting"),
    "stopped": executable(state="Terminated"),
    "not yet healthy": executable(state="Running", health_status="Caution"),
    "container restarts": container(state="Exited", exit_code=1, restart_policy="always"),
    "container stopped": container(state="Exited", exit_code=1, annotations={STOPPED: "true"}),
    "one runs": replica_set(ended=1),
    "set restarts": replica_set(ended=2, next_restart=MicroTime.parse("2026-01-01T00:00:00.000000Z")),
    "set stopped": replica_set(ended=2, message="It is stopped."),
    "missing": None,
}


@pytest.mark.parametrize("name", [*FAILED, *WAITING])
def test_a_failed_dependency_holds_back_only_what_needs_it(name):
    """An optional dependency is waited for until it has failed for good, any other one for ever."""
    obj = (FAILED | WAITING)[name]
    kind = type(obj).__name__ if obj is not None else "Executable"
    needed = Dependency(kind=kind, name="db", condition="Healthy")
    assert unmet(needed, obj)
    needed.optional = True
    assert (unmet(needed, obj) == "") is (name in FAILED)
