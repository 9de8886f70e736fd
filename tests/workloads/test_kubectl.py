"""The developer control plane through the real kubectl: what a user types, and what kubectl prints."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from workloads.plane import until_true
from workloads.test_processes import marked

from samples.eventually import eventually
from steersman.aio import Supervisor
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.errors import KubectlError
from steersman.testing.engine.existing_cluster import find_kubectl
from steersman.testing.engine.kubectl import run_kubectl
from steersman.workloads import GROUP, KINDS, DeveloperControlPlane, simulated_parts
from steersman.workloads.containers import ContainerRuntimeError
from steersman.workloads.kinds import ContainerNetworkConnection
from steersman.workloads.monitored_process import start_time

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")

PAGES = Path(__file__).parents[2] / "docs" / "workloads"
API = f"/apis/{GROUP}/v1"
PATH = {"PATH": os.environ["PATH"]}


class Kubectl:
    """kubectl on a developer control plane."""

    def __init__(self, plane: DeveloperControlPlane) -> None:
        self.plane = plane
        self._program = find_kubectl(Environment.read())

    async def __call__(self, *arguments: str, stdin: str = "", variables: dict[str, str] | None = None) -> str:
        """Run a command and return its standard output."""
        variables = {**os.environ, **variables} if variables else None
        kubeconfig = self.plane.kubeconfig
        async with asyncio.timeout(60):
            return await run_kubectl(self._program, arguments, kubeconfig=kubeconfig, stdin=stdin, variables=variables)

    async def apply(self, *objects: dict[str, Any]) -> str:
        """Apply objects from standard input."""
        return await self("apply", "--filename=-", stdin=yaml.safe_dump_all(objects))

    async def wait(self, what: str, *names: str) -> None:
        """Wait for a condition, or for a field: ``state=Running``."""
        path, _, value = what.partition("=")
        condition = f"jsonpath={{.status.{path}}}={value}" if value else f"condition={what}"
        await self("wait", f"--for={condition}", "--timeout=30s", *names)

    async def tree(self, name: str) -> dict[str, Any]:
        """An object: ``executable/web``."""
        return json.loads(await self("get", name, "--output=json"))

    @asynccontextmanager
    async def watching(self, *arguments: str) -> AsyncIterator[asyncio.StreamReader]:
        """Run a command that does not end by itself."""
        config = self.plane.kubeconfig
        options = (f"--kubeconfig={config}", f"--cache-dir={config.with_name('kubectl-cache')}")
        process = await asyncio.create_subprocess_exec(
            self._program, *options, *arguments, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            yield process.stdout
        finally:
            process.kill()
            await process.communicate()


def of(kind: str, name: str, annotations: dict[str, str] | None = None, /, **spec: object) -> dict[str, Any]:
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}


def serving(service: str, **entry: object) -> dict[str, str]:
    return {"service-producer": json.dumps([{"serviceName": service, **entry}])}


def shell(name: str, script: str, **spec: object) -> dict[str, Any]:
    return of("Executable", name, executablePath="/bin/sh", args=["-c", script], **spec)


def table(text: str) -> list[dict[str, str]]:
    """The rows of ``kubectl get``, by the names in its header."""
    header, *lines = text.splitlines()
    starts = [each.start() for each in re.finditer(r"(?:^|(?<= {3}))\S", header)]
    ends = [*starts[1:], None]
    places = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
    return [{header[place].strip(): line[place].strip() for place in places} for line in lines]


@pytest.fixture
async def kubectl(tmp_path):
    """kubectl on simulated processes and containers."""
    async with DeveloperControlPlane(
        folder=tmp_path / "session", parts=simulated_parts, ambient={**PATH, "DB_PASSWORD": "s3cr3t"}
    ) as plane:
        yield Kubectl(plane)


@pytest.fixture
async def real(tmp_path):
    """kubectl on processes and ports of this machine."""
    async with DeveloperControlPlane(folder=tmp_path / "session", ambient=PATH) as plane:
        yield Kubectl(plane)


@pytest.fixture(scope="module")
async def full(tmp_path_factory):
    """kubectl on a control plane with an object of each kind."""
    folder = tmp_path_factory.mktemp("kubectl") / "session"
    async with DeveloperControlPlane(folder=folder, parts=simulated_parts, ambient=PATH) as plane:
        kubectl = Kubectl(plane)
        plane.parts.processes.failures["/bin/broken"] = "no such program"
        await kubectl.apply(
            of("Executable", "web", serving("web"), executablePath="/bin/web"),
            of("Executable", "broken", executablePath="/bin/broken"),
            of("Executable", "late", executablePath="/bin/late", start=False),
            of("ExecutableReplicaSet", "worker", replicas=2, template={"spec": {"executablePath": "/bin/worker"}}),
            of("Service", "web", port=8080),
            of("Service", "idle"),
            of("Container", "cache", serving("cache", port=6379), image="app:1", ports=[{"containerPort": 6379}]),
            of("Container", "lost", image="missing:1"),
            of("ContainerExec", "ping", containerName="cache", command="redis-cli"),
            of("ContainerExec", "early", containerName="unknown", command="true"),
            of("ContainerExec", "orphan", containerName="lost", command="true"),
            of("ContainerVolume", "data", name="project-data"),
        )
        await asyncio.gather(
            kubectl.wait("Ready", "executable/web", "executablereplicaset/worker", "service/web"),
            kubectl.wait("Ready", "container/cache", "containervolume/data"),
            kubectl.wait("state=FailedToStart", "executable/broken", "container/lost", "containerexec/orphan"),
            kubectl.wait("Started", "containerexec/ping"),
            kubectl.wait("state=NotReady", "service/idle"),
            kubectl.wait("steersman.waitingFor=spec.start to be true", "executable/late"),
        )
        await until_true(lambda: plane.client.list(ContainerNetworkConnection))
        await kubectl.wait("Ready", "containernetworkconnection", "--all")
        await kubectl.wait("Ready", "containernetwork/default")
        yield kubectl


# what it serves


async def test_discovery_lists_the_nine_kinds_and_events_alone(full):
    listed = (await full("api-resources", "--output=name")).split()
    plurals = {f"{kind.__name__.lower()}s.{GROUP}" for kind in KINDS}
    assert len(plurals) == 9
    assert sorted(listed) == sorted([*plurals, "events", "events.events.k8s.io"])
    short = table(await full("api-resources", f"--api-group={GROUP}"))
    assert {each["SHORTNAMES"]: each["KIND"] for each in short if each["SHORTNAMES"]} == {
        "exe": "Executable",
        "ers": "ExecutableReplicaSet",
        "ctr": "Container",
        "svc": "Service",
    }


COLUMNS = {
    "Executable": ("web", {"STATE": "Running", "HEALTH": "Healthy", "PID": r"\d+", "EXIT": "", "WAITING FOR": ""}),
    "ExecutableReplicaSet": (
        "worker",
        {"REPLICAS": "2", "RUNNING": "2", "FAILED": "0", "FINISHED": "0", "HEALTH": "Healthy", "RESTARTS": "0"}
        | {"WAITING FOR": ""},
    ),
    "Service": ("web", {"STATE": "Ready", "ADDRESS": "localhost", "PORT": "8080", "ENDPOINTS": "1", "MESSAGE": ""}),
    "Endpoint": (r"web-web-\w+", {"SERVICE": "web", "ADDRESS": r"127\.0\.0\.1", "PORT": r"\d+"}),
    "Container": ("cache", {"STATE": "Running", "HEALTH": "Healthy", "IMAGE": "app:1", "EXIT": "", "WAITING FOR": ""}),
    "ContainerExec": ("ping", {"STATE": "Running", "CONTAINER": "cache", "EXIT": "", "WAITING FOR": ""}),
    "ContainerNetwork": ("default", {"STATE": "Running", "NETWORK": r"default-\w+", "MESSAGE": ""}),
    "ContainerNetworkConnection": (
        r"cache-default-\w+",
        {"READY": "True", "NETWORK": "default", "CONTAINER": r"[0-9a-f]{64}"},
    ),
    "ContainerVolume": ("data", {"STATE": "Ready", "VOLUME": "project-data"}),
}


@pytest.mark.parametrize("kind", [each.__name__ for each in KINDS])
async def test_get_prints_the_columns_of_a_kind(full, kind):
    name, cells = COLUMNS[kind]
    rows = table(await full("get", f"{kind}.{GROUP}"))
    (row,) = [each for each in rows if re.fullmatch(name, each["NAME"])]
    assert list(row) == ["NAME", *cells, "AGE"]
    for column, text in cells.items():
        assert re.fullmatch(text, row[column]), f"{column}: {row[column]}"
    assert re.fullmatch(r"\d+s|\d+m\d*s?", row["AGE"])


async def test_get_says_what_a_workload_waits_for(full):
    async def waiting(kind: str, name: str) -> str:
        return table(await full("get", kind, name))[0]["WAITING FOR"]

    assert await waiting("executable", "late") == "spec.start to be true"
    assert await waiting("containerexec", "early") == "Container unknown to be created"
    assert table(await full("get", "service", "idle"))[0]["MESSAGE"] == (
        "Service idle has no endpoint: nothing that runs serves it"
    )


FAILED = [("executable/broken", "no such program"), ("container/lost", "missing:1"), ("containerexec/orphan", "lost")]


@pytest.mark.parametrize(("name", "why"), FAILED)
async def test_get_wide_says_why_a_start_failed(full, name, why):
    (row,) = table(await full("get", name, "--output=wide"))
    assert row["STATE"] == "FailedToStart"
    assert why in row["MESSAGE"]


@pytest.mark.parametrize(("name", "why"), FAILED)
async def test_describe_shows_conditions_and_events(full, name, why):
    async def recorded() -> bool:
        return why in (await full("describe", name)).partition("\nEvents:")[2]

    await until_true(recorded)
    about, _, events = (await full("describe", name)).partition("\nEvents:")
    for condition in ("Started", "Completed"):
        assert re.search(rf"Status: +False\n +Type: +{condition}\n", about)
    assert why in about
    assert re.search(r"Warning +FailedToStart +\d+s", events)
    (event,) = [each for each in table(await full("get", "events")) if each["OBJECT"] == name]
    assert (event["TYPE"], event["REASON"]) == ("Warning", "FailedToStart")


async def test_describe_names_the_process_that_holds_a_port(real):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        await real.apply(of("Service", "web", port=port))
        why = (
            rf"port {port} is in use by .*{os.getpid()}.*, at 127\.0\.0\.1; stop it, or set spec\.port to another port"
        )

        async def recorded() -> object:
            return re.search(rf"\nEvents:(.|\n)*Warning +PortInUse .*{why}", await real("describe", "service", "web"))

        await until_true(recorded)
        (row,) = table(await real("get", "service", "web"))
        assert row["STATE"] == "NotReady"
        assert re.search(why, row["MESSAGE"])


async def test_describe_says_why_a_network_could_not_be_created(kubectl):
    """The Event stays when the network runs."""
    kubectl.plane.parts.containers.failures["create_network"] = ContainerRuntimeError("no subnet is left")
    await kubectl.apply(of("ContainerNetwork", "lan"))
    await kubectl.wait("Ready", "containernetwork/lan")

    async def recorded() -> object:
        events = (await kubectl("describe", "containernetwork", "lan")).partition("\nEvents:")[2]
        return re.search(r"Warning +FailedToStart .*no subnet is left", events)

    await until_true(recorded)


async def test_conditions_have_whole_seconds(full):
    """As metav1.Time has it: a Go client that writes a status back changes no time."""
    names = ("executable/web", "executablereplicaset/worker", "service/web", "container/cache", "containerexec/ping")
    for name in names:
        for condition in (await full.tree(name))["status"]["conditions"]:
            assert re.fullmatch(r"[-\d]+T[:\d]+Z", condition["lastTransitionTime"]), name


async def test_explain_has_the_words_of_the_class(full):
    assert "Whether to start the program." in await full("explain", "executable.spec.start")


async def test_the_admin_document_can_be_read(full):
    document = json.loads(await full("get", "--raw", "/admin/execution"))
    assert document == {"status": "Running", "shutdownResourceCleanup": "Full", "steersman": {"blocking": []}}


# apply


def documents(page: Path) -> list[dict[str, Any]]:
    """The objects of a page. A block with a part of an object completes the first one, under another name."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == text.count("```yaml"), f"{page.name}: a block is indented"
    parts = [each for block in blocks for each in yaml.safe_load_all(block)]
    whole = [each for each in parts if "kind" in each]
    for number, part in enumerate(each for each in parts if "kind" not in each):
        first = whole[0]
        assert part.keys() == {"spec"}, f"{page.name}: a block is no object and no spec: {part}"
        name = {"name": f"{first['metadata']['name']}-{number}"}
        whole.append({**first, "metadata": name, "spec": first["spec"] | part["spec"]})
    return whole


async def test_every_object_of_the_pages_is_accepted(kubectl):
    """With kubectl's strict validation: an unknown field is an error."""
    found = [each for page in sorted(PAGES.glob("*.md")) for each in documents(page)]
    assert {each["kind"] for each in found} >= {"Executable", "ExecutableReplicaSet", "Service", "Container"}
    kubectl.plane.parts.containers.registry.update(each["spec"].get("image") for each in found)
    for each in found:
        if attach := each["spec"].get("steersman", {}).get("attach"):
            # The control plane deletes a Container whose program does not run.
            attach |= {"pid": os.getpid(), "startTicks": start_time(os.getpid())}
    printed = await kubectl.apply(*found)
    assert printed.count(" created\n") == len(found)
    await kubectl.wait("Ready", "container/cache")
    assert " created" not in await kubectl.apply(*found)
    assert (await kubectl.tree("container/cache"))["metadata"]["generation"] == 1


async def test_an_unknown_field_and_a_wrong_value_are_refused(kubectl):
    with pytest.raises(KubectlError, match=r'unknown field "spec\.executablePaht"'):
        await kubectl.apply(of("Executable", "web", executablePath="/bin/web", executablePaht="/bin/web"))
    with pytest.raises(KubectlError, match="protocol UDP is not supported: the proxy forwards TCP alone"):
        await kubectl.apply(of("Service", "dns", protocol="UDP"))
    dependency = {"kind": "Executable", "name": "db", "condition": "Complete"}
    with pytest.raises(KubectlError, match='supported values: "Started", "Healthy", "Completed"'):
        await kubectl.apply(of("Executable", "web", executablePath="w", steersman={"dependsOn": [dependency]}))


# edits


async def test_an_edit_of_an_immutable_field_is_refused_with_what_to_do(kubectl, tmp_path):
    """By patch, by apply, and by kubectl edit, which keeps the user's text."""
    await kubectl.apply(of("Executable", "web", executablePath="/bin/web"), of("Container", "cache", image="app:1"))
    advice = r"spec\.executablePath: Forbidden: cannot change: create another Executable"
    with pytest.raises(KubectlError, match=advice):
        await kubectl("patch", "executable", "web", "--type=merge", "--patch", '{"spec": {"executablePath": "/x"}}')
    with pytest.raises(KubectlError, match=advice):
        await kubectl.apply(of("Executable", "web", executablePath="/bin/other"))
    with pytest.raises(KubectlError, match=r"spec\.image: Forbidden: cannot change: create another Container"):
        await kubectl.apply(of("Container", "cache", image="app:2"))
    with pytest.raises(KubectlError, match=r"cannot change back: it has started: set spec\.stop to end it"):
        await kubectl("patch", "executable", "web", "--type=merge", "--patch", '{"spec": {"start": false}}')
    variables = {"KUBE_EDITOR": r"sed -i s,^\ *executablePath:.*,\ \ executablePath:\ /x,", "TMPDIR": str(tmp_path)}
    with pytest.raises(KubectlError, match="Edit cancelled, no valid changes were saved"):
        await kubectl("edit", "executable", "web", variables=variables)
    assert any(re.search(advice, each.read_text()) for each in tmp_path.glob("kubectl-edit-*"))


async def test_an_edit_stops_a_program(kubectl):
    await kubectl.apply(of("Executable", "web", executablePath="/bin/web"))
    await kubectl.wait("state=Running", "executable/web")
    await kubectl("patch", "executable", "web", "--type=merge", "--patch", '{"spec": {"stop": true}}')
    await kubectl.wait("state=Terminated", "executable/web")
    assert kubectl.plane.parts.processes.running == []


async def test_scale_changes_the_number_of_processes(kubectl):
    await kubectl.apply(of("ExecutableReplicaSet", "worker", template={"spec": {"executablePath": "/bin/worker"}}))
    processes = kubectl.plane.parts.processes
    for replicas in (3, 0):
        await kubectl("scale", "executablereplicaset/worker", f"--replicas={replicas}")
        await kubectl.wait(f"runningReplicas={replicas}", "executablereplicaset/worker")
        await eventually(lambda count=replicas: len(processes.running) == count)
    with pytest.raises(KubectlError, match="Expected replicas to be 1, was 0"):
        await kubectl("scale", "executablereplicaset/worker", "--current-replicas=1", "--replicas=2")


async def test_get_watch_prints_a_change(kubectl):
    await kubectl.apply(of("Executable", "web", executablePath="/bin/web"))
    await kubectl.wait("state=Running", "executable/web")
    async with asyncio.timeout(30), kubectl.watching("get", "executables", "--watch") as printed:
        header = await printed.readline()
        (before,) = table((header + await printed.readline()).decode())
        kubectl.plane.parts.processes.running[0].exit(3)
        # Later rows may be wider than the header.
        while "Finished" not in (after := (await printed.readline()).decode().split()):
            continue
    assert (before["STATE"], before["EXIT"]) == ("Running", "")
    assert after[:5] == ["web", "Finished", "Unhealthy", before["PID"], "3"]


# wait


async def test_wait_sees_the_conditions_of_a_container(kubectl):
    runtime = kubectl.plane.parts.containers
    runtime.gates["start"] = asyncio.Event()
    await kubectl.apply(of("Container", "cache", image="app:1"))
    async with Supervisor() as tasks:
        ready = tasks.start(kubectl.wait("Ready", "container/cache"), name="wait")
        await kubectl.wait("state=Starting", "container/cache")
        assert not ready.done()
        runtime.gates["start"].set()
        await ready
    (container,) = runtime.containers
    runtime.exit(container, 0)
    await kubectl.wait("Completed", "container/cache")


async def test_wait_sees_a_service_become_ready_and_its_program_healthy(real, tmp_path):
    """The program of docs/workloads/executables.md, with a probe of its port: real processes, and a real proxy."""
    await real.apply(of("Service", "web"))
    port = '{{portForServing "web"}}'
    web = of(
        "Executable",
        "web",
        serving("web"),
        executablePath=sys.executable,
        args=["-m", "http.server", "--bind=127.0.0.1", port],
        workingDirectory=str(tmp_path),
        healthProbes=[
            {
                "name": "page",
                "type": "HTTP",
                "httpProbe": {"url": f"http://127.0.0.1:{port}"},
                "schedule": {"interval": "1s"},
            }
        ],
    )
    async with Supervisor() as tasks:
        ready = tasks.start(real.wait("Ready", "service/web"), name="wait")
        await real.wait("state=NotReady", "service/web")
        assert not ready.done()
        await real.apply(web, shell("job", "sleep 0.2"))
        await asyncio.gather(ready, real.wait("Healthy", "executable/web"), real.wait("Completed", "executable/job"))
    (row,) = table(await real("get", "executable", "web"))
    assert row["HEALTH"] == "Healthy"
    assert start_time(int(row["PID"])) is not None


async def test_wait_says_that_a_condition_does_not_hold(real):
    await real.apply(shell("job", "exit 3"))
    await real.wait("exitCode=3", "executable/job")
    with pytest.raises(KubectlError, match="timed out waiting for the condition on executables/job"):
        await real("wait", "--for=condition=Completed", "--timeout=200ms", "executable/job")


# the end of a program


async def test_delete_waits_until_the_process_is_gone(real, tmp_path):
    """The program takes half a second to end, and its child ignores the signal: none of them is left."""
    script = "(trap '' TERM; sleep 300) & trap 'sleep 0.5; exit' TERM; echo up; while :; do sleep 0.05; done"
    env = [{"name": "MARK", "value": str(tmp_path)}]
    await real.apply(shell("web", script, env=env, steersman={"stopTimeout": "1s"}))
    await real.wait("state=Running", "executable/web")

    async def up() -> bool:
        return await real("get", "--raw", f"{API}/executables/web/log") == "up\n"

    await until_true(up)
    assert (await real.tree("executable/web"))["status"]["pid"] in marked(tmp_path)
    assert "deleted" in await real("delete", "executable", "web")
    assert marked(tmp_path) == set()
    with pytest.raises(KubectlError, match='"web" not found'):
        await real("get", "executable", "web")


# output


async def test_output_is_read_by_kubectl_and_by_steersman_logs(real):
    await real.apply(shell("web", "echo one; echo two; echo problem >&2"))
    await real.wait("Completed", "executable/web")
    log = f"{API}/executables/web/log"
    assert await real("get", "--raw", log) == "one\ntwo\n"
    assert await real("get", "--raw", f"{log}?tail=1&line_numbers=true") == "2 two\n"
    with pytest.raises(KubectlError, match="source must be one of stdout, stderr"):
        await real("get", "--raw", f"{log}?source=all")

    async def logs(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "steersman", "logs", *options]
        env = {**os.environ, "KUBECONFIG": str(real.plane.kubeconfig)}
        return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, env=env, timeout=60)

    out, err, followed, missing = await asyncio.gather(
        logs("web"), logs("executable/web", "--source=stderr"), logs("web", "--follow", "--tail=1"), logs("other")
    )
    assert (out.stdout, out.returncode) == ("one\ntwo\n", 0)
    assert (err.stdout, err.returncode) == ("problem\n", 0)
    assert (followed.stdout, followed.returncode) == ("two\n", 0)
    assert missing.returncode == 1
    assert 'executables.usvc-dev.developer.microsoft.com "other" not found' in missing.stderr


async def test_secrets_are_masked_in_the_status_and_kept_in_the_spec(kubectl):
    """The environment of the control plane has a password too, which appears nowhere."""
    env = [{"name": "API_TOKEN", "value": "hunter2"}, {"name": "MODE", "value": "fast"}]
    await kubectl.apply(of("Executable", "web", executablePath="/bin/web", env=env))
    await kubectl.wait("state=Running", "executable/web")
    printed = await kubectl("get", "executable", "web", "--output=yaml")
    shown = yaml.safe_load(printed)
    assert shown["spec"]["env"] == env
    effective = {each["name"]: each["value"] for each in shown["status"]["effectiveEnv"]}
    assert effective == {**PATH, "MODE": "fast", "API_TOKEN": "********", "DB_PASSWORD": "********"}
    assert "hunter2" not in yaml.safe_dump(shown["status"])
    assert "s3cr3t" not in printed + await kubectl("describe", "executable", "web")
    (process,) = kubectl.plane.parts.processes.running
    assert process.launch.env["API_TOKEN"] == "hunter2"
