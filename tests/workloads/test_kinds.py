"""The kinds on a server: what they accept, refuse and show."""

from __future__ import annotations

from functools import partial

import pytest

from steersman import Key
from steersman.controlplane import ControlPlane
from steersman.errors import Invalid
from steersman.objects import Kind, ObjectMeta
from steersman.workloads.kinds import (
    KINDS,
    AddedProbe,
    AddedProbeSchedule,
    EnvVar,
    Executable,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableSpec,
    ExecutableStatus,
    ExecutableTemplate,
    HttpProbe,
    ProcessAdditions,
    Service,
    ServiceSpec,
    TcpProbe,
)
from steersman.workloads.kinds.immutability import refused_changes
from steersman.workloads.kinds.spec_rules import broken_rules, spec_problems


@pytest.fixture(scope="module")
async def client():
    validators = {kind: partial(spec_problems, kind.__name__) for kind in KINDS}
    async with ControlPlane(resources=KINDS, controllers=(), validators=validators) as plane:
        yield plane.client


async def test_the_server_serves_every_kind(client):
    for kind in KINDS:
        assert list(await client.list(kind)) == []


async def test_defaults_are_those_of_dcp(client):
    await client.create(Executable(metadata=ObjectMeta(name="web"), spec=ExecutableSpec(executable_path="/bin/true")))
    found = await client.get(Executable, Key("", "web"))
    assert found.spec.start
    assert not found.spec.stop
    assert found.spec.mode == "session"
    assert found.spec.execution_type == "Process"


async def test_what_is_not_supported_is_refused_with_a_sentence(client):
    spec = ExecutableSpec(executable_path="/bin/true", execution_type="IDE")
    with pytest.raises(Invalid, match="executionType IDE is not supported"):
        await client.create(Executable(metadata=ObjectMeta(name="ide"), spec=spec))
    with pytest.raises(Invalid, match="protocol UDP is not supported"):
        await client.create(Service(metadata=ObjectMeta(name="dns"), spec=ServiceSpec(protocol="UDP")))


@pytest.mark.parametrize("checks", [{}, {"tcp": TcpProbe(port=80), "http": HttpProbe(url="http://localhost")}])
async def test_an_added_probe_has_one_check(client, checks):
    probe = AddedProbe(name="up", schedule=AddedProbeSchedule(interval="1s"), **checks)
    spec = ExecutableSpec(executable_path="/bin/true", steersman=ProcessAdditions(health_probes=[probe]))
    with pytest.raises(Invalid, match="a probe needs one of tcp, exec and http"):
        await client.create(Executable(metadata=ObjectMeta(name="probed"), spec=spec))


#: The specs of a process and of a container, with the defaults that rules use.
PROCESS = {"executablePath": "/bin/true", "executionType": "Process", "mode": "session", "persistent": False}
CONTAINER = {"image": "web", "mode": "session", "persistent": False, "restartPolicy": "no"}
HTTP = {"name": "up", "type": "HTTP", "httpProbe": {"url": "http://localhost"}}
PROGRAM = {"name": "up", "type": "Executable", "executableProbe": {"executableTemplate": {}}}


@pytest.mark.parametrize(
    ("kind", "spec", "broken"),
    [
        ("Executable", PROCESS, {}),
        ("Executable", {**PROCESS, "executionType": "IDE"}, {"spec": "executionType IDE is not supported"}),
        ("Executable", {**PROCESS, "monitorPid": 1}, {"spec": "monitorPid needs mode persistent"}),
        ("Executable", {**PROCESS, "monitorPid": 1, "mode": "cleanup"}, {"spec": "monitorPid needs mode persistent"}),
        ("Executable", {**PROCESS, "monitorPid": 1, "mode": "persistent"}, {}),
        ("Executable", {**PROCESS, "monitorPid": 1, "persistent": True}, {}),
        ("Executable", {**PROCESS, "healthProbes": [HTTP, PROGRAM]}, {}),
        (
            "Executable",
            {**PROCESS, "healthProbes": [HTTP, {**HTTP, **PROGRAM, "type": "HTTP"}]},
            {"spec.healthProbes[1]": "an Executable probe needs executableProbe, and no other"},
        ),
        (
            "Executable",
            {**PROCESS, "healthProbes": [{**HTTP, **PROGRAM}]},
            {"spec.healthProbes[0]": "an HTTP probe needs httpProbe, and no other"},
        ),
        (
            "ExecutableReplicaSet",
            {"template": {"spec": {**PROCESS, "steersman": {"healthProbes": [{"name": "up", "tcp": {}, "http": {}}]}}}},
            {"spec.template.spec.steersman.healthProbes[0]": "a probe needs one of tcp, exec and http"},
        ),
        ("Container", CONTAINER, {}),
        ("Container", {**CONTAINER, "image": None}, {"spec": "a container needs an image"}),
        ("Container", {**CONTAINER, "image": None, "build": {}}, {}),
        ("Container", {**CONTAINER, "mode": "existing"}, {"spec": "containerName names the container to reuse"}),
        ("Container", {**CONTAINER, "persistent": True}, {"spec": "containerName names the container to reuse"}),
        ("Container", {**CONTAINER, "mode": "existing", "containerName": "web"}, {}),
        ("Container", {**CONTAINER, "steersman": {"attach": {}}}, {}),
        (
            "Container",
            {**CONTAINER, "steersman": {"attach": {}}, "restartPolicy": "always"},
            {"spec": "steersman.attach names a program"},
        ),
        (
            "Container",
            {**CONTAINER, "healthProbes": [{**HTTP, "httpProbe": None}]},
            {"spec.healthProbes[0]": "an HTTP"},
        ),
        ("Service", {"protocol": "TCP", "addressAllocationMode": "Localhost", "address": "127.0.0.1"}, {}),
        ("Service", {"protocol": "UDP", "addressAllocationMode": "Localhost"}, {"spec": "protocol UDP"}),
        (
            "Service",
            {"protocol": "TCP", "addressAllocationMode": "Proxyless", "address": "127.0.0.1"},
            {"spec": "a Proxyless service has the address of its endpoint"},
        ),
    ],
)
def test_a_broken_rule_is_found_at_its_place(kind, spec, broken):
    found = dict(broken_rules(kind, spec))
    assert {path: rule[: len(broken.get(path, ""))] for path, rule in found.items()} == broken


def test_a_rule_that_was_broken_before_is_not_reported_again():
    """Else an update of another field, such as a stop, would fail."""
    old = {"spec": {**PROCESS, "executionType": "IDE"}}
    assert len(spec_problems("Executable", None, old)) == 1
    assert spec_problems("Executable", old, {"spec": {**old["spec"], "stop": True}}) == []


async def test_a_status_owns_its_environment_as_a_whole(client):
    """Managed fields with an entry for each variable would make up half of every Executable."""
    spec = ExecutableSpec(executable_path="/bin/true")
    made = await client.create(Executable(metadata=ObjectMeta(name="variables"), spec=spec))
    made.status = ExecutableStatus(effective_env=[EnvVar(name="SHELL", value="/bin/sh")])
    await client.update(made, subresource="status")
    found = await client.get(Kind(Executable.gvk().api_version, "Executable"), Key("", "variables"))
    managed = str(found.tree["metadata"]["managedFields"])
    assert "f:effectiveEnv" in managed
    assert "SHELL" not in managed


async def test_a_replica_set_can_be_scaled_and_its_template_can_change(client):
    template = ExecutableTemplate(spec=ExecutableSpec(executable_path="/bin/true"))
    made = ExecutableReplicaSet(metadata=ObjectMeta(name="api"), spec=ExecutableReplicaSetSpec(template=template))
    found = await client.create(made)
    found.spec.replicas = 3
    found.spec.template.spec.args = ["--verbose"]
    assert (await client.update(found)).spec.template.spec.args == ["--verbose"]


def test_a_run_cannot_change_what_it_started_with():
    old = {"executablePath": "/bin/a", "start": False, "stop": False}
    assert refused_changes("Executable", old, {**old, "start": True, "stop": True, "healthProbes": []}) == {}
    assert refused_changes("Executable", old, {**old, "executablePath": "/bin/b"}) == {
        "spec.executablePath": "cannot change: create another Executable"
    }
    assert refused_changes("Executable", {**old, "stop": True}, old) == {
        "spec.stop": "cannot change back: it was stopped: create another Executable to start it again"
    }
    assert refused_changes("ExecutableReplicaSet", {"replicas": 1}, {"replicas": 2}) == {}
