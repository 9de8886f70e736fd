"""``steersman generate crds --compatible-with``: a file, a git revision or a cluster, and one line for each change."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from steersman.cli import main
from steersman.testing import Engine

SITE = '''
from typing import Annotated
from steersman.markers import Maximum
from steersman.objects import Resource, Spec, Struct

class Port(Struct):
    number: Annotated[int, Maximum({maximum})]

class SiteSpec(Spec):
    host_name: str
    {more}
    ports: list[Port] | None = None

class Site(Resource[SiteSpec, None], group="{group}", version="v1"):
    """A web site."""
'''
GROUP = "compatible.example.com"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    # else an edit of the same length, within the same second, would count as the compiled module
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write(tmp_path)
    return tmp_path


def write(folder: Path, *, maximum: int = 100, more: str = "color: str | None = None", group: str = GROUP) -> None:
    text = SITE.format(maximum=maximum, more=more, group=group)
    (folder / "compatible_site.py").write_text(text, encoding="utf-8")
    # the next command imports it anew
    sys.modules.pop("compatible_site", None)


def generate(*options: str) -> int:
    return main(["generate", "crds", "compatible_site", *options])


def test_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the place in the schema and in Python, the reason and what to do; nothing is written."""
    assert generate("-o", "crds.yaml") == 0
    before = Path("crds.yaml").read_text(encoding="utf-8")
    assert generate("--compatible-with", "file:crds.yaml") == 0
    assert capsys.readouterr().out == f"compatible with file:crds.yaml: sites.{GROUP}\n"
    write(here, maximum=50, more="replicas: int")
    assert generate("--compatible-with", "file:crds.yaml", "-o", "crds.yaml") == 1
    lines = capsys.readouterr().out.splitlines()
    removed, required, narrowed = lines
    assert removed == (
        f"breaking: sites.{GROUP} v1 spec.color (SiteSpec): field removed: the server prunes it: objects lose the value at"
        " their next write, and clients cannot read it; keep it, and remove it only in a later version, after a conversion"
    )
    assert required == (
        f"breaking: sites.{GROUP} v1 spec.replicas (SiteSpec.replicas): new required field without a default: clients"
        " cannot write an object without it any more, and one that lacks it cannot change spec; give it a default, or make"
        " it optional"
    )
    assert narrowed == (
        f"breaking: sites.{GROUP} v1 spec.ports[].number (Port.number): maximum 50 instead of 100: clients cannot write"
        " such a value any more, and an object that has one cannot change spec.ports; keep the old schema, or make the"
        " change in a new version with a conversion"
    )
    assert Path("crds.yaml").read_text(encoding="utf-8") == before


@pytest.mark.parametrize("kind", ["List", "CustomResourceDefinitionList"])
def test_a_list(here: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """``kubectl get crds -o yaml`` writes one; items of a typed list have no kind."""
    assert generate("-o", "crds.yaml") == 0
    definition = yaml.safe_load(Path("crds.yaml").read_text(encoding="utf-8"))
    if kind != "List":
        del definition["kind"]
    listed = {"apiVersion": "v1", "kind": kind, "items": [definition]}
    Path("live.yaml").write_text(yaml.safe_dump(listed), encoding="utf-8")
    write(here, maximum=50)
    assert generate("--compatible-with", "file:live.yaml") == 1
    assert "maximum 50 instead of 100" in capsys.readouterr().out


def test_a_safe_change_is_written(here: Path) -> None:
    assert generate("-o", "crds.yaml") == 0
    write(here, maximum=200)
    assert generate("--compatible-with", "file:crds.yaml", "-o", "crds.yaml") == 0
    assert "maximum: 200" in Path("crds.yaml").read_text(encoding="utf-8")


def test_a_git_revision(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of ``-o`` as it was, or another one, from any folder of the repository."""

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=tests", "-c", "user.email=tests@example.com")
        subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)

    assert generate("-o", "config/crds.yaml") == 0
    git("init", "--initial-branch=main")
    git("add", "config")
    git("commit", "-m", "one")
    git("tag", "v1.0")
    write(here, maximum=50)
    assert generate("--compatible-with", "git:main", "-o", "config/crds.yaml") == 1
    assert "maximum 50 instead of 100" in capsys.readouterr().out
    assert generate("--compatible-with", "git:v1.0:config/crds.yaml") == 1
    monkeypatch.chdir(here / "config")
    assert generate("--compatible-with", "git:main:../config/crds.yaml") == 1
    assert generate("--compatible-with", "git:nowhere", "-o", "crds.yaml") == 1
    assert "cannot read crds.yaml of git revision nowhere: invalid object name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("main", "is unclear; write file:PATH, git:REVISION"),
        ("file:", "is unclear"),
        ("cluster:", "is unclear"),
        ("git:main", "names no file: write git:main:PATH, or name the file with -o"),
        ("git:--output=x:y", "is not a revision"),
    ],
)
def test_an_unclear_source(here: Path, old: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A word that could mean a file, a branch and a context is refused."""
    assert generate("--compatible-with", old) == 2
    assert said in capsys.readouterr().err


def test_a_file_without_definitions(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.yaml").write_text("kind: ConfigMap\n", encoding="utf-8")
    assert generate("--compatible-with", "file:other.yaml") == 1
    assert "has no CustomResourceDefinition" in capsys.readouterr().err
    Path("other.yaml").write_text("kind: CustomResourceDefinition\n", encoding="utf-8")
    assert generate("--compatible-with", "file:other.yaml") == 1
    assert "without metadata.name" in capsys.readouterr().err


async def test_a_cluster(
    engine: Engine, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The installed definition counts, and those of others do not."""
    group = "in-cluster.example.com"
    write(here, group=group)
    assert await asyncio.to_thread(generate, "-o", "crds.yaml") == 0
    await engine.kubectl("apply", "-f", str(here / "crds.yaml"))
    monkeypatch.setenv("KUBECONFIG", str(engine.kubeconfig))
    assert await asyncio.to_thread(generate, "--compatible-with", "cluster") == 0
    assert capsys.readouterr().out == f"compatible with cluster: sites.{group}\n"
    write(here, maximum=50, group=group)
    assert await asyncio.to_thread(generate, "--compatible-with", "cluster") == 1
    assert "maximum 50 instead of 100" in capsys.readouterr().out
    assert await asyncio.to_thread(generate, "--compatible-with", "cluster:elsewhere") == 1
    await engine.delete_crds(group)
