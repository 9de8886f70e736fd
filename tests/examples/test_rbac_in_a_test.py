"""examples/rbac_in_a_test: it passes as it is, and it fails when the Role allows less."""

from __future__ import annotations

import shutil
import subprocess
import sys

from samples.stage import EXAMPLES


def test_the_tests_of_the_example_pass_and_notice_what_a_role_lacks(tmp_path):
    for name in ("as_it_is", "without_watch"):
        shutil.copytree(EXAMPLES / "rbac_in_a_test", tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    role = tmp_path / "without_watch" / "role.yaml"
    role.write_text(role.read_text().replace("list, watch, create", "list, create"))
    options = ("asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function")
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
        + [part for option in options for part in ("-o", option)]
        + ["--rootdir=.", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "1 failed, 3 passed" in answer.stdout, answer.stdout + answer.stderr
    assert "FAILED without_watch/test_role.py::test_it_can_do_its_work" in answer.stdout
    refused = 'cannot watch resource "deployments" in API group "apps" in the namespace "shop"'
    assert refused in answer.stdout
