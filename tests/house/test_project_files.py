"""What an open project promises beside its code: hooks and workflows run what the continuous integration runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    assert commands == {"linux": ["bash .ci/run"], "macos": ["bash .ci/portable"]}
    assert all((ROOT / command.removeprefix("bash ")).is_file() for each in commands.values() for command in each)


def test_every_form_says_what_it_is_for() -> None:
    forms = [read(str(path.relative_to(ROOT))) for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yaml"))]
    assert [form["name"] for form in forms] == ["Bug", "Proposal"]
    assert all(form["description"] and form["body"] for form in forms)
