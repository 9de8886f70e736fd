"""What an open project promises beside its code: hooks and workflows run what the continuous integration runs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_hooks_before_a_commit_are_checks_of_the_continuous_integration() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (local,) = read(".pre-commit-config.yaml")["repos"]
    commands = [hook["entry"].removeprefix(".venv/bin/").split(" --")[0] for hook in local["hooks"]]
    assert commands == ["ruff check", "ruff format", "pyright", "lint-imports"]
    assert [each for each in commands if each not in script] == []


def test_workflows_run_the_scripts_of_the_repository() -> None:
    jobs = read(".github/workflows/ci.yaml")["jobs"]
    commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert commands == {
        "linux": ["bash .ci/run"],
        "oldest": ["bash .ci/oldest"],
        "macos": ["bash .ci/portable"],
    }
    assert all((ROOT / command.removeprefix("bash ")).is_file() for each in commands.values() for command in each)


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(workflow: Path) -> None:
    """A tag can move to code that steals what the job may do."""
    used = re.findall(r"uses: (.*)", workflow.read_text(encoding="utf-8"))
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", each)] == []


def test_a_release_is_published_by_jobs_that_may_do_no_more() -> None:
    """The job with the identity for the index runs no code of the repository; no job has a stored secret."""
    workflow = read(".github/workflows/release.yaml")
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    rights = {
        name: {right for right, value in job["permissions"].items() if value == "write"} for name, job in jobs.items()
    }
    assert (rights["check"], rights["pypi"]) == (set(), {"id-token"})
    assert {name for name, each in rights.items() if "contents" in each} == {"notes"}
    identified = [jobs[name] for name, each in rights.items() if "id-token" in each]
    assert not [step for job in identified for step in job["steps"] if "actions/checkout" in step.get("uses", "")]
    assert all("check" in job["needs"] for job in (jobs["pypi"], jobs["image"]))
    assert "secrets." not in (ROOT / ".github/workflows/release.yaml").read_text(encoding="utf-8")


def test_a_release_runs_the_scripts_of_the_repository() -> None:
    jobs = read(".github/workflows/release.yaml")["jobs"]
    commands = [step["run"] for name in ("check", "image") for step in jobs[name]["steps"] if "run" in step]
    scripts = [word for command in commands for word in re.findall(r"(?:tools|\.ci)/[\w-]+", command)]
    assert scripts == [".ci/run", "tools/release", "tools/setup", "tools/image"]
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)


def test_every_form_says_what_it_is_for() -> None:
    forms = [read(str(path.relative_to(ROOT))) for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yaml"))]
    assert [form["name"] for form in forms] == ["Bug", "Proposal"]
    assert all(form["description"] and form["body"] for form in forms)
