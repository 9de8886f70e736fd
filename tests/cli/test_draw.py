"""``steersman draw``: which machines are drawn, where to, and what is said when there are none."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from samples.postgres import Cluster, Postgres, managed, postgres, report
from steersman.cli import main
from steersman.kinds.apps_v1 import Deployment
from steersman.patterns.drawing import mermaid, svg
from steersman.testing import Plane, eventually

MODULE = '''
from samples.postgres import Cluster, Postgres
from steersman import Client, Context, Done, Manager, Request, Resource, Spec, Status
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.patterns import generates
from steersman.patterns import StateMachine, state
from steersman.patterns import Outputs
from steersman.patterns import Next

class PageSpec(Spec):
    text: str

class Page(Resource[PageSpec, Status], group="draw.example.com", version="v1"):
    """A page."""

class Publisher(StateMachine[Page], children=(ConfigMap,)):
    @state(condition="Written")
    async def write(self, page: Page, out: Outputs) -> Next:
        """Writes it."""
        return Next()

    @state(condition="Shown")
    async def show(self, page: Page, out: Outputs) -> Done:
        """Shows it."""
        return Done()

@generates(Page, children=(Secret,), name="copies", ready="Copied")
def copies(page: Page) -> list[Secret]:
    """A copy of each page."""
    return []

async def plain(ctx: Context, request: Request) -> Done:
    return Done()

manager = Manager(name="pages")
manager.add(Publisher())
manager.add(copies)
both = Manager(name="both")
both.add(Publisher())
both.add(Cluster())
bare = Manager(name="bare")
bare.controller(Page).run_with(plain)
empty = Manager(name="empty")

def make(client: Client) -> Manager:
    return manager
'''

BASES = '''
from typing import TypeVar
from steersman import Manager
from steersman.patterns import StateMachine

T = TypeVar("T")

class Base(StateMachine[T]):
    """To be derived from."""
'''

HOW = "name a class derived from StateMachine, a function with @generates or @reconciles, or a Manager that has one"

SEVERAL = (
    "--object needs a single kind, but there are several machines: Publisher (Page), Cluster (Postgres); draw one "
    "of them"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with modules in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name, text in (("draw_pages", MODULE), ("draw_bases", BASES), ("draw_nothing", "")):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def draw(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """The command: its exit code and all that it says."""

    def run(*arguments: str) -> tuple[int, str]:
        code = main(["draw", *arguments])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def test_a_machine_is_printed_as_mermaid_unless_svg_is_asked_for(draw):
    code, said = draw("draw_pages:Publisher")
    assert code == 0
    assert said.startswith('---\ntitle: "Publisher reconciles Page"\n---\nflowchart TD\n')
    assert "state_write -- Next --> state_show" in said
    code, said = draw("draw_pages:Publisher", "--format", "svg")
    assert code == 0
    assert said.startswith("<svg ")
    assert said.endswith("</svg>\n")


def test_a_machine_that_is_one_function_is_drawn_too(draw):
    code, said = draw("draw_pages:copies")
    assert code == 0
    assert 'state_copies["<b>copies</b><br/>Copied<br/>A copy of each page."]' in said


@pytest.mark.parametrize("target", ["draw_pages:manager", "draw_pages"])
def test_all_machines_of_a_manager_or_a_module_are_markdown(draw, target):
    code, said = draw(target)
    assert code == 0
    assert [line for line in said.splitlines() if line.startswith("## ")] == ["## Publisher", "## copies"]
    assert said.count("```mermaid\n---\ntitle: ") == 2


def test_files_are_what_their_names_say(draw, here):
    assert draw("draw_pages:Publisher", "-o", "publisher.svg") == (0, "steersman: wrote publisher.svg\n")
    assert (here / "publisher.svg").read_text(encoding="utf-8").startswith("<svg ")
    assert draw("draw_pages:Publisher", "-o", "publisher.mmd")[0] == 0
    assert (here / "publisher.mmd").read_text(encoding="utf-8").startswith("---\n")
    assert draw("draw_pages:manager", "-o", "machines.md")[0] == 0
    assert (here / "machines.md").read_text(encoding="utf-8").startswith("## Publisher\n\n```mermaid\n")
    assert draw("draw_pages:manager", "--format", "svg", "-o", "pictures")[0] == 0
    assert sorted(each.name for each in (here / "pictures").iterdir()) == ["Publisher.svg", "copies.svg"]


def test_a_picture_that_is_out_of_date_is_reported(draw, here):
    assert draw("draw_pages:Publisher", "-o", "p.svg", "--check")[0] == 1
    draw("draw_pages:Publisher", "-o", "p.svg")
    assert draw("draw_pages:Publisher", "-o", "p.svg", "--check") == (0, "")
    (here / "p.svg").write_text("old", encoding="utf-8")
    assert draw("draw_pages:Publisher", "-o", "p.svg", "--check") == (
        1,
        "steersman: p.svg differs\nsteersman: run the command again without --check\n",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["draw_pages:Publishr"], 1, "draw_pages has no Publishr; did you mean draw_pages:Publisher?"),
        (["draw_bases:Base"], 1, f"draw_bases:Base is the class Base, which has no states to draw; {HOW}"),
        (["draw_bases"], 1, f"draw_bases has no state machine; {HOW}"),
        (["draw_nothing:x"], 1, f"draw_nothing has no x; {HOW}"),
        (
            ["draw_pages:bare"],
            1,
            f"nothing to draw in draw_pages:bare: its controllers (page) are plain reconcilers; {HOW}",
        ),
        (["draw_pages:empty"], 1, f"nothing to draw in draw_pages:empty: it has no controllers; {HOW}"),
        (["draw_pages:"], 2, "draw_pages: names no machine: write draw_pages for all its machines, or draw_pages:NAME"),
        (["draw_pages:Publisher", "--check"], 2, "--check compares with a file; name the file with -o"),
        (
            ["draw_pages:manager", "--format", "svg"],
            2,
            "there are several machines: Publisher, copies; pass a directory with -o, or draw one of them",
        ),
        (
            ["draw_pages:manager", "-o", "all.svg"],
            2,
            "all.svg is one file for 2 machines; pass a directory with -o, or draw one of them",
        ),
        (
            ["draw_pages:both", "--object", "default/a"],
            2,
            SEVERAL,
        ),
        (
            ["draw_pages:Publisher", "--object", "a/b/c"],
            2,
            "--object: 'a/b/c' is not a key; write namespace/name, or name for a cluster-scoped object",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_reported_in_a_sentence(draw, arguments, code, words):
    assert draw(*arguments) == (code, f"steersman: {words}\n")


def test_an_error_about_no_machine_lists_the_machines(draw):
    code, said = draw("draw_pages:make")
    assert code == 1
    assert said.startswith(
        f"steersman: draw_pages:make is of type function, which has no states to draw; {HOW}; there is "
    )
    assert "draw_pages:Publisher, draw_pages:copies, draw_pages:manager" in said
    assert "draw_pages:bare" not in said


async def test_an_object_is_shown_with_its_state(control_plane: Plane, here: Path, capsys: pytest.CaptureFixture[str]):
    client = control_plane.client
    async with control_plane.running(managed(Cluster())) as operator:
        await client.create(postgres())
        await eventually(client, Deployment, "pg-primary")
        await report(client, "pg-primary", ready=False)
        await operator.drained()

        async def draw(name: str, *more: str) -> tuple[int, str]:
            where = ("--kubeconfig", str(control_plane.kubeconfig))
            code = await asyncio.to_thread(main, ["draw", "samples.postgres:Cluster", "--object", name, *where, *more])
            said = capsys.readouterr()
            return code, said.out + said.err

        namespace = (await client.get(Postgres, "pg")).key.namespace
        code, said = await draw(f"{namespace}/pg")
        assert code == 0
        assert f'title: "Postgres {namespace}/pg: Ready False: ChildrenNotReady"' in said
        assert "class state_storage good" in said
        assert "class state_primary busy" in said
        assert "Deployment pg-primary: 0 of 1 replica is ready" in said
        code, said = await draw(f"{namespace}/pg", "--format", "svg")
        assert code == 0
        assert ">waits here</text>" in said

        code, said = await draw(f"{namespace}/gp")
        assert code == 1
        assert said.startswith(f"steersman: Postgres {namespace}/gp not found on https://")
        code, said = await draw(f"{namespace}/pg", "--context", "absent")
        assert code == 1
        assert "--kubeconfig FILE, --context NAME" in said


async def test_a_name_alone_is_in_the_namespace_of_the_context(control_plane: Plane, here: Path, capsys):
    client = control_plane.client
    await client.install(Postgres)
    made = await client.create(postgres("alone"))
    config = yaml.safe_load(control_plane.kubeconfig.read_text(encoding="utf-8"))
    config["contexts"][0]["context"]["namespace"] = made.key.namespace
    (here / "kubeconfig").write_text(yaml.safe_dump(config), encoding="utf-8")
    arguments = ["draw", "samples.postgres:Cluster", "--object", "alone", "--kubeconfig", str(here / "kubeconfig")]
    assert await asyncio.to_thread(main, arguments) == 0
    assert f"Postgres {made.key}: Ready not reported" in capsys.readouterr().out


def test_the_command_draws_what_the_functions_draw(draw):
    assert draw("samples.postgres:Cluster") == (0, mermaid(Cluster.machine))
    assert draw("samples.postgres:Cluster", "--format", "svg") == (0, svg(Cluster.machine))
