"""``steersman run``: a module's manager as a program, on the real API server; and sentences where that is not possible."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession

from steersman import Client, Manager
from steersman.cli import main
from steersman.cli.failure import Failure
from steersman.cli.run import RunOptions, endpoints_of
from steersman.cli.targets.managers import find_manager
from steersman.client import Added, MergePatch, Modified
from steersman.controlplane import ControlPlane
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap
from steersman.kinds.discovery_v1 import EndpointSlice
from steersman.objects import Kind, Unstructured
from steersman.testing import Engine
from steersman.transport import HttpListener, ServerResponse, ServerTls
from steersman.wire import HttpRequest

OPERATOR = '''
import asyncio, time
from steersman import Context, Done, LeaderElection, Manager, ObjectMeta, Request, Resource, Spec
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap

class SiteSpec(Spec):
    image: str

class Site(Resource[SiteSpec, None], group="GROUP", version="v1"):
    """A web site."""

async def reconcile(ctx: Context, request: Request) -> Done:
    try:
        site = await ctx.client.get(Site, request.key)
    except NotFound:
        return Done()
    page = ConfigMap(metadata=ObjectMeta(name=site.key.name, namespace=site.key.namespace), data={"image": site.spec.image})
    await ctx.client.apply(page, owner=site)
    if site.spec.image == "stuck":
        await asyncio.sleep(3600)
    if site.spec.image == "blocked":
        time.sleep(4)
    ctx.logger.info("published %s", site.spec.image)
    return Done()

manager = Manager(name="site-operator", leader=LeaderElection("site-operator"))
manager.controller(Site).owns(ConfigMap).run_with(reconcile)

async def make(client):
    await client.install(Site)
    return manager
'''
VERSIONS = f'''{OPERATOR}
from steersman.webhooks import VersionConverter

class NewSite(Resource[SiteSpec, None], group="GROUP", version="v2", kind="Site", plural="sites", storage=False):
    """A web site."""

to_hub = lambda site: Site(metadata=site.metadata, spec=site.spec)
to_spoke = lambda site: NewSite(metadata=site.metadata, spec=site.spec)
manager.add(VersionConverter(NewSite, Site, to_hub=to_hub, to_spoke=to_spoke))
'''
NAMELESS = """
from steersman import Manager
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.patterns import generates

@generates(ConfigMap, children=(Secret,), name="config")
def secrets(config: ConfigMap) -> list[Secret]:
    return []

manager = Manager()
manager.add(secrets)
"""
CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: stranger}}]
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: stranger, user: {}}]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory to write modules into, a kubeconfig that leads nowhere, and logging as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.startswith("run_")]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "kubeconfig").write_text(KUBECONFIG, encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield tmp_path
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)


def write(here: Path, name: str, text: str) -> str:
    (here / f"{name}.py").write_text(text, encoding="utf-8")
    return name


# as a program


class Program:
    """``steersman run`` in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, said: asyncio.StreamReader) -> None:
        self.process = process
        self.lines: list[str] = []
        self._said = said

    async def until(self, words: str) -> str:
        """Read what it says until a line holds these words."""
        while True:
            line = (await self._said.readline()).decode()
            assert line, f"it ended before it said {words!r}: {self.lines}"
            self.lines.append(line.rstrip())
            if words in line:
                return line

    async def ended(self) -> int:
        with contextlib.suppress(OSError):  # a terminal whose other end has left
            while line := await self._said.readline():
                self.lines.append(line.decode().rstrip())
        return await self.process.wait()


@asynccontextmanager
async def running(
    *arguments: str, folder: Path, engine: Engine | ControlPlane, terminal: bool = False
) -> AsyncGenerator[Program]:
    command = [sys.executable, "-c", "import sys; from steersman.cli import main; sys.exit(main())", *arguments]
    inner = outer = None
    if terminal:
        outer, inner = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, "KUBECONFIG": str(engine.kubeconfig), "COLUMNS": "200"},
        stdin=asyncio.subprocess.DEVNULL,
        stderr=inner if inner is not None else asyncio.subprocess.PIPE,
    )
    reader, transport = process.stderr, None
    try:
        if outer is not None and inner is not None:
            os.close(inner)
            reader = asyncio.StreamReader()
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(outer, "rb", buffering=0)
            )
        assert reader is not None
        yield Program(process, reader)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        if transport is not None:
            transport.close()


def site(group: str, name: str, namespace: str, image: str) -> Unstructured:
    return Unstructured(
        {
            "apiVersion": f"{group}/v1",
            "kind": "Site",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"image": image},
        }
    )


async def page_of(client: Client, name: str, namespace: str) -> ConfigMap:
    async with client.watch(
        ConfigMap, namespace=namespace, fields={"metadata.name": name}, initial_events=True
    ) as events:
        async for event in events:
            if isinstance(event, Added):
                return event.object
    raise AssertionError("the watch ended")


async def test_run_installs_reconciles_explains_and_drains(
    here: Path, engine: Engine, namespace: str, crd_group: str
) -> None:
    module = write(here, "run_operator", OPERATOR.replace("GROUP", crd_group))
    arguments = ("run", f"{module}:manager", "--install-crds", "--namespace", namespace, "--port", "0")
    async with (
        asyncio.timeout(60),
        engine.client(field_manager="tests") as client,
        running(*arguments, folder=here, engine=engine) as program,
    ):
        address = json.loads(await program.until("debug page at"))["message"].rpartition(" ")[2]
        await client.create(site(crd_group, "web", namespace, "nginx:1.27"))
        assert (await page_of(client, "web", namespace)).data == {"image": "nginx:1.27"}
        await program.until("published nginx:1.27")
        explained = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "import sys; from steersman.cli import main; sys.exit(main())"),
            *("explain", "SITES", "web", "-n", namespace, "--url", address),
            stdout=asyncio.subprocess.PIPE,
        )
        text = " ".join((await explained.communicate())[0].decode().split())
        assert explained.returncode == 0
        assert f"Site {namespace}/web controller site last run " in text
        # it is news, or was there already when the term began
        assert re.search(f"because Site {namespace}/web (appeared|is there) .generation 1.", text)
        assert "ended done" in text
        assert "next run when something changes" in text
        async with ClientSession() as session, session.get(f"{address}/debug") as answer:
            shown = await answer.text()
        assert "All is well" in shown
        assert f"/debug/explain?kind=site&amp;namespace={namespace}&amp;name=web" in shown
        # without being asked to, it names the code that blocks the event loop
        await client.create(site(crd_group, "rude", namespace, "blocked"))
        blocker = f"the reconcile of {namespace}/rude in controller site at {here / 'run_operator.py'}:"
        assert "was blocked" in await program.until(blocker)
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
        lease = await client.get(Lease, f"{namespace}/site-operator")
        assert lease.spec is not None
        assert not lease.spec.holder_identity
    said = [json.loads(line) for line in program.lines]  # not a terminal: every line is JSON
    assert said[0]["message"] == "starting"
    assert said[0]["controllers"] == ["site: Site, ConfigMap (owned); 4 at once"]
    assert said[0]["server"] == client.server
    assert said[-1]["message"] == "stopped"


def test_an_operator_that_applies_objects_needs_a_name(
    here: Path, engine: Engine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a file is not the operator's: who renames the file would orphan all children."""
    module = write(here, "run_nameless", NAMELESS)
    monkeypatch.setenv("KUBECONFIG", str(engine.kubeconfig))
    assert main(["run", module]) == 1
    said = capsys.readouterr().err
    assert 'controller config applies objects: write Manager(name="config-operator")' in said


async def test_on_a_terminal_it_speaks_to_people_and_a_second_signal_ends_at_once(
    here: Path, engine: Engine, namespace: str, crd_group: str
) -> None:
    module = write(here, "run_stuck", OPERATOR.replace("GROUP", crd_group))
    arguments = ("run", f"{module}:make", "--namespace", namespace, "--port", "0")
    async with (
        asyncio.timeout(25),  # less than the 30 seconds for which a drain would wait
        engine.client(field_manager="tests") as client,
        running(*arguments, folder=here, engine=engine, terminal=True) as program,
    ):
        line = await program.until("debug page at")
        assert "\x1b[36mINFO" in line
        await client.create(site(crd_group, "web", namespace, "stuck"))
        await page_of(client, "web", namespace)
        program.process.send_signal(signal.SIGINT)
        address = line.split()[-1]
        async with ClientSession() as session:
            while True:  # it drains, and says that it wants no work
                async with session.get(f"{address}/readyz/shutdown") as answer:
                    if answer.status != 200:
                        break
                await asyncio.sleep(0.02)
        program.process.send_signal(signal.SIGINT)
        await program.ended()
    head = "\n".join(program.lines[:6])
    assert f"{module}:make\n" in head
    assert client.server in head
    assert "site: Site, ConfigMap (owned); 4 at once" in head
    assert f"Lease {namespace}/site-operator" in "\n".join(program.lines)


# mistakes


def failure(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    assert main(["run", *arguments]) == code
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


MANAGERS = """
from steersman import Manager
one = Manager(name="one")
two = Manager(name="two")
number = 7
def text(client): return "no manager"
async def empty(client): return Manager(client, name="empty")
def broken(client): return {}["image"]
"""


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        (
            "run_nowhere:manager",
            1,
            "cannot import run_nowhere: No module named 'run_nowhere'; run this in the directory",
        ),
        ("run_managers", 2, "run_managers has several managers; name one: run_managers:one, run_managers:two"),
        ("run_managers:", 2, "run_managers: names no manager: write run_managers for its only manager, or"),
        ("run_managers.py:one", 2, "run_managers.py is a file: name the module run_managers:one"),
        ("run_managers:numbr", 1, "run_managers has no numbr; did you mean run_managers:number?"),
        ("run_managers:zzz", 1, "run_managers has no zzz; there is run_managers:one, run_managers:two"),
        ("run_managers:number", 1, "run_managers:number is of type int; name a Manager, or a function that takes"),
        ("run_managers:Manager", 1, "run_managers:Manager is a class; name a Manager"),
        ("run_managers:text", 1, "run_managers:text returned a str; it must return the Manager to run"),
        ("run_managers:one", 1, "the manager one has no controllers; add one: manager.controller(KIND).run_with("),
        ("run_managers:empty", 1, "the manager empty has no controllers"),
    ],
)
def test_mistakes_are_one_sentence_that_says_what_to_write(
    here: Path, capsys: pytest.CaptureFixture[str], target: str, code: int, said: str
) -> None:
    write(here, "run_managers", MANAGERS)
    told = failure(capsys, target, code=code)
    assert told.startswith(f"steersman: {said}")
    assert told.count("\n") == 1


RUNS_ITSELF = """
import asyncio
from steersman import Done, Manager
from steersman.kinds.core_v1 import ConfigMap
async def reconcile(ctx, request): return Done()
manager = Manager(name="runs-itself")
manager.controller(ConfigMap).run_with(reconcile)
asyncio.run(manager.run())
"""


@pytest.mark.parametrize("command", [["run"], ["plan"], ["generate", "rbac"]])
def test_a_module_that_runs_its_manager_when_imported_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """A plan that writes nothing must not begin with an operator that does."""
    write(here, "run_itself", RUNS_ITSELF)
    assert main([*command, "run_itself"]) == 1
    told = capsys.readouterr().err
    assert "importing run_itself runs its manager" in told
    assert "below if __name__ == '__main__':" in told
    assert f"({here / 'run_itself.py'}, line 8)" in told


def test_an_error_about_a_missing_manager_says_what_to_write(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, "run_my_operator", "")
    assert 'write `manager = Manager(name="run-my-operator")` in it' in failure(capsys, "run_my_operator")


def test_a_mistake_in_the_module_is_named_with_its_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line of the module, not the one of the package that noticed it."""
    write(here, "run_wrong", "from steersman import Manager\n\nmanager = Manager(nam='x')\n")
    told = failure(capsys, "run_wrong")
    assert "TypeError" in told
    assert f"({here / 'run_wrong.py'}, line 3)" in told


def test_a_bug_has_a_traceback(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, "run_managers", MANAGERS)
    told = failure(capsys, "run_managers:broken")
    assert "Traceback (most recent call last)" in told
    assert 'return {}["image"]' in told
    assert told.endswith("steersman: the program failed with KeyError: 'image'\n")


def test_no_configuration_and_an_unknown_context(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(here, "run_operator", OPERATOR.replace("GROUP", "run.example.com"))
    assert 'context "elsewhere" does not exist' in failure(capsys, "run_operator", "--context", "elsewhere")
    assert "no such file" in failure(capsys, "run_operator", "--kubeconfig", str(here / "absent"))
    monkeypatch.setenv("KUBECONFIG", str(here / "absent"))
    told = failure(capsys, "run_operator")
    assert "found no configuration for a Kubernetes API server" in told
    assert "--kubeconfig FILE, --context NAME" in told


def test_a_server_that_is_down(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, "run_operator", OPERATOR.replace("GROUP", "run.example.com"))
    told = failure(capsys, "run_operator")
    assert "http://127.0.0.1:1" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    "arguments", [[], ["m", "--port", "x"], ["m", "--port", "70000"], ["m", "--log-level", "loud"]]
)
def test_a_command_line_that_makes_no_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", *arguments])
    assert end.value.code == 2
    assert "usage: steersman run" in capsys.readouterr().err


def test_webhooks_on_loopback_need_a_server_on_this_machine(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any other server would call its own loopback, and reject all writes of the kind."""
    module = write(here, "run_local", OPERATOR.replace("GROUP", "local.example.com"))
    (here / "kubeconfig").write_text(KUBECONFIG.replace("http://127.0.0.1:1", "https://192.0.2.1:6443"))
    assert main(["run", module, "--install-local"]) == 1
    assert "the API server https://192.0.2.1:6443 is not on this machine" in capsys.readouterr().err


async def test_webhooks_on_loopback_need_a_server_that_is_not_behind_a_tunnel(here: Path) -> None:
    """An SSH tunnel, kind and minikube listen on 127.0.0.1 too, and their servers would call their own loopback."""
    module = write(here, "run_tunnel", OPERATOR.replace("GROUP", "tunnel.example.com"))
    arguments = ("run", module, "--install-local")
    async with asyncio.timeout(60), ControlPlane(port=0, folder=here / "data") as plane:
        assert plane.kubeconfig is not None
        assert plane.url is not None
        port = urlsplit(plane.url).port
        async with tunnel(port) as forwarded:
            (here / "config").write_text(plane.kubeconfig.read_text().replace(f":{port}", f":{forwarded}"))
            async with running(*arguments, "--kubeconfig", "config", folder=here, engine=plane) as program:
                assert await program.ended() == 1
        assert f"it publishes the address 127.0.0.1, port {port}, as behind a tunnel" in program.lines[-1]
        async with running(*arguments, folder=here, engine=plane) as program:
            await program.until(f"assuming that the API server {plane.url} runs on this machine")
        elsewhere = {"endpoints": [{"addresses": ["192.0.2.7"]}]}
        await plane.client.patch(EndpointSlice, "default/kubernetes", MergePatch(elsewhere))
        async with running(*arguments, folder=here, engine=plane) as program:
            assert await program.ended() == 1
        assert (
            f"the API server {plane.url} is not on this machine: it publishes the address 192.0.2.7"
            in program.lines[-1]
        )


@asynccontextmanager
async def tunnel(port: int | None) -> AsyncGenerator[int]:
    """Another port of loopback whose connections lead to this one."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_only_kinds_of_ones_own_are_installed(here: Path, engine: Engine, namespace: str, crd_group: str) -> None:
    """Models of kinds that others define derive from Object: a flag must not replace their definitions."""
    theirs = OPERATOR.replace("GROUP", crd_group).replace("Resource[SiteSpec, None]", "Object")
    theirs = theirs.replace('    """A web site."""', "    spec: SiteSpec").replace(
        "import Context", "import Object, Context"
    )
    module = write(here, "run_theirs", theirs)
    arguments = ("run", module, "--install-crds", "--namespace", namespace)
    async with asyncio.timeout(30), running(*arguments, folder=here, engine=engine) as program:
        assert await program.ended() == 1
    assert "no controller has its own kind" in program.lines[-1]


async def test_no_version_is_served_without_its_conversion(
    here: Path, engine: Engine, namespace: str, crd_group: str
) -> None:
    """The conversion is registered before the second version: no client reads an object as the other one is stored."""
    module = write(here, "run_versions", VERSIONS.replace("GROUP", crd_group))
    arguments = ("run", f"{module}:manager", "--install-local", "--namespace", namespace)
    async with (
        asyncio.timeout(60),
        engine.client(field_manager="tests") as client,
        client.watch(CRD, fields={"metadata.name": f"sites.{crd_group}"}) as events,
        running(*arguments, folder=here, engine=engine) as program,
    ):
        async for event in events:
            assert isinstance(event, Added | Modified)
            spec = event.object["spec"]
            assert len(spec["versions"]) == 1 or spec["conversion"]["strategy"] == "Webhook"
            if "caBundle" in spec["conversion"].get("webhook", {}).get("clientConfig", {}):
                assert len(spec["versions"]) == 2
                break
        await program.until("installed the CRDs of Site")
    (installed,) = (line for line in program.lines if "installed the CRDs of" in line)
    assert "Site, Site" not in installed  # two versions are one kind


async def test_a_port_that_is_taken(here: Path, engine: Engine, namespace: str, crd_group: str) -> None:
    async def nothing(_request: HttpRequest) -> ServerResponse:
        return ServerResponse(status=200)

    module = write(here, "run_taken", OPERATOR.replace("GROUP", crd_group))
    async with asyncio.timeout(30), HttpListener(nothing) as listener:
        arguments = ("run", module, "--namespace", namespace, "--port", str(listener.port))
        async with running(*arguments, folder=here, engine=engine) as program:
            assert await program.ended() == 1
        assert f"cannot listen on 127.0.0.1 port {listener.port}" in program.lines[-1]
    assert not any("Traceback" in line for line in program.lines)


def test_the_command_line_guards_the_endpoints(tmp_path: Path) -> None:
    """A Pod of a new project has TLS and token review from its command line alone."""
    manager = Manager(name="guarded")
    with pytest.raises(Failure, match=r"--tls .*: tls.crt is missing; mount a Secret of type kubernetes.io/tls there"):
        endpoints_of(manager, RunOptions(target="x", tls=str(tmp_path)))
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_text("")
    made = endpoints_of(manager, RunOptions(target="x", port=8443, tls=str(tmp_path), token_review=True))
    assert made is manager.endpoints
    assert made.token_review
    assert made.tls == ServerTls(certificate_file=str(tmp_path / "tls.crt"), key_file=str(tmp_path / "tls.key"))
    assert endpoints_of(Manager(name="open"), RunOptions(target="x")) is None
    made = endpoints_of(manager, RunOptions(target="x", tls_service="shop/metrics"))
    assert (made.tls, made.service, made.port, made.token_review) == (None, "shop/metrics", 8443, True)
    assert endpoints_of(manager, RunOptions(target="x", tls=str(tmp_path))).service == ""
    for wrong, words in (("metrics", 'write service="NAMESPACE/metrics"'), ("a/b/c", "a/b/c")):
        with pytest.raises(Failure, match=f"--tls-service: .*{words}"):
            endpoints_of(manager, RunOptions(target="x", tls_service=wrong))
    with pytest.raises(Failure, match="pass --tls or --tls-service, not both"):
        endpoints_of(manager, RunOptions(target="x", tls=str(tmp_path), tls_service="shop/metrics"))


def test_a_manager_needs_no_module_of_applications() -> None:
    """An operator in a Pod starts with the modules of managers alone."""
    program = "import sys, steersman.cli.run_target; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    rooms = ("application", "projects", "ui", "workloads", "controlplane", "apiserver")
    assert [name for name in loaded if name.startswith(tuple(f"steersman.{room}" for room in rooms))] == []


def test_a_misspelled_manager_is_not_taken_for_its_class() -> None:
    """Nearly every module imports the class."""
    module = ModuleType("sites")
    vars(module).update(Manager=Manager, manager=Manager(name="sites"))
    with pytest.raises(Failure, match=r"sites has no manger; did you mean sites:manager\?"):
        find_manager(module, "manger")
