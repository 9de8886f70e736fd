"""``steersman new``: a project whose tests pass and whose manifests follow from its code; sentences for names that cannot be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from steersman.cli import main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.startswith(("site_operator", "class_operator"))]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as its author would type it in the project's folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=120
    )


def test_the_tests_of_a_new_project_pass_and_its_manifests_are_up_to_date(here: Path, capsys):
    assert main(["new", "site-operator", "--group", "web.example.com"]) == 0
    project = here / "site-operator"
    tests = run(project, "pytest", "-q", "-p", "no:cacheprovider")
    assert tests.returncode == 0, tests.stdout + tests.stderr
    took = float(re.search(r"passed in ([\d.]+)s", tests.stdout)[1])
    assert took < 30, "a test run of a new project takes seconds, whatever else this machine does"
    for arguments in (
        ("crds", "site_operator.resources", "-o", "config/crds.yaml"),
        ("rbac", "site_operator.operator", "-o", "config/rbac.yaml"),
    ):
        checked = run(project, "steersman", "generate", *arguments, "--check")
        assert checked.returncode == 0, checked.stderr
    assert "pytest" in capsys.readouterr().out


def test_what_is_deployed_fits_together(here: Path):
    assert main(["new", "site-operator"]) == 0
    config = here / "site-operator/config"
    deployment = yaml.safe_load((config / "deployment.yaml").read_text())
    rbac = {each["kind"]: each for each in yaml.safe_load_all((config / "rbac.yaml").read_text())}
    crd = yaml.safe_load((config / "crds.yaml").read_text())
    example = yaml.safe_load((config / "example.yaml").read_text())
    account = rbac["ServiceAccount"]["metadata"]
    pod = deployment["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], deployment["metadata"]["namespace"]) == (account["name"], account["namespace"])
    assert rbac["ClusterRoleBinding"]["subjects"][0]["namespace"] == account["namespace"]
    assert example["apiVersion"] == f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}"
    assert (here / "site-operator/Dockerfile").read_text().count("site_operator.operator") == 1
    assert rbac["Role"]["metadata"] == {"name": "site-operator-leader", "namespace": "site-operator"}


def test_kinds_whose_names_are_words_of_python_are_fine(here: Path):
    assert main(["new", "class-operator"]) == 0
    assert "def children_of(class_: Class) ->" in (here / "class-operator/class_operator/operator.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["Site Operator"],
            "'Site Operator' is no name for a project: small letters, digits and -, such as site-operator",
        ),
        (["json"], "json would be the Python package json, which is taken; choose another name"),
        (
            ["blog", "--kind", "blog"],
            "'blog' is no name for a kind: write words that begin with capitals, such as --kind WebSite",
        ),
        (
            ["deployment-operator"],
            "Deployment is a name that the operator uses already; choose another one with --kind",
        ),
        (
            ["blog", "--group", "web"],
            "'web' is no group: write a domain of yours, such as --group web.example.com",
        ),
    ],
)
def test_names_that_cannot_be_are_refused_in_a_sentence(here: Path, capsys, arguments, words):
    assert main(["new", *arguments]) == 2
    assert capsys.readouterr().err == f"steersman: {words}\n"
    assert list(here.iterdir()) == []


def test_nothing_that_is_there_is_overwritten(here: Path, capsys):
    (here / "site-operator").mkdir()
    (here / "site-operator/notes.txt").write_text("mine")
    assert main(["new", "site-operator"]) == 1
    assert capsys.readouterr().err == (
        "steersman: site-operator is there already; choose another name, or move it away\n"
    )
    assert [each.name for each in (here / "site-operator").iterdir()] == ["notes.txt"]
