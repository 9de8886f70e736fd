"""``steersman generate reference``: a page for each kind, with all that users must know to write one."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from steersman.cli import main
from steersman.manifests import load_manifests

MODULE = '''
from typing import Annotated, Literal

from steersman import Done, Manager, Next, ObjectMeta, Resource, Spec, Status
from steersman.kinds.core_v1 import ConfigMap
from steersman.markers import Example, ListMap, Maximum, Minimum, Pattern, Rule
from steersman.objects import Struct
from steersman.patterns import Outputs, StateMachine, state

class Port(Struct):
    name: str
    """A name | unique in the site."""
    number: Annotated[int, Minimum(1), Maximum(65535)]
    protocol: Literal["TCP", "UDP"] = "TCP"

class SiteSpec(Spec, rules=(Rule("self.replicas < 9", message="at most eight replicas"),)):
    """# of sites | What the site serves."""

    host: Annotated[str, Pattern("^(a<b|[a-z.]+)$"), Example("www.example.com")]
    """The <b>name</b> of the site."""
    replicas: int = 1
    ports: Annotated[list[Port], ListMap("name")] | None = None
    labels: dict[str, str] | None = None

class SiteStatus(Status):
    url: str | None = None

class Site(Resource[SiteSpec, SiteStatus], group="pages.example.com", version="v1", short_names=("st",)):
    """A web site."""

class Sites(StateMachine[Site], children=(ConfigMap,)):
    @state(condition="FilesWritten")
    async def files(self, site: Site, out: Outputs) -> Next:
        """Write the files."""
        return Next()

    @state(condition="Published")
    async def published(self, site: Site, out: Outputs) -> Done:
        return Done()

manager = Manager(name="sites")
manager.add(Sites())
'''


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "reference_sample", raising=False)
    (tmp_path / "reference_sample.py").write_text(MODULE, encoding="utf-8")
    assert main(["generate", "reference", "reference_sample", "-o", "docs"]) == 0
    return Path("docs/sites.pages.example.com.md").read_text(encoding="utf-8")


def test_fields(page: str) -> None:
    """Type, default, constraints and description of each field are in one row."""
    assert page.startswith("# Site\n\nA web site.\n")
    assert "| Resource | `sites`, `st` |" in page
    assert "| `host` | string |  | required, matches `^(a<b\\|[a-z.]+)$` | The &lt;b>name&lt;/b> of the site. |" in page
    assert "| `replicas` | integer | `1` |  |  |" in page
    assert "| `ports` | list of [object](#v1-specports) |  | unique by `name` |  |" in page
    assert "| `labels` | map of string |  |  |  |" in page
    assert "### v1 spec.ports[]\n" in page
    assert "### v1 spec\n\n\\# of sites \\| What the site serves.\n" in page
    assert r"| `name` | string |  | required | A name \| unique in the site. |" in page
    assert "| `number` | integer |  | required, at least 1, at most 65535 |  |" in page
    assert '| `protocol` | string | `"TCP"` | one of `"TCP"`, `"UDP"` |  |' in page
    assert "- at most eight replicas" in page


def test_conditions(page: str) -> None:
    """Users learn what to wait for."""
    assert "| `Ready` | All of the following. |" in page
    assert "| `FilesWritten` | Write the files. |" in page
    assert "| `Published` | The state `published`. |" in page


def test_the_example_is_a_manifest(page: str) -> None:
    """A user copies it: it must be valid."""
    found = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert found
    module = sys.modules["reference_sample"]
    (site,) = load_manifests(found[1], kinds=[module.Site])
    assert site.spec.host == "www.example.com"


def test_links_lead_to_headings(page: str) -> None:
    """A link to a nested object works on GitHub."""
    anchors = {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in page.splitlines()
        if line.startswith("#")
    }
    assert set(re.findall(r"\]\(#([^)]*)\)", page)) <= anchors


def test_check(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """CI notices a page that is out of date."""
    assert main(["generate", "reference", "reference_sample", "-o", "docs", "--check"]) == 0
    Path("docs/sites.pages.example.com.md").write_text("old", encoding="utf-8")
    assert main(["generate", "reference", "reference_sample", "-o", "docs", "--check"]) == 1
    assert "differs" in capsys.readouterr().err
    assert main(["generate", "reference", "reference_sample"]) == 0
    assert capsys.readouterr().out == page
