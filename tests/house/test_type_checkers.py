"""A user's type checker accepts what the documents show and what `steersman new` writes, and finds mistakes in it."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from samples.type_checkers import mypy, pyright
from steersman.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

tool = runpy.run_path(str(ROOT / "tools" / "run-page"), run_name="run_page")

PROGRAM = """
from steersman import Client, Manager, ObjectMeta, Resource, Spec, Status


class SiteSpec(Spec):
    image: str
    replicas: int = 1
    host: str


class SiteStatus(Status):
    ready_replicas: int = 0


class Site(Resource[SiteSpec, SiteStatus], group="web.example.com", version="v1"):
    pass


async def use(client: Client) -> None:
    site = await client.get(Site, "home")
    reveal_type(site.spec.replicas)  # int
    reveal_type(site.status)  # program.SiteStatus | None
    reveal_type(await client.find(Site, "home"))  # program.Site | None
    site.spec.replicas = "three"  # error: assignment
    site.spec.replica  # error: attr-defined


SiteSpec(image="nginx", host="home.example.com")
SiteSpec(image="nginx")  # error: call-arg
SiteSpec("nginx", host="home.example.com")  # error: call-arg
SiteSpec(image=5, host="home.example.com")  # error: arg-type
Site(metadata=ObjectMeta(), spec=SiteStatus())  # error: arg-type
Manager(nmae="sites")  # error: call-arg
"""


def test_mypy_sees_types_and_mistakes(tmp_path: Path) -> None:
    """Without a plugin: required fields may follow those with defaults, and all are given by name."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    expected = set()
    for number, line in enumerate(PROGRAM.splitlines(), start=1):
        code, _, comment = line.rpartition("  # ")
        if comment.startswith("error: "):
            expected.add((number, f"[{comment.removeprefix('error: ')}]"))
        elif "reveal_type" in code:
            expected.add((number, f'"{comment}"'))
    found = set()
    for line in mypy(tmp_path, "program.py").splitlines():
        _, number, said = line.split(":", 2)
        if " error: " in said or "Revealed type" in said:
            found.add((int(number), said.rpartition("  ")[2] if " error: " in said else said.partition(" is ")[2]))
    assert found == expected


def test_mypy_accepts_the_programs_of_the_pages(tmp_path: Path) -> None:
    """Each file that a page has its reader write, tests aside; `examples` is a check of its own in the CI."""
    written = 0
    for page in PAGES:
        for block in tool["blocks"](page.read_text(encoding="utf-8")):
            if block.name.endswith(".py") and not block.name.startswith(("test_", "conftest")):
                folder = tmp_path / page.stem
                folder.mkdir(exist_ok=True)
                (folder / block.name).write_text(block.text, encoding="utf-8")
                assert (page.name, mypy(folder, block.name)) == (page.name, "")
                written += 1
    assert written >= 3


def test_type_checkers_accept_a_new_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["new", "garden-operator"]) == 0
    project = tmp_path / "garden-operator"
    assert mypy(project) == ""
    assert [f"{found['file']}: {found['message']}" for found in pyright(project)] == []
