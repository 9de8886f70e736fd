"""``steersman generate webhooks``: the registration of a manager's webhooks, as files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from samples.stage import load
from steersman import Manager
from steersman.cli.failure import Failure, Misuse
from steersman.cli.generate.webhooks import generate_webhooks, webhooks_yaml

example = load("shop_webhooks")


def test_the_objects_of_an_example():
    """What is applied to a cluster: the Service, both configurations, and the definition with its conversion."""
    text = webhooks_yaml(example.manager, target="examples.shop_webhooks", service="town/hooks")
    trees = list(yaml.safe_load_all(text))
    assert [tree["kind"] for tree in trees] == [
        "Service",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "CustomResourceDefinition",
    ]
    service, mutating, validating, definition = trees
    assert service["spec"]["ports"] == [{"name": "webhooks", "port": 443, "targetPort": 9443}]
    assert mutating["webhooks"][0]["rules"][0]["operations"] == ["CREATE", "UPDATE"]
    assert validating["webhooks"][0]["rules"][0]["operations"] == ["CREATE", "UPDATE", "DELETE"]
    assert definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"] == "/convert"


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
