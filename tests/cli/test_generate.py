"""``steersman generate``: files in, files out, and sentences where that is not possible."""

from __future__ import annotations

import asyncio
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from steersman._version import __version__
from steersman.cli import main
from steersman.kinds.index import KUBERNETES
from steersman.testing import Engine

GADGET = Path(__file__).parents[1] / "samples" / "gadget.yaml"
MODULE = "models_test_steersman_dev_v1.py"
SITE = '''
from typing import Annotated
from steersman.markers import Minimum
from steersman.objects import Resource, Spec, Status

class SiteSpec(Spec):
    image: str
    replicas: Annotated[int, Minimum(0)] = 1

class SiteStatus(Status):
    ready: int = 0

class Site(Resource[SiteSpec, SiteStatus], group="cli.example.com", version="v1"):
    """A web site."""

class Page(Resource[SiteSpec, None], group="cli.example.com", version="v1"):
    """A page of it."""
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a module of resource classes in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.startswith(("cli_", "models_test_"))]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "cli_sample.py").write_text(SITE, encoding="utf-8")
    return tmp_path


def failure(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    """Run a command that fails; it must say so in one line."""
    assert main(arguments) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"steersman {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["generate"], ["generate", "models", "x.yaml"], ["nonsense"]])
def test_a_command_line_that_makes_no_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage: steersman" in capsys.readouterr().err


def test_models_of_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "models", str(GADGET), "-o", "models"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("wrote ") == 2
    assert "class Gadget(" in (here / "models" / MODULE).read_text(encoding="utf-8")


def test_a_second_run_writes_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["generate", "models", str(GADGET), "-o", "models"])
    before = (here / "models" / MODULE).stat().st_mtime_ns
    capsys.readouterr()
    assert main(["generate", "models", str(GADGET), "-o", "models"]) == 0
    assert (here / "models" / MODULE).stat().st_mtime_ns == before
    assert "2 files were up to date" in capsys.readouterr().err


def test_check_compares_and_writes_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["generate", "models", str(GADGET), "-o", "models", "--check"]
    assert main(command) == 1
    assert not (here / "models").exists()
    assert "is missing" in capsys.readouterr().err
    main(command[:-1])
    assert main(command) == 0
    (here / "models" / MODULE).write_text("changed", encoding="utf-8")
    assert main(command) == 1
    assert (here / "models" / MODULE).read_text(encoding="utf-8") == "changed"


def test_only_one_group_version(here: Path) -> None:
    wanted = "models.test.steersman.dev/v1beta1"
    assert main(["generate", "models", str(GADGET), "-o", "models", "--group-version", wanted]) == 0
    assert [path.name for path in (here / "models").iterdir()] == ["models_test_steersman_dev_v1beta1.py"]


def test_crds_among_other_objects(here: Path) -> None:
    """A release manifest holds many things; its CRDs are found, also inside a List."""
    crd = yaml.safe_load(GADGET.read_text(encoding="utf-8"))
    documents = [{"apiVersion": "v1", "kind": "Namespace"}, None, {"apiVersion": "v1", "kind": "List", "items": [crd]}]
    (here / "release.yaml").write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    assert main(["generate", "models", "release.yaml", "-o", "models"]) == 0
    assert (here / "models" / MODULE).exists()


def test_the_standard_input(here: Path) -> None:
    program = "import sys; from steersman.cli import main; sys.exit(main(['generate', 'models', '-', '-o', 'models']))"
    subprocess.run(
        [sys.executable, "-c", program], input=GADGET.read_bytes(), cwd=here, check=True, capture_output=True
    )
    assert (here / "models" / MODULE).exists()


def test_owners_get_their_crd_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--own`` and ``generate crds`` are each other's inverse, over two versions."""
    assert main(["generate", "models", str(GADGET), "--own", "-o", "."]) == 0
    capsys.readouterr()
    modules = [path.stem for path in sorted(here.glob("models_test_*.py"))]
    assert main(["generate", "crds", *modules, "--without-conversion"]) == 0
    crd = yaml.safe_load(capsys.readouterr().out)
    assert crd["metadata"]["name"] == "gadgets.models.test.steersman.dev"
    assert [version["name"] for version in crd["spec"]["versions"]] == ["v1", "v1beta1"]


def test_models_failures(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "broken.yaml").write_text("a: [", encoding="utf-8")
    (here / "list.yaml").write_text("- a", encoding="utf-8")
    (here / "pod.yaml").write_text("kind: Pod", encoding="utf-8")
    (here / "old.yaml").write_text("{kind: CustomResourceDefinition, metadata: {name: x}, apiVersion: y}", "utf-8")
    (here / "binary").write_bytes(b"\xff\xfe")
    output = ("-o", "models")
    for arguments, said in [
        (("missing.yaml",), "cannot read missing.yaml: No such file or directory"),
        (("binary",), "not UTF-8"),
        (("broken.yaml",), "broken.yaml is neither YAML nor JSON"),
        (("list.yaml",), "contains a list instead of an object"),
        (("pod.yaml",), "no CRD and no OpenAPI v3 document in pod.yaml"),
        (("old.yaml",), "convert it to apiextensions.k8s.io/v1"),
        ((str(GADGET), "--group-version", "a/v1"), "found no kind of a/v1"),
    ]:
        assert said in failure(capsys, "generate", "models", *arguments, *output)
    assert not (here / "models").exists()


def test_models_misuse(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code distinguishes wrong arguments from wrong files."""
    for arguments, said in [
        ((), "either --from-server, or files"),
        (("--from-server", "x.yaml"), "either --from-server, or files"),
        (("--from-server", "--own"), "--own needs the CRD itself"),
        ((str(GADGET), "--group-version", "a/b/c"), "'a/b/c' is not an apiVersion"),
    ]:
        assert said in failure(capsys, "generate", "models", *arguments, "-o", "models", code=2)
    assert not (here / "models").exists()


def test_crds_of_a_module(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "crds", "cli_sample"]) == 0
    found = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [crd["metadata"]["name"] for crd in found] == ["pages.cli.example.com", "sites.cli.example.com"]
    assert main(["generate", "crds", "cli_sample:Site", "-o", "crds/site.yaml"]) == 0
    (crd,) = yaml.safe_load_all((here / "crds" / "site.yaml").read_text(encoding="utf-8"))
    assert crd["spec"]["names"]["kind"] == "Site"
    assert main(["generate", "crds", "cli_sample:Site", "-o", "crds/site.yaml", "--check"]) == 0


def test_crds_of_a_package(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All modules below a package count, also those that it does not import; its program is not run."""
    package = here / "cli_package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("raise SystemExit('a program')", encoding="utf-8")
    (package / "api.py").write_text(SITE, encoding="utf-8")
    (package / "inner" / "__init__.py").write_text("from cli_package.api import Site", encoding="utf-8")
    (package / "inner" / "more.py").write_text(SITE.replace("cli.example", "more.example"), encoding="utf-8")
    assert main(["generate", "crds", "cli_package"]) == 0
    found = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [crd["metadata"]["name"] for crd in found] == [
        "pages.cli.example.com",
        "sites.cli.example.com",
        "pages.more.example.com",
        "sites.more.example.com",
    ]
    assert main(["generate", "crds", "cli_package.inner"]) == 0
    assert capsys.readouterr().out.count("kind: CustomResourceDefinition") == 2


def test_crds_failures(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "cli_broken.py").write_text("x = 1\nraise ValueError('oh no')\n", encoding="utf-8")
    (here / "cli_lacking.py").write_text("\nimport cli_elsewhere\n", encoding="utf-8")
    for arguments, said in [
        (("cli_missing",), "No module named 'cli_missing'; run this in the directory that contains it"),
        (("cli_sample.api",), "'cli_sample' is not a package; run this in the directory that contains it"),
        (("cli_lacking",), "No module named 'cli_elsewhere'; install what it imports first"),
        (("cli_lacking",), "cli_lacking.py, line 2)"),
        (("cli_broken",), "cannot import cli_broken: ValueError: oh no ("),
        (("cli_broken",), "cli_broken.py, line 2); correct it first"),
        (("json",), "json has no resource class"),
        (("cli_sample:Nothing",), "cli_sample has no resource class Nothing; it has Page, Site"),
        (("steersman.kinds.apps_v1",), "must be a domain with a dot"),
    ]:
        assert said in failure(capsys, "generate", "crds", *arguments)


def test_a_module_that_does_not_compile(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The place is the module's own line, also when another module imports it; nothing of Python's machinery shows."""
    (here / "cli_broken.py").write_text("x = 1\nx = = 2\n", encoding="utf-8")
    (here / "cli_lacking.py").write_text("import cli_broken\n", encoding="utf-8")
    for module in ("cli_broken", "cli_lacking"):
        said = failure(capsys, "generate", "crds", module)
        place = f"({here / 'cli_broken.py'}, line 2); correct it first\n"
        assert said == f"steersman: cannot import {module}: SyntaxError: invalid syntax {place}"


def test_crds_misuse(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(here / "src"))
    for arguments, said in [
        (("cli_sample", "--check"), "--check compares with a file"),
        (("cli_sample:",), "cli_sample: names no class: write cli_sample for all of them, or cli_sample:NAME"),
        ((":Site",), "':Site' is not a module name"),
        ((".api",), ".api is not a module name: write one such as myoperator.api"),
        (("app/api.py",), "app/api.py is a file: name the module app.api\n"),
        (("./app/api.py:Site",), "name the module app.api:Site\n"),
        (("app/__init__.py",), "name the module app\n"),
        (("app/",), "name the module app\n"),
        (("src/app/api.py",), "name the module app.api\n"),
        (("cli_sample.py",), "name the module cli_sample\n"),
        ((str(here / "app" / "api.py"),), "name the module app.api\n"),
    ]:
        assert said in failure(capsys, "generate", "crds", *arguments, code=2)


def test_the_help_promises_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "Controllers for the Kubernetes API: create, run, preview and explain them; generate manifests." in said


async def test_models_of_a_server(here: Path, engine: Engine, crd_group: str, capsys: Any) -> None:
    """From a live server: what steersman.kinds does not have, or what was asked for."""
    crd = yaml.safe_load(GADGET.read_text(encoding="utf-8"))
    crd["metadata"]["name"], crd["spec"]["group"] = f"gadgets.{crd_group}", crd_group
    await engine.kubectl("create", "-f", "-", stdin=json.dumps(crd))
    await engine.kubectl("wait", "--for=condition=Established", f"crd/gadgets.{crd_group}", "--timeout=30s")
    name = crd_group.replace(".", "_") + "_v1.py"
    command = ["generate", "models", "--from-server", "--kubeconfig", str(engine.kubeconfig), "-o", "models"]
    command += ["--group-version", f"{crd_group}/v1"]
    async with asyncio.timeout(60):
        while await asyncio.to_thread(main, command):
            pass  # OpenAPI is published some time after the kind is served
    assert f"Kubernetes {KUBERNETES}" in capsys.readouterr().err
    text = (here / "models" / name).read_text(encoding="utf-8")
    assert "class GadgetSpec(Struct):" in text
    (here / "gadget.json").write_text(json.dumps(crd), encoding="utf-8")
    assert main(["generate", "models", "gadget.json", "--group-version", f"{crd_group}/v1", "-o", "filed"]) == 0
    assert (here / "filed" / name).read_text(encoding="utf-8") == text


async def test_server_failures(here: Path, engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    server = ["generate", "models", "--from-server", "-o", "models", "--kubeconfig"]
    asked = [*server, str(engine.kubeconfig), "--group-version", "unknown.example.com/v1"]
    assert await asyncio.to_thread(main, asked) == 1
    assert "does not serve unknown.example.com/v1; see kubectl api-versions" in capsys.readouterr().err
    assert await asyncio.to_thread(main, [*server, str(here / "missing")]) == 1
    said = capsys.readouterr().err
    assert "missing" in said
    assert "Traceback" not in said


class HostileServer(http.server.BaseHTTPRequestHandler):
    """Answers as an API server whose texts contain escape sequences, and whose discovery is no discovery."""

    EVIL = "v1\x1b]0;title\x07\nsteersman: forged\u202e"
    ANSWERS: ClassVar = {
        "/version": {"gitVersion": EVIL},
        "/apis": {"groups": []},
        "/openapi/v3": {"paths": {"apis/x.io/v1": {"serverRelativeURL": "/openapi/x"}}},
    }

    def do_GET(self) -> None:
        body = json.dumps(self.ANSWERS.get(self.path.partition("?")[0], {"x": 1})).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def test_a_hostile_server_gets_one_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a server answers must neither end in a traceback nor control the terminal."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), HostileServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        contexts = [{"name": "c", "context": {"cluster": "c"}}]
        config = {"kind": "Config", "current-context": "c", "contexts": contexts, "clusters": [cluster]}
        (here / "config").write_text(json.dumps(config), encoding="utf-8")
        assert main(["generate", "models", "--from-server", "--kubeconfig", "config", "-o", "models"]) == 1
        server.shutdown()
    said = capsys.readouterr().err
    assert "\n  steersman: forged\\u202e" in said
    assert said.endswith("has a document without a group-version: is it a Kubernetes API?\n")
    assert "".join(said.split("\n")).isprintable()
