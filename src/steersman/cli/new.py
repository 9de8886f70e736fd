"""``steersman new``: the project of an operator, complete: its tests pass, and its manifests are those of its code.

Guarantees
- Nothing that is there is overwritten: the folder must not exist, or be empty.
- What can be derived is derived: the CRD from the class, RBAC from the manager, by the same generators that check them.
- A name that cannot be meant is a sentence, and nothing is written.
"""

from __future__ import annotations

import keyword
import re
import sys
from importlib import resources
from pathlib import Path

import msgspec

from steersman._version import __version__
from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import say, write_files
from steersman.cli.modules import load_module
from steersman.cli.rbac import rbac_yaml
from steersman.objects.options import plural_of
from steersman.schemas import crd_yaml

_NAME = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_GROUP = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)+")
#: What the operator's module calls by these names already.
_TAKEN_KINDS = frozenset(
    {
        "Container",
        "Deployment",
        "DeploymentSpec",
        "DeploymentStatus",
        "Invalid",
        "LabelSelector",
        "LeaderElection",
        "Manager",
        "MergePatch",
        "ObjectMeta",
        "PodSpec",
        "PodTemplateSpec",
        "Seen",
    }
)
_TAKEN_VARIABLES = frozenset(
    {"deployment", "generates", "labels", "main", "manager", "ready", "reports", "seen", "spec"}
)


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """What the texts of a project are filled in with."""

    name: str
    package: str
    kind: str
    plural: str
    singular: str
    variable: str
    group: str
    version: str = __version__

    def files(self) -> dict[str, str]:
        """The texts by their places in the project, without what is generated of them."""
        return {place.format(package=self.package): self._filled(text) for place, text in _TEXTS.items()}

    def _filled(self, name: str) -> str:
        text = resources.files("steersman.cli").joinpath("project", f"{name}.txt").read_text(encoding="utf-8")
        return text.format(**msgspec.structs.asdict(self))


#: Where each text goes.
_TEXTS = {
    "README.md": "README.md",
    "pyproject.toml": "pyproject.toml",
    "{package}/__init__.py": "__init__.py",
    "{package}/resources.py": "resources.py",
    "{package}/operator.py": "operator.py",
    "tests/test_operator.py": "test_operator.py",
    "config/deployment.yaml": "deployment.yaml",
    "config/example.yaml": "example.yaml",
    "Dockerfile": "Dockerfile",
    ".dockerignore": "dockerignore",
    ".gitignore": "gitignore",
    ".github/workflows/ci.yaml": "ci.yaml",
}


def new_project(name: str, *, kind: str | None, group: str) -> int:
    """Write a project into a folder of its name; the result is an exit code."""
    project = planned(name, kind=kind, group=group)
    folder = Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Failure(f"{name} is there already; choose another name, or move it away")
    code = write_files({folder / place: text for place, text in project.files().items()}, check=False)
    code = code or write_files(
        {folder / place: text for place, text in _generated(folder, project).items()}, check=False
    )
    print(f"\n  cd {name}\n  python -m venv .venv && . .venv/bin/activate\n  pip install -e '.[dev]'\n  pytest\n")
    say(f"wrote the project of {project.kind}.{group}; README.md in it says how to go on")
    return code


def planned(name: str, *, kind: str | None, group: str) -> Project:
    """What a project is called; a name that cannot be meant raises."""
    if not _NAME.fullmatch(name):
        raise Misuse(f"{name!r} is no name for a project: small letters, digits and -, such as site-operator")
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names or package in {"steersman", "tests"}:
        raise Misuse(f"{name} would be the Python package {package}, which is taken; choose another name")
    kind = kind or _kind_of(name)
    if not _KIND.fullmatch(kind):
        raise Misuse(f"{kind!r} is no name for a kind: write words that begin with capitals, such as --kind WebSite")
    if kind in _TAKEN_KINDS:
        raise Misuse(f"{kind} is a name that the operator uses already; choose another one with --kind")
    if not _GROUP.fullmatch(group):
        raise Misuse(f"{group!r} is no group: write a domain of yours, such as --group web.example.com")
    singular = kind.lower()
    taken = keyword.iskeyword(singular) or singular in _TAKEN_VARIABLES
    return Project(
        name=name,
        package=package,
        kind=kind,
        plural=plural_of(kind),
        singular=singular,
        variable=f"{singular}_" if taken else singular,
        group=group,
    )


def _kind_of(name: str) -> str:
    """``site-operator`` and ``site-controller`` are about a Site."""
    words = [word for word in name.split("-") if word not in {"operator", "controller"}]
    return "".join(word.capitalize() for word in words) or name.capitalize()


def _generated(folder: Path, project: Project) -> dict[str, str]:
    """The CRD and RBAC, made of the code that was written."""
    sys.path.insert(0, str(folder.absolute()))
    writes_nothing, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        declared = load_module(f"{project.package}.resources")
        operator = load_module(f"{project.package}.operator")
    finally:
        sys.path.remove(str(folder.absolute()))
        sys.dont_write_bytecode = writes_nothing
    target = f"{project.package}.operator"
    return {
        "config/crds.yaml": crd_yaml(getattr(declared, project.kind)),
        "config/rbac.yaml": rbac_yaml(operator.manager, target=target, namespace=project.name),
    }
