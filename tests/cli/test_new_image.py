"""The image of a new project: exactly the packages of its lock are installed, by the commands of README, CI and Dockerfile."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from steersman.cli import main

HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
COMMIT = ("git", "-c", "user.name=tests", "-c", "user.email=tests@example.com", "commit", "--quiet", "--message=x")


def write_wheel(folder: Path, name: str, version: str) -> Path:
    """A wheel with one module."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{place},sha256={_digest(text)},{len(text)}\n" for place, text in files.items())
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for place, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            wheel.writestr(place, text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


class Checkout:
    """A new project in a repository, whose only dependency is a wheel of the test; no package index is used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "site-operator"
        self.lock = self.folder / "requirements.lock"
        self.wheels, self.installed = folder / "wheels", folder / "installed"
        self.wheels.mkdir()
        self.wheel = write_wheel(self.wheels, "dependency", "1.0")
        self.depend_on("dependency")
        self.run("git", "init", "--quiet")
        self.commit()

    def depend_on(self, *names: str) -> None:
        project = self.folder / "pyproject.toml"
        text, number = re.subn(
            r"^dependencies = .*$", f"dependencies = {list(names)}", project.read_text(), flags=re.MULTILINE
        )
        assert number == 1
        project.write_text(text)

    def read(self, place: str) -> str:
        return (self.folder / place).read_text(encoding="utf-8")

    def commit(self) -> None:
        self.run("git", "add", "--all")
        self.run(*COMMIT)

    def run(self, *command: str, code: int = 0) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment(), check=False, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def _environment(self) -> Mapping[str, str]:
        """The environment of a machine: it says where packages come from, and the files of the project do not."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "GIT_"))}
        return kept | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "UV_NO_INDEX": "1",
            "UV_FIND_LINKS": str(self.wheels),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_TARGET": str(self.installed),
        }


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "site-operator"]) == 0
    return Checkout(tmp_path)


def test_the_image_has_the_packages_of_the_lock(checkout: Checkout):
    """A package that changed on its index would otherwise reach production with the next build."""
    (command,) = re.findall(r"^\$ (uv pip compile .*)$", checkout.read("README.md"), re.MULTILINE)
    checkout.run(*shlex.split(command))
    text = checkout.lock.read_text(encoding="utf-8")
    assert HASH.findall(text) == [hashlib.sha256(checkout.wheel.read_bytes()).hexdigest()]
    assert str(checkout.wheels) not in text
    installs = re.findall(r"^RUN (.*pip install.*)$", checkout.read("Dockerfile"), re.MULTILINE)
    assert len(installs) == 1, "nothing is installed beside the lock"
    checkout.run(*shlex.split(installs[0]))
    assert (checkout.installed / "dependency.py").exists()
    checkout.wheel.write_bytes(checkout.wheel.read_bytes() + b"changed")
    assert "DO NOT MATCH THE HASHES" in checkout.run(*shlex.split(installs[0]), "--upgrade", code=1)


def test_ci_notices_a_lock_that_is_missing_or_outdated(checkout: Checkout):
    steps = yaml.safe_load(checkout.read(".github/workflows/ci.yaml"))["jobs"]["test"]["steps"]
    (check,) = (step["run"] for step in steps if "requirements.lock" in step.get("run", ""))
    (command,) = re.findall(r"^\$ (uv pip compile .*)$", checkout.read("README.md"), re.MULTILINE)
    ci = ("bash", "-e", "-c", check)
    assert "+dependency==1.0" in checkout.run(*ci, code=1), "it was never committed"
    checkout.run(*shlex.split(command))
    checkout.commit()
    checkout.run(*ci)
    write_wheel(checkout.wheels, "dependency", "2.0")
    checkout.run(*ci)  # a release of a dependency is no reason to fail
    write_wheel(checkout.wheels, "addition", "1.0")
    checkout.depend_on("dependency", "addition")
    assert "+addition==1.0" in checkout.run(*ci, code=1)
