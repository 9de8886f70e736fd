"""``steersman generate webhooks``: the registration of a manager's webhooks, as files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from samples.shops import GROUP, OldShop, Shop, ShopSpec, ShopStatus, old_shops
from samples.stage import load
from steersman import Manager, Resource
from steersman.cli.failure import Failure, Misuse
from steersman.cli.generate.crds import crds_yaml, generate_crds
from steersman.cli.generate.webhooks import generate_webhooks, webhooks_yaml
from steersman.webhooks import WebhookEndpoint

example = load("shop_webhooks")


def converting(service: str) -> Manager:
    manager = Manager(name="shops", webhook_endpoint=WebhookEndpoint(service=service))
    manager.add(old_shops())
    return manager


def test_the_objects_of_an_example():
    """What is applied to a cluster: the Service and both configurations. `generate crds` writes the definition."""
    text = webhooks_yaml(example.manager, target="examples.shop_webhooks", service="town/hooks")
    trees = list(yaml.safe_load_all(text))
    assert [tree["kind"] for tree in trees] == [
        "Service",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]
    service, mutating, validating = trees
    assert service["spec"]["ports"] == [{"name": "webhooks", "port": 443, "targetPort": 9443}]
    assert mutating["webhooks"][0]["rules"][0]["operations"] == ["CREATE", "UPDATE"]
    assert validating["webhooks"][0]["rules"][0]["operations"] == ["CREATE", "UPDATE", "DELETE"]


def test_mistakes_say_what_to_write(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(Failure, match="--service NAMESPACE/NAME"):
        webhooks_yaml(example.manager, target="shops")
    with pytest.raises(Misuse, match="has no namespace"):
        webhooks_yaml(example.manager, target="shops", service="hooks")
    with pytest.raises(Failure, match="has no webhooks"):
        webhooks_yaml(Manager(name="none"), target="none", service="a/b")
    with pytest.raises(Misuse, match="name the file with -o"):
        generate_webhooks("shops", check=True)


def test_a_file_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    file = tmp_path / "webhooks.yaml"
    assert generate_webhooks("examples.shop_webhooks", service="town/hooks", output=str(file)) == 0
    assert generate_webhooks("examples.shop_webhooks", service="town/hooks", output=str(file), check=True) == 0
    file.write_text("other", encoding="utf-8")
    assert generate_webhooks("examples.shop_webhooks", service="town/hooks", output=str(file), check=True) == 1


def test_one_file_has_the_definition_with_its_conversion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two files with the same CRD would switch the conversion off and on again at each deployment."""
    monkeypatch.chdir(Path(__file__).parents[2])
    crds, webhooks = tmp_path / "crds.yaml", tmp_path / "webhooks.yaml"
    assert generate_crds(["examples.shop_webhooks"], service="town/hooks", output=str(crds)) == 0
    assert generate_webhooks("examples.shop_webhooks", service="town/hooks", output=str(webhooks)) == 0
    (definition,) = yaml.safe_load_all(crds.read_text(encoding="utf-8"))
    assert [version["name"] for version in definition["spec"]["versions"]] == ["v1", "v1alpha1"]
    assert definition["spec"]["conversion"]["strategy"] == "Webhook"
    assert definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"] == "/convert"
    assert "CustomResourceDefinition" not in webhooks.read_text(encoding="utf-8")


def test_a_manager_without_classes_writes_no_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    file = tmp_path / "crds.yaml"
    with pytest.raises(Failure, match=r"shop_webhooks:manager names no resource class.*also name the module"):
        generate_crds(["examples.shop_webhooks:manager"], service="town/hooks", output=str(file))
    assert not file.exists()
    module = tmp_path / "only_a_manager.py"
    module.write_text("from steersman.manager import Manager\nmanager = Manager(name='x')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(Failure, match="only_a_manager names no resource class"):
        generate_crds(["only_a_manager"], output=str(file))


def test_versions_that_differ_need_a_conversion():
    """Without one, the server drops the fields that the other version lacks."""
    with pytest.raises(
        Failure, match=r"v1 spec.host, .*, not in v1alpha1; v1alpha1 spec.domain.* not in v1\).*--without"
    ):
        crds_yaml([Shop, OldShop], {})
    (definition,) = yaml.safe_load_all(crds_yaml([Shop, OldShop], {}, without_conversion=True))
    assert "conversion" not in definition["spec"]

    class Twin(Resource[ShopSpec, ShopStatus], group=GROUP, version="v2", kind="Shop", plural="shops", storage=False):
        """A shop with the same fields."""

    (definition,) = yaml.safe_load_all(crds_yaml([Shop, Twin], {}))
    assert len(definition["spec"]["versions"]) == 2
    with pytest.raises(Failure, match="shops has no converter of Twin"):
        crds_yaml([Shop, OldShop, Twin], {"shops": converting("town/hooks")})


def test_the_converter_completes_the_versions():
    """Naming one class of a kind does not remove its other versions from the cluster."""
    (definition,) = yaml.safe_load_all(crds_yaml([Shop], {"shops": converting("town/hooks")}))
    assert [version["name"] for version in definition["spec"]["versions"]] == ["v1", "v1alpha1"]
    with pytest.raises(Failure, match="two managers convert"):
        crds_yaml([Shop], {"shops": converting("town/hooks"), "others": converting("town/others")})
    nowhere = Manager(name="shops")
    nowhere.add(old_shops())
    with pytest.raises(Failure, match="--service NAMESPACE/NAME"):
        crds_yaml([Shop], {"shops": nowhere})
