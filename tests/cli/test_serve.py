"""``steersman serve``: a Kubernetes API as a program."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from steersman import Client, Unstructured
from steersman.cli import main
from steersman.cli.request_log import show_request
from steersman.client.configuration.discovery_order import discover_config
from steersman.errors import NotFound
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.batch_v1 import Job, JobSpec
from steersman.kinds.core_v1 import ConfigMap, Container, Namespace, Pod, PodSpec, PodTemplateSpec
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import ObjectMeta
from steersman.testing import eventually


@asynccontextmanager
async def serving(*arguments: str, cwd: Path | None = None) -> AsyncGenerator[tuple[asyncio.subprocess.Process, Path]]:
    """A server as a process, and the kubeconfig that it names."""
    command = (
        sys.executable,
        "-c",
        "import sys; from steersman.cli import main; sys.exit(main())",
        "serve",
        *arguments,
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, cwd=cwd)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("export KUBECONFIG="), line
        yield process, Path(shlex.split(line)[1].partition("=")[2])
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """How a server ends after a signal."""
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(60):
        _, errors = await process.communicate()
    return process.returncode, errors.decode()


def connect(kubeconfig: Path):
    return Client.connect(discover_config(kubeconfig=str(kubeconfig)), field_manager="tests")


async def test_what_was_stored_is_there_after_a_restart(tmp_path):
    folder = tmp_path / "my data"
    async with serving("--data", str(folder)) as (process, kubeconfig):
        assert kubeconfig == folder / "kubeconfig"
        assert folder.stat().st_mode & 0o777 == 0o700
        async with connect(kubeconfig) as client:
            made = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"k": "v"}))
        async with serving_fails("--data", str(folder)) as errors:
            assert f"in use by process {process.pid}" in errors
        code, errors = await ended(process)
    assert (code, errors.splitlines()[-1]) == (0, "stopped")
    assert f"stored in {folder}\n" in errors
    assert "Traceback" not in errors
    async with serving("--data", str(folder)) as (process, kubeconfig):
        async with connect(kubeconfig) as client:
            found = await client.get(ConfigMap, "default/a")
        assert (found.metadata.uid, found.metadata.resource_version) == (
            made.metadata.uid,
            made.metadata.resource_version,
        )


@asynccontextmanager
async def serving_fails(*arguments: str, code: int = 1) -> AsyncGenerator[str]:
    """What a server says that does not start."""
    command = (
        sys.executable,
        "-c",
        "import sys; from steersman.cli import main; sys.exit(main())",
        "serve",
        *arguments,
    )
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(30):
        _, errors = await process.communicate()
    assert process.returncode == code
    assert "Traceback" not in errors.decode()
    yield errors.decode()


async def test_without_a_folder_nothing_is_left(tmp_path):
    async with serving() as (process, kubeconfig):
        async with connect(kubeconfig) as client:
            names = {each.key.name for each in await client.list(ConfigMap)}
            assert names == {"extension-apiserver-authentication", "kube-root-ca.crt"}
        code, errors = await ended(process)
    assert code == 0, errors
    assert "in memory, lost at the end; --data DIRECTORY stores them\n" in errors
    assert "Ctrl-C" in errors
    assert not kubeconfig.parent.exists()


@pytest.mark.parametrize(("arguments", "open_to_others"), [((), False), (("--host", "0.0.0.0"), True)])
async def test_only_a_named_host_opens_the_port_to_other_machines(arguments, open_to_others):
    """The kubeconfig names loopback either way: it is for clients on this machine."""
    async with serving(*arguments) as (_, kubeconfig):
        port = int(kubeconfig.read_text().partition("https://127.0.0.1:")[2].split()[0])
        async with connect(kubeconfig) as client:
            assert await client.list(ConfigMap)
        # a second address of this machine, as other machines would use one
        with nullcontext() if open_to_others else pytest.raises(ConnectionRefusedError):
            _, writer = await asyncio.open_connection("127.0.0.2", port)
            writer.close()


async def deleted(kubeconfig: Path, *, within: float) -> bool:
    """Whether a namespace with something in it goes when it is deleted."""
    async with connect(kubeconfig) as client:
        await client.create(Namespace(metadata=ObjectMeta(name="shop")))
        await client.create(ConfigMap(metadata=ObjectMeta(name="wares", namespace="shop")))
        await client.delete(Namespace, "shop")
        try:
            async with asyncio.timeout(within):
                while await client.find(Namespace, "shop") is not None:  # noqa: ASYNC110 - also for the one that stays
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return False
    return True


async def test_controllers_work_and_can_be_chosen():
    async with serving() as (process, kubeconfig):
        assert await deleted(kubeconfig, within=60)
        _, errors = await ended(process)
    assert (
        "garbage-collector, namespace, serviceaccount, root-ca-certificate-publisher, clusterrole-aggregation, resourcequota, "
        "persistentvolumeclaim-protection\n" in errors
    )
    async with serving("--controllers", "none") as (process, kubeconfig):
        assert not await deleted(kubeconfig, within=0.5)
        _, errors = await ended(process)
    assert "none: dependents of deleted objects stay, and so do deleted namespaces\n" in errors


def pods(restart_policy: str, **labels: str) -> PodTemplateSpec:
    containers = [Container(name="main", image="app:1")]
    spec = PodSpec(containers=containers, restart_policy=restart_policy)
    return PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=spec)


async def test_workloads_become_ready_with_pods():
    """An operator that waits for its Deployment would otherwise wait for ever."""
    async with serving("--pods", "-v") as (process, kubeconfig):
        async with connect(kubeconfig) as client:
            selector = LabelSelector(match_labels={"app": "web"})
            spec = DeploymentSpec(replicas=2, selector=selector, template=pods("Always", app="web"))
            await client.create(Deployment(metadata=ObjectMeta(name="web"), spec=spec))
            available = {"status": {"availableReplicas": 2}}
            await eventually(client, Deployment, "web", has=available, within=60)
            await client.create(Job(metadata=ObjectMeta(name="once"), spec=JobSpec(template=pods("Never"))))
            await eventually(client, Job, "once", has={"status": {"succeeded": 1}}, within=60)
            first, *_ = await client.list(Pod, labels={"app": "web"})
            await client.delete(first)
            await eventually(client, Pod, first.key, gone=True, within=60)
            await eventually(client, Deployment, "web", has=available, within=60)
        code, errors = await ended(process)
    assert (code, errors.splitlines()[-1]) == (0, "stopped"), errors
    assert "  pods        workloads get Pods, which become ready; no container starts\n" in errors
    runner = [line for line in errors.splitlines() if "system:kube-controller-manager" in line]
    assert {line.split()[2] for line in runner} >= {"create", "patch"}
    assert not {line.split()[2] for line in runner} & {"get", "list", "watch"}, "its reads are not shown"


async def test_a_port_that_is_taken_is_reported(tmp_path):
    async with serving("--kubeconfig", str(tmp_path / "config")) as (_, kubeconfig):
        assert kubeconfig == tmp_path / "config"
        port = kubeconfig.read_text().partition("127.0.0.1:")[2].split()[0]
        async with serving_fails("--port", port) as errors:
            assert f"cannot listen on 127.0.0.1 port {port}" in errors


MODULE = """
from steersman import Resource, Spec


class BoatSpec(Spec):
    masts: int = 1


class Boat(Resource[BoatSpec, None], group="boats.example.com", version="v1"):
    pass
"""


async def test_classes_of_a_module_are_served_and_requests_are_shown_and_kept(tmp_path):
    (tmp_path / "boats.py").write_text(MODULE)
    options = ("--resource", "boats:Boat", "-v", "--audit", "audit.jsonl")
    async with serving(*options, cwd=tmp_path) as (process, kubeconfig):
        async with connect(kubeconfig) as client:
            boat = {"apiVersion": "boats.example.com/v1", "kind": "Boat", "metadata": {"name": "raft"}, "spec": {}}
            made = await client.create(Unstructured(boat))
            assert made["spec"] == {"masts": 1}
            with pytest.raises(NotFound):
                await client.get(ConfigMap, "nothing")
        _, errors = await ended(process)
    assert "boats.example.com/v1 Boat\n" in errors
    shown = [line.split() for line in errors.splitlines() if " create " in line or " get " in line]
    assert [line[1:4] for line in shown][-2:] == [
        ["201", "create", "/apis/boats.example.com/v1/namespaces/default/boats?fieldManager=tests"],
        ["404", "get", "/api/v1/namespaces/default/configmaps/nothing"],
    ]
    assert shown[-1][4:5] + shown[-1][6:7] == ["admin", "ms"]
    assert '         configmaps "nothing" not found\n' in errors
    kept = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert kept[-1]["responseStatus"]["code"] == 404


async def test_what_cannot_be_served_is_a_sentence(tmp_path):
    (tmp_path / "kept").write_text("apiVersion: v1\nkind: Config\nclusters: [{name: work}]\ncontexts: []\n")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "authority.pem").write_text("no key")
    (tmp_path / "old" / "authority.pem").chmod(0o600)
    kept = f"{tmp_path}/kept already exists and is not a kubeconfig of this server"
    rows = [
        (("--kubeconfig", str(tmp_path / "no" / "config")), "No such file or directory; choose another place"),
        (("--kubeconfig", str(tmp_path / "kept")), kept),
        (("--data", str(tmp_path / "old")), "authority.pem does not hold an authority of this server; remove the file"),
    ]
    for arguments, words in rows:
        async with serving_fails(*arguments) as errors:
            assert words in errors
            assert errors.startswith("steersman: "), errors
    assert (tmp_path / "kept").read_text().startswith("apiVersion: v1\nkind: Config\nclusters: [{name: work}]")


def test_wrong_arguments_are_reported_before_anything_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("steersman.cli.serve.configure_logging", lambda **_: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    for arguments, code, words in [
        (("--data", "file"), 1, f"cannot use {tmp_path}/file: File exists; choose another place"),
        (("--data", "shared"), 1, "shared: other users can write into it; chmod go-w it"),
        (("--audit", "no/audit"), 1, "cannot use no/audit: No such file or directory"),
        (("--resource", "no_such_module"), 1, "cannot import no_such_module"),
        (("--resource", "json"), 1, "json has no resource class"),
        (("--resource", "boats.py"), 2, "boats.py is a file: name the module boats"),
        (("--controllers", "namespace"), 1, "unknown controller 'namespace'; did you mean namespace-controller?"),
        (("--enable-admission-plugins", "Service"), 1, "'Service' is not an admission plugin of this server"),
        (("--disable-admission-plugins", "PodSecurity,Odd"), 1, "disable_admission_plugins: 'Odd' is not"),
    ]:
        assert main(["serve", *arguments]) == code
        assert words in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["serve", "--port", "http"])
    assert "'http' is not a port" in capsys.readouterr().err


def test_a_shown_request_cannot_command_the_terminal(capsys):
    """Paths, users and messages come from clients, and a terminal obeys control characters."""
    event = {
        "requestReceivedTimestamp": "2026-01-01T00:00:00Z",
        "stageTimestamp": "2026-01-01T00:00:00Z",
        "stage": "ResponseComplete",
        "verb": "get",
        "requestURI": "/api/v1/\x1b[2J",
        "user": {"username": "evil\x9b31m\r"},
        "userAgent": "kub\x1b]0;pwned\x07ectl",
        "responseStatus": {"code": 404, "message": 'pods "\x1b[31m" not found\n00:00:00 200 get /fake\u202e'},
    }
    show_request(event)
    show_request({**event, "user": {}})
    first, second, third, *_ = capsys.readouterr().err.splitlines()
    assert "/api/v1/\\x1b[2J  evil\\x9b31m\\r" in first
    assert second == '         pods "\\x1b[31m" not found'
    assert third == "         00:00:00 200 get /fake\\u202e"


async def test_a_server_may_open_as_many_files_as_the_system_allows():
    """The soft limit is often 1,024, and each connection is a file."""
    code = (
        "import resource, sys\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard - 1, 256), hard))\n"
        "from steersman.cli import main\n"
        "try: main(['generate', 'crds', 'no_such_module'])\n"
        "finally: print(resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert output.split() == [b"True"]
