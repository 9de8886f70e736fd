"""``steersman generate chart``: helm renders the manifests that the other commands write, and refuses wrong values."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from charts.programs import HELM_VERSIONS, Major, helm

from steersman.cli import main
from steersman.webhooks import WebhookEndpoint

DIGEST = f"sha256:{'a' * 64}"
UNELECTED = """
from steersman import Manager, ObjectMeta, Resource, Spec, generates
from steersman.kinds.core_v1 import ConfigMap

class SiteSpec(Spec):
    image: str

class Site(Resource[SiteSpec, None], group="unelected.example.com", version="v1"):
    '''A web site.'''

@generates(Site, children=(ConfigMap,))
def pages(site: Site) -> list[ConfigMap]:
    return [ConfigMap(metadata=ObjectMeta(name=site.key.name))]

manager = Manager(name="unelected", namespaces=("team-a", "team-b"))
manager.add(pages)
"""
WITH_HELM = pytest.mark.parametrize("major", HELM_VERSIONS)


@pytest.fixture
def chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The chart of a new project with webhooks, beside the manifests in ``config``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.startswith("site_operator")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["new", "site-operator", "--webhooks", "--group", "web.example.com"]) == 0
    monkeypatch.chdir(tmp_path / "site-operator")
    assert main(["generate", "chart", "site_operator.operator", "--directory", "chart"]) == 0
    return tmp_path / "site-operator" / "chart"


def run_helm(major: Major, *arguments: str | Path, code: int = 0) -> str:
    done = subprocess.run(
        [helm(major), *arguments], env=os.environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def rendered(major: Major, chart: Path, *options: str) -> list[dict[str, Any]]:
    # a helm that is built from its module does not know of which Kubernetes it is
    fixed = ("--namespace", "site-operator", "--include-crds", "--kube-version", "1.36")
    text = run_helm(major, "template", "any", chart, *fixed, *options)
    return [each for each in yaml.safe_load_all(text) if each]


def by_name(trees: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    found = {(each["kind"], each["metadata"]["name"]): each for each in trees}
    assert len(found) == len(trees)
    return found


@WITH_HELM
def test_with_default_values_it_is_the_manifests(chart: Path, major: Major):
    """A chart that differed from the manifests would install another operator than its tests ran."""
    files = [file for file in (chart.parent / "config").glob("*.yaml") if file.name != "example.yaml"]
    expected = by_name([each for file in files for each in yaml.safe_load_all(file.read_text()) if each])
    found = by_name(rendered(major, chart))
    added = {kind for kind, _ in found.keys() - expected.keys()}
    assert added == {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "PodDisruptionBudget"}
    assert found.keys() >= expected.keys()
    roles = [each for (kind, _), each in found.items() if kind in {"ServiceAccount", "ClusterRole", "Role"}]
    for each in (found["Deployment", "site-operator"]["spec"]["template"], *roles):
        readable = {"steersman.dev/readable-versions": "sites.web.example.com/v1alpha1"}
        assert each["metadata"].pop("annotations") == readable
    assert {place: found[place] for place in expected} == expected


@WITH_HELM
def test_helm_finds_nothing_to_criticize(chart: Path, major: Major):
    assert "0 chart(s) failed" in run_helm(major, "lint", "--strict", chart)


@WITH_HELM
def test_values_are_filled_in(chart: Path, major: Major):
    values: dict[str, Any] = {
        "image": {"repository": "registry.example.com/site", "digest": DIGEST, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "replicas": 3,
        "resources": {"limits": {"memory": "1Gi"}},
        "args": ["--log-level=debug", "it's {{ . }}"],
        "env": [{"name": "REGION", "value": "123"}],
        "volumes": [{"name": "tls", "secret": {"secretName": "tls"}}],
        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
        "podAnnotations": {"example.com/team": "web"},
        "podLabels": {"example.com/identity": "true"},
        "podSecurityContext": {"fsGroup": None, "runAsUser": 1000},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        "priorityClassName": "high",
        "podDisruptionBudget": {"maxUnavailable": "50%"},
        "serviceAccount": {"annotations": {"example.com/role": "writer"}},
        "networkPolicy": {"apiServerPorts": [6443], "metricsFrom": [], "egress": [{"ports": [{"port": 5432}]}]},
        "crds": {"guard": False},
    }
    (chart.parent / "values.yaml").write_text(yaml.safe_dump(values))
    found = by_name(rendered(major, chart, "--namespace", "123", "--values", str(chart.parent / "values.yaml")))
    assert not any(kind.startswith("ValidatingAdmissionPolicy") for kind, _ in found)
    deployment = found["Deployment", "site-operator"]
    assert (deployment["spec"]["replicas"], deployment["metadata"]["namespace"]) == (3, "123")
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["image"] == f"registry.example.com/site@{DIGEST}"
    assert container["imagePullPolicy"] == "Always"
    assert container["args"][2:] == [
        "--tls-service=123/site-operator-metrics",
        "--token-review",
        "--webhook-service=123/site-operator-webhooks",
        *values["args"],
    ]
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    for name in ("env", "volumeMounts"):
        assert container[name] == values[name]
    places = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName")
    for name in ("volumes", "imagePullSecrets", *places):
        assert pod["spec"][name] == values[name]
    assert pod["metadata"]["labels"] == {"app.kubernetes.io/name": "site-operator", "example.com/identity": "true"}
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["spec"]["securityContext"] == security
    assert pod["metadata"]["annotations"]["example.com/team"] == "web"
    assert found["ServiceAccount", "site-operator"]["metadata"]["annotations"]["example.com/role"] == "writer"
    assert found["PodDisruptionBudget", "site-operator"]["spec"] == {
        "maxUnavailable": "50%",
        "selector": deployment["spec"]["selector"],
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    policy = found["NetworkPolicy", "site-operator"]["spec"]
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": 9443}]}], "an empty `from` would admit all"
    assert policy["egress"][1:] == [{"ports": [{"protocol": "TCP", "port": 6443}]}, {"ports": [{"port": 5432}]}]
    (webhook,) = found["ValidatingWebhookConfiguration", "site-operator"]["webhooks"]
    assert webhook["clientConfig"]["service"]["namespace"] == "123"
    found = by_name(rendered(major, chart, "--set", "networkPolicy.enabled=false", "--set", "image.tag="))
    assert ("NetworkPolicy", "site-operator") not in found
    (container,) = found["Deployment", "site-operator"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "site-operator:0.1.0", "an image cannot end with a colon"


@WITH_HELM
@pytest.mark.parametrize("option", ["replicas=1", "podDisruptionBudget.enabled=false"])
def test_a_single_replica_has_no_disruption_budget(chart: Path, major: Major, option: str):
    """A budget that allows no eviction would block every drain of the node."""
    budget = ("PodDisruptionBudget", "site-operator")
    found = by_name(rendered(major, chart))[budget]
    assert (found["metadata"]["namespace"], found["spec"]["maxUnavailable"]) == ("site-operator", 1)
    assert budget not in by_name(rendered(major, chart, "--set", option))


@WITH_HELM
def test_a_wrong_value_is_refused_in_words(chart: Path, major: Major):
    """helm would otherwise take a misspelled name, and the user would believe that it has an effect."""
    budgets = ("--set", "podDisruptionBudget.maxUnavailable=0", "--set", "podDisruptionBudget.enabled=maybe")
    options = ("--set", "replicas=two", "--set", "replica=3", "--set", "networkPolicy.apiServerPorts={99999}", *budgets)
    said = run_helm(major, "template", chart, "--kube-version", "1.36", *options, code=1)
    assert "at '/replicas': got string, want integer" in said
    assert "additional properties 'replica' not allowed" in said
    assert "at '/networkPolicy/apiServerPorts/0': maximum: got 99,999, want 65,535" in said
    assert "at '/podDisruptionBudget/maxUnavailable': minimum: got 0, want 1" in said
    assert "at '/podDisruptionBudget/enabled': got string, want boolean" in said
    # null removes a default: no replica would run, and a rule without ports would allow all of them
    nulls = ("--set", "replicas=null", "--set", "networkPolicy.apiServerPorts=null", "--set", "crds=null")
    said = run_helm(major, "template", chart, "--kube-version", "1.36", *nulls, code=1)
    assert "at '': missing properties 'replicas', 'crds'" in said
    assert "at '/networkPolicy': missing property 'apiServerPorts'" in said


def test_a_chart_is_compared(chart: Path, capsys: pytest.CaptureFixture[str]):
    """CI of a project notices a chart that no longer fits its code, and a file that is left of an older one."""
    command = ["generate", "chart", "site_operator.operator", "--directory", "chart"]
    assert main([*command, "--check"]) == 0
    (chart / "crds" / "old.yaml").write_text("{}")
    assert main([*command, "--check"]) == 1
    said = capsys.readouterr().err
    assert "chart/crds/old.yaml is no longer part of the chart, and helm would install it; remove it" in said
    (chart / "crds" / "old.yaml").unlink()
    assert main([*command, "--image", "site:1.0", "--check"]) == 1
    assert "chart/values.yaml differs" in capsys.readouterr().err
    assert main([*command, "--version", "1"]) == 2
    assert "--version 1: a chart has a version of three numbers, such as 1.4.0" in capsys.readouterr().err


def test_the_commands_leave_the_manager_as_it_is(chart: Path):
    """A program that generates its files in the process that runs the manager must not move it to another Service."""
    manager = sys.modules["site_operator.operator"].manager
    endpoint = manager.webhook_endpoint = WebhookEndpoint(service="sites/hooks")
    assert manager.endpoints is None
    assert main(["generate", "chart", "site_operator.operator", "--directory", "chart"]) == 0
    assert "name: hooks\n" in (chart / "templates" / "webhooks.yaml").read_text()
    assert main(["generate", "rbac", "site_operator.operator", "--tls-service", "sites/metrics"]) == 0
    assert manager.endpoints is None
    assert manager.webhook_endpoint is endpoint


@pytest.mark.parametrize("name", ["web.example.com", "a" * 55, "site: operator", "-site"])
def test_a_name_that_no_service_can_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
):
    """The server would refuse the Service of the metrics after it has created other objects."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "wrongly_named", raising=False)
    (tmp_path / "wrongly_named.py").write_text(f"from steersman import Manager\nmanager = Manager(name={name!r})\n")
    assert main(["generate", "chart", "wrongly_named", "--directory", "chart"]) == 1
    assert f"wrongly_named: {name!r} cannot name a Service and a label; use up to 54" in capsys.readouterr().err
    assert not (tmp_path / "chart").exists()


def test_a_manager_without_leader_election_has_one_replica(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two replicas would both act; and the policy guards its Roles in each of its namespaces."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "unelected", raising=False)
    (tmp_path / "unelected.py").write_text(UNELECTED)
    assert main(["generate", "chart", "unelected", "--directory", "chart"]) == 0
    assert yaml.safe_load((tmp_path / "chart" / "values.yaml").read_text())["replicas"] == 1
    policy = (tmp_path / "chart" / "templates" / "stored-versions.yaml").read_text()
    assert re.search(r"values:\n +- {{ .Release.Namespace \| quote }}\n +- team-a\n +- team-b\n", policy)
