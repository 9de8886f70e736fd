"""``steersman new``: a complete project of an operator, with passing tests and manifests generated from its code.

Guarantees
- Nothing is overwritten: the directory must not exist, or be empty.
- The generators that check the manifests later also create them: the CRD from the class, RBAC, the Deployment and the
  webhook registration objects from the manager.
- An invalid name is an error, and nothing is written.
"""

from __future__ import annotations

import ast
import keyword
import re
import sys
from importlib import resources
from pathlib import Path

import msgspec

from steersman._version import __version__
from steersman.cli.console import show
from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import say, write_files
from steersman.cli.generate.chart import chart_files
from steersman.cli.generate.crds import crds_yaml
from steersman.cli.generate.rbac import rbac_yaml
from steersman.cli.generate.webhooks import webhooks_yaml
from steersman.cli.generate.workload import NAME, Workload
from steersman.cli.targets.modules import load_module
from steersman.objects import plural_of

_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_GROUP = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)+")


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """The values for the templates of a project."""

    name: str
    package: str
    kind: str
    plural: str
    singular: str
    variable: str
    group: str
    webhooks: bool = False
    chart: bool = False
    version: str = __version__

    def files(self) -> dict[str, str]:
        """The files by their path in the project, without generated ones."""
        texts = _TEXTS | _WEBHOOK_TEXTS if self.webhooks else _TEXTS
        return {place.format(package=self.package): self._filled(text) for place, text in texts.items()}

    def _filled(self, name: str) -> str:
        text = resources.files("steersman.cli").joinpath("project", f"{name}.txt").read_text(encoding="utf-8")
        values = msgspec.structs.asdict(self)
        added = {place: part.format(**values) if self.webhooks else "" for place, part in _WEBHOOK_PARTS.items()}
        added |= {place: part.format(**values) if self.chart else "" for place, part in _CHART_PARTS.items()}
        added["install"] = "--install-local" if self.webhooks else "--install-crds"
        return text.format(**values, **added, lock=_LOCK)


#: Writes the hashes of all dependencies. It needs a package index, so a new project has no lock yet.
_LOCK = (
    "uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url"
    " --output-file requirements.lock"
)
#: The template of each file.
_TEXTS = {
    "README.md": "README.md",
    "pyproject.toml": "pyproject.toml",
    "{package}/__init__.py": "__init__.py",
    "{package}/resources.py": "resources.py",
    "{package}/operator.py": "operator.py",
    "tests/test_operator.py": "test_operator.py",
    "tests/test_simulation.py": "test_simulation.py",
    "config/example.yaml": "example.yaml",
    "Dockerfile": "Dockerfile",
    ".dockerignore": "dockerignore",
    ".gitignore": "gitignore",
    ".github/workflows/ci.yaml": "ci.yaml",
}
#: The templates of additional files in a project with webhooks.
_WEBHOOK_TEXTS = {"{package}/webhooks.py": "webhooks.py", "tests/test_webhooks.py": "test_webhooks.py"}
#: What webhooks add to the other files, by the placeholder in their templates.
_WEBHOOK_PARTS = {
    "endpoint_import": "from steersman.webhooks import WebhookEndpoint\n",
    "handlers_import": "from {package}.webhooks import checks, defaults\n",
    "handlers_added": """
manager.webhook_endpoint = WebhookEndpoint(service="{name}/{name}-webhooks")
manager.add(defaults)
manager.add(checks)
""",
    "ci_step": "      - run: steersman generate webhooks {package}.operator -o config/webhooks.yaml --check\n",
    "wait_for_webhooks": "$ kubectl wait --for=create validatingwebhookconfiguration/{name} --timeout=60s\n",
    "try_webhooks": """
The server calls the webhooks of `{package}/webhooks.py`, which reject this change:

```console
$ kubectl patch {plural}.{group} example --type=merge --patch='{{"spec": {{"image": "httpd:1.27"}}}}'
The {kind} "example" is invalid: spec.image: Forbidden: only the tag may change
```
""",
    "handlers_file": "- Its defaults and checks: `{package}/webhooks.py`\n",
    "generate_webhooks": "$ steersman generate webhooks {package}.operator -o config/webhooks.yaml\n",
    "apply_webhooks": """\
$ kubectl rollout status deployment/{name} --namespace {name}
$ kubectl apply -f config/webhooks.yaml          # last: from now on, every write of a {kind} needs the operator
""",
}
#: What a chart adds.
_CHART_PARTS = {
    "generate_chart": "$ steersman generate chart {package}.operator --directory chart\n",
    "chart_step": "      - run: steersman generate chart {package}.operator --directory chart --check\n",
}


def new_project(name: str, *, kind: str | None, group: str, webhooks: bool = False, chart: bool = False) -> int:
    """Create a project in a directory with its name; returns an exit code."""
    project = project_of(name, kind=kind, group=group, webhooks=webhooks, chart=chart)
    folder = Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Failure(f"{name} already exists; choose another name, or move it away")
    code = write_files({folder / place: text for place, text in project.files().items()}, check=False)
    code = code or write_files(
        {folder / place: text for place, text in _generated(folder, project).items()}, check=False
    )
    show(f"\n  cd {name}\n  python -m venv .venv && . .venv/bin/activate\n  pip install -e '.[dev]'\n  pytest\n")
    say(f"created a project for {project.kind}.{group}; see its README.md for the next steps")
    return code


def project_of(name: str, *, kind: str | None, group: str, webhooks: bool = False, chart: bool = False) -> Project:
    """The names of a project; raises for an invalid one."""
    if not NAME.fullmatch(name):
        raise Misuse(
            f"{name!r} is not a valid project name: use up to 54 lower case letters, digits and -, such as"
            " site-operator"
        )
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names or package in {"steersman", "tests"}:
        raise Misuse(f"the Python package of {name} would be {package}, which is taken; choose another name")
    if package.startswith("test_") or package.endswith("_test"):
        raise Misuse(
            f"pytest would collect the package {package} of {name} as tests; choose a name without test- or -test"
        )
    kind = kind or _kind_of(name)
    if not _KIND.fullmatch(kind):
        raise Misuse(f"{kind!r} is not a valid kind: write capitalized words, such as --kind WebSite")
    if keyword.iskeyword(kind):
        raise Misuse(f"{kind} is a Python keyword; choose another kind with --kind")
    taken = _identifiers(webhooks=webhooks)
    if kind in taken:
        raise Misuse(f"the operator's code already uses the name {kind}; choose another kind with --kind")
    if not _GROUP.fullmatch(group):
        raise Misuse(f"{group!r} is not a valid group: write a domain of yours, such as --group web.example.com")
    singular = kind.lower()
    return Project(
        name=name,
        package=package,
        kind=kind,
        plural=plural_of(kind),
        singular=singular,
        variable=f"{singular}_" if keyword.iskeyword(singular) or singular in taken else singular,
        group=group,
        webhooks=webhooks,
        chart=chart,
    )


def _identifiers(*, webhooks: bool) -> frozenset[str]:
    """The names in the Python files of any project, which a kind or its variable would shadow."""
    names = dict.fromkeys(("name", "package", "singular", "variable"), "x")
    sample = Project(**names, kind="X", plural="xs", group="example.com", webhooks=webhooks)
    identifiers: set[str] = set()
    for place, text in sample.files().items():
        for node in ast.walk(ast.parse(text)) if place.endswith(".py") else ():
            match node:
                case (
                    ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name)
                ):
                    identifiers.add(name)
                case ast.alias(name=name, asname=other):
                    identifiers.add(other or name)
                case _:
                    pass
    return frozenset(identifiers - {"x", "X", "XSpec", "XStatus"})


def _kind_of(name: str) -> str:
    """The kind in a project's name: ``site-operator`` and ``site-controller`` mean Site."""
    words = [word for word in name.split("-") if word not in {"operator", "controller"}]
    return "".join(word.capitalize() for word in words) or name.capitalize()


def _generated(folder: Path, project: Project) -> dict[str, str]:
    """The objects for a cluster, generated from the new code."""
    sys.path.insert(0, str(folder.absolute()))
    writes_nothing, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        declared = load_module(f"{project.package}.resources")
        operator = load_module(f"{project.package}.operator")
    finally:
        sys.path.remove(str(folder.absolute()))
        sys.dont_write_bytecode = writes_nothing
    target = f"{project.package}.operator"
    workload = Workload.of(operator.manager, namespace=project.name)
    files = {
        **{f"config/{place}.yaml": text for place, text in workload.manifests().items()},
        "config/crds.yaml": crds_yaml([getattr(declared, project.kind)], {target: operator.manager}),
        "config/rbac.yaml": rbac_yaml(
            operator.manager,
            target=target,
            namespace=project.name,
            token_review=True,
            tls_service=workload.metrics_service,
        ),
    }
    if project.webhooks:
        files["config/webhooks.yaml"] = webhooks_yaml(operator.manager, target=target)
    if project.chart:
        files |= {f"chart/{place}": text for place, text in chart_files(operator.manager, target=target).items()}
    return files
