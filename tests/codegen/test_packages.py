"""Models as packages: a module for each kind, and class names that are short, clear and stay."""

import copy
import importlib
import sys
from pathlib import Path

import pytest
import yaml
from codegen.test_models import GADGET, ruff
from hypothesis import given, settings, strategies as st

from samples.type_checkers import pyright
from steersman.cli import main
from steersman.codegen import Target, class_names_in, read_crds, write_models
from steersman.codegen.short_names import short_names

STEPS = st.lists(st.sampled_from(["spec", "template", "env[]", "ref", "ports[]", "a"]), min_size=1, max_size=5)
PATHS = st.lists(STEPS.map(lambda steps: ".".join(["Site", *steps])), unique=True, max_size=25)


def named(*paths):
    return [*short_names("Site", [f"Site.{path}" for path in paths], {}).values()]


def test_names_have_what_tells_them_apart_and_no_more():
    assert named("spec", "status") == ["SiteSpec", "SiteStatus"]
    assert named("spec.template", "spec.template.spec") == ["SpecTemplate", "TemplateSpec"]
    assert named("spec.containers[].env[]", "spec.initContainers[].env[]") == [
        "ContainerEnvItem",
        "InitContainerEnvItem",
    ]
    deep = "spec.acme.solvers[].http01.podTemplate.spec.affinity.nodeAffinity"
    assert named("spec.acme", deep) == ["Acme", "NodeAffinity"]
    # one that contains another tells itself apart
    assert named("spec.rules[].filters[]", "spec.rules[].backends[].filters[]") == ["Filter", "BackendFilter"]
    # no name of Python, and not that of the kind itself
    assert named("spec.none", "spec.site") == ["SpecNone", "SpecSite"]


@settings(max_examples=300, deadline=None)
@given(PATHS, PATHS)
def test_names_are_distinct_and_stay_whatever_is_added_or_removed(before, after):
    first = short_names("Site", before, {})
    assert len(set(first.values()) | {"Site"}) == len(before) + 1
    assert short_names("Site", [*reversed(before)], {}) == first
    second = short_names("Site", after, first)
    assert len(set(second.values()) | {"Site"}) == len(after) + 1
    assert {path: second[path] for path in after if path in first} == {
        path: first[path] for path in after if path in first
    }


def gadget(**fields):
    """The sample CRD, with more fields in the spec of every version."""
    crd = copy.deepcopy(GADGET)
    for version in crd["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] |= copy.deepcopy(fields)
    return crd


def obj(**fields):
    return {"type": "object", "properties": fields}


TEXT = {"type": "string"}


def test_a_module_for_each_kind_that_python_and_ruff_accept(tmp_path, monkeypatch):
    """The package exports kinds with spec and status; the classes inside are in the module of the kind."""
    other = gadget()
    other["metadata"]["name"] = "widgets.models.test.steersman.dev"
    other["spec"]["names"] = {"kind": "HTTPWidget", "plural": "widgets", "singular": "widget"}
    modules = write_models(read_crds([gadget(), other]), Target(packages=True))
    package = "models_test_steersman_dev_v1"
    assert {f"{package}/__init__", f"{package}/gadget", f"{package}/http_widget"} <= modules.keys()
    for name, text in modules.items():
        file = tmp_path / "kinds_of_test" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "kinds_of_test" / "__init__.py").write_text("", encoding="utf-8")
    answer = ruff(tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert pyright(tmp_path) == []
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("kinds_of_test")]:
        monkeypatch.delitem(sys.modules, name)
    made = importlib.import_module(f"kinds_of_test.{package}")
    assert made.Gadget.gvk().kind == "Gadget"
    assert {"Gadget", "GadgetSpec", "HTTPWidget", "HTTPWidgetSpec"} <= set(made.__all__)
    inside = importlib.import_module(f"kinds_of_test.{package}.gadget")
    assert inside.Port is not importlib.import_module(f"kinds_of_test.{package}.http_widget").Port


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def generate(crd, *arguments):
    Path("crd.yaml").write_text(yaml.safe_dump(crd), encoding="utf-8")
    return main(["generate", "models", "crd.yaml", "--packages", "-o", "models", *arguments])


def test_a_field_that_is_added_renames_no_class(here, capsys):
    """Code that imports a class must not break, nor get another class, because another field has the same name."""
    file = here / "models/models_test_steersman_dev_v1/gadget.py"
    assert generate(gadget(mirror=obj(target=obj(host=TEXT)))) == 0
    before = class_names_in(file.read_text(encoding="utf-8"))
    assert before["Gadget.spec.mirror.target"] == "Target"
    assert (here / "models/__init__.py").exists()
    larger = gadget(mirror=obj(target=obj(host=TEXT)), target=obj(name=TEXT), copy=obj(target=obj(host=TEXT)))
    assert generate(larger) == 0
    after = class_names_in(file.read_text(encoding="utf-8"))
    assert before.items() <= after.items()
    assert after["Gadget.spec.target"] == "SpecTarget"
    assert after["Gadget.spec.copy.target"] == "CopyTarget"
    assert generate(larger, "--check") == 0
    assert generate(gadget(), "--check") == 1
    capsys.readouterr()


def test_a_package_takes_the_place_of_a_module_and_says_so(here, capsys):
    Path("crd.yaml").write_text(yaml.safe_dump(gadget()), encoding="utf-8")
    assert main(["generate", "models", "crd.yaml", "-o", "models"]) == 0
    (here / "models/__init__.py").write_text("# mine\n", encoding="utf-8")
    capsys.readouterr()
    assert generate(gadget()) == 0
    assert "models_test_steersman_dev_v1.py is no longer used" in capsys.readouterr().err
    assert (here / "models/__init__.py").read_text(encoding="utf-8") == "# mine\n"
