"""``tools/engine/build``: which programs an engine has, and what is built again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "engine" / "build"
#: Stands in for the compiler: notes what it builds, and writes a small file in place of a program.
GO = """#!/bin/sh
[ "$1" = build ] || exit 0
while [ "$1" != -o ]; do shift; done
grep -o 'k8s.io/kubernetes v[0-9.]*\\|etcd/server/v3 v[0-9.]*' go.mod | head -n 1 | tee "$2" >>"$BUILDS"
"""


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Runs the tool with a compiler that takes no time; returns the folder that it prints."""
    program = tmp_path / "bin" / "go"
    program.parent.mkdir()
    program.write_text(GO)
    program.chmod(0o755)
    variables = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "STEERSMAN_ENGINE_CACHE": str(tmp_path / "cache"),
        "BUILDS": str(tmp_path / "builds"),
    }

    def build(*options: str) -> Path:
        command = [sys.executable, str(TOOL), *options]
        done = subprocess.run(command, env=variables, check=True, capture_output=True, text=True)
        return Path(done.stdout.splitlines()[-1])

    return build


def test_a_server_alone_has_the_other_programs_of_the_default_version(
    build: Callable[..., Path], tmp_path: Path
) -> None:
    """Building all programs of the oldest version would take longer than CI has; no controller manager may be newer."""
    whole, alone = build(), build("--kubernetes", "1.34", "--apiserver-only")
    assert sorted(each.name for each in alone.iterdir()) == ["etcd", "kube-apiserver", "kubectl"]
    assert (alone / "kube-apiserver").read_text().startswith("k8s.io/kubernetes v1.34.")
    assert all((alone / name).samefile(whole / name) for name in ("etcd", "kubectl"))
    assert len((tmp_path / "builds").read_text().splitlines()) == 3
    assert build("--kubernetes", "1.34", "--apiserver-only") == alone
    assert len((tmp_path / "builds").read_text().splitlines()) == 3, "it was built twice"


def test_only_a_whole_engine_is_found_by_its_version(build: Callable[..., Path], tmp_path: Path) -> None:
    """``Engine.start(kubernetes="1.34")`` promises a controller manager."""
    build("--kubernetes", "1.34", "--apiserver-only")
    assert not (tmp_path / "cache" / "1.34").exists()
    whole = build("--kubernetes", "1.34")
    assert (tmp_path / "cache" / "1.34").resolve() == whole
    assert (whole / "kube-controller-manager").samefile(whole / "kube-apiserver")
