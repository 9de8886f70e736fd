"""``steersman new``: a project whose tests pass and whose manifests follow from its code; sentences for names that cannot be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from steersman import ApiServer, Client, Manager
from steersman.cli import main
from steersman.manifests import load_manifests
from steersman.objects import Unstructured

GUARDED = ("--token-review", "--tls-service", "site-operator/site-operator-metrics")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.startswith(("site_operator", "class_operator"))]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as its author would type it in the project's folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=120
    )


def test_the_tests_of_a_new_project_pass_and_its_manifests_are_up_to_date(here: Path, capsys):
    assert main(["new", "site-operator", "--group", "web.example.com"]) == 0
    project = here / "site-operator"
    tests = run(project, "pytest", "-q", "-p", "no:cacheprovider")
    assert tests.returncode == 0, tests.stdout + tests.stderr
    took = float(re.search(r"passed in ([\d.]+)s", tests.stdout)[1])
    assert took < 60, "a test run of a new project takes seconds, whatever else this machine does"
    for arguments in (
        ("crds", "site_operator", "-o", "config/crds.yaml"),
        ("rbac", "site_operator.operator", *GUARDED, "-o", "config/rbac.yaml"),
    ):
        checked = run(project, "steersman", "generate", *arguments, "--check")
        assert checked.returncode == 0, checked.stderr
    assert "pytest" in capsys.readouterr().out


def test_a_project_with_webhooks(here: Path):
    """Its tests pass, its manifests are up to date, and the API server can reach the port that it registers."""
    assert main(["new", "site-operator", "--webhooks"]) == 0
    project = here / "site-operator"
    tests = run(project, "pytest", "-q", "-p", "no:cacheprovider", "tests/test_webhooks.py")
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "4 passed" in tests.stdout
    for arguments in (
        ("rbac", "site_operator.operator", *GUARDED, "-o", "config/rbac.yaml"),
        ("webhooks", "site_operator.operator", "-o", "config/webhooks.yaml"),
    ):
        checked = run(project, "steersman", "generate", *arguments, "--check")
        assert checked.returncode == 0, checked.stderr
    documents = [each for file in (project / "config").glob("*.yaml") for each in yaml.safe_load_all(file.read_text())]
    named = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    service = named["Service", "site-operator-webhooks"]["spec"]
    pod = named["Deployment", "site-operator"]["spec"]["template"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    (port,) = (each["targetPort"] for each in service["ports"])
    assert port in {each["containerPort"] for each in pod["spec"]["containers"][0]["ports"]}
    ingress = named["NetworkPolicy", "site-operator"]["spec"]["ingress"]
    assert {"protocol": "TCP", "port": port} in ingress[1]["ports"]
    assert "from" not in ingress[1]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        (webhook,) = named[kind, "site-operator"]["webhooks"]
        assert webhook["clientConfig"]["service"]["name"] == "site-operator-webhooks"
    assert "steersman[webhooks]" in (project / "pyproject.toml").read_text()


def test_a_project_with_a_chart(here: Path):
    """CI finds the chart up to date, and notices when a change of the code needs another one."""
    assert main(["new", "site-operator", "--chart"]) == 0
    project = here / "site-operator"
    steps = yaml.safe_load((project / ".github/workflows/ci.yaml").read_text())["jobs"]["test"]["steps"]
    (check,) = (step["run"] for step in steps if "generate chart" in step.get("run", ""))
    assert check.removesuffix(" --check") in (project / "README.md").read_text()
    assert run(project, *check.split()).returncode == 0
    resources = project / "site_operator/resources.py"
    resources.write_text(resources.read_text().replace("    image:", "    tls: bool = False\n    image:", 1))
    outdated = run(project, *check.split())
    assert (outdated.returncode, "chart/crds/sites.apps.example.com.yaml differs" in outdated.stderr) == (1, True)


def test_a_test_that_forgets_an_await_fails(here: Path):
    assert main(["new", "site-operator"]) == 0
    forgets = "async def test_it(control_plane):\n    control_plane.client.list(object)\n"
    (here / "site-operator/tests/test_forgetful.py").write_text(forgets)
    tests = run(here / "site-operator", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_forgetful.py")
    assert tests.returncode == 1, tests.stdout + tests.stderr
    assert "was never awaited" in tests.stdout


def test_what_is_deployed_fits_together(here: Path):
    assert main(["new", "site-operator"]) == 0
    config = here / "site-operator/config"
    deployment = yaml.safe_load((config / "deployment.yaml").read_text())
    rbac = {each["kind"]: each for each in yaml.safe_load_all((config / "rbac.yaml").read_text())}
    crd = yaml.safe_load((config / "crds.yaml").read_text())
    example = yaml.safe_load((config / "example.yaml").read_text())
    account = rbac["ServiceAccount"]["metadata"]
    pod = deployment["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], deployment["metadata"]["namespace"]) == (account["name"], account["namespace"])
    assert rbac["ClusterRoleBinding"]["subjects"][0]["namespace"] == account["namespace"]
    assert example["apiVersion"] == f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}"
    assert (here / "site-operator/Dockerfile").read_text().count("site_operator.operator") == 1
    assert rbac["Role"]["metadata"] == {"name": "site-operator-leader", "namespace": "site-operator"}


def test_metrics_are_guarded_from_the_first_day(here: Path):
    """A new operator would otherwise show its metrics, and its debug page, to every Pod of the cluster."""
    assert main(["new", "site-operator"]) == 0
    project, config = here / "site-operator", here / "site-operator/config"
    documents = [each for file in config.glob("*.yaml") for each in yaml.safe_load_all(file.read_text())]
    named = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    rules = named["ClusterRole", "site-operator-token-review"]["rules"]
    assert {(rule["apiGroups"][0], *rule["resources"], *rule["verbs"]) for rule in rules} == {
        ("authentication.k8s.io", "tokenreviews", "create"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
    }
    reader = named["ClusterRole", "site-operator-metrics-reader"]
    assert reader["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    pod = named["Deployment", "site-operator"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["args"][-2:] == ["=".join(GUARDED[1:]), GUARDED[0]]
    assert {container[probe]["httpGet"]["scheme"] for probe in ("livenessProbe", "readinessProbe")} == {"HTTPS"}
    # the operator makes its certificates itself, for the Service that Prometheus reads
    secrets = [rule for rule in named["Role", "site-operator-leader"]["rules"] if rule["resources"] == ["secrets"]]
    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in secrets] == [
        (None, ["create"]),
        (["site-operator-metrics-tls"], ["get", "update"]),
    ]
    assert "openssl" not in (project / "README.md").read_text()
    policy = named["NetworkPolicy", "site-operator"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert (policy["policyTypes"], policy["ingress"][0]["ports"][0]["port"]) == (["Ingress", "Egress"], 8443)
    assert named["Service", "site-operator-metrics"]["spec"]["selector"] == policy["podSelector"]["matchLabels"]
    readme = (project / "README.md").read_text()
    assert "## Pin images by digest" in readme
    assert "{{index .RepoDigests 0}}" in readme


def test_the_workflow_is_pinned_and_may_only_read(here: Path):
    """A moved tag of an action would otherwise run with the rights of the repository's token."""
    assert main(["new", "site-operator"]) == 0
    text = (here / "site-operator/.github/workflows/ci.yaml").read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert "permissions" not in workflow["jobs"]["test"]
    used = [line for line in text.splitlines() if "uses:" in line]
    assert len(used) == 2
    for line in used:
        assert re.search(r"uses: actions/[a-z-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line


def test_a_pod_has_the_time_that_its_manager_takes_to_stop(here: Path):
    """The kubelet would otherwise kill it while reconciles end, and the Lease would not be released."""
    assert main(["new", "site-operator"]) == 0
    project = here / "site-operator"
    pod = yaml.safe_load((project / "config/deployment.yaml").read_text())["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == Manager().termination_seconds
    operator = project / "site_operator/operator.py"
    operator.write_text(operator.read_text().replace("leader=", "grace=60.0, leader="))
    tests = run(project, "pytest", "-q", "-p", "no:cacheprovider", "-k", "time_to_stop")
    assert "1 failed" in tests.stdout
    assert "terminationGracePeriodSeconds: 70" in tests.stdout


def test_an_operator_reaches_the_api_server_of_common_distributions(here: Path):
    assert main(["new", "site-operator"]) == 0
    policy = yaml.safe_load((here / "site-operator/config/network-policy.yaml").read_text())
    dns, server = policy["spec"]["egress"]
    assert {each["port"] for each in dns["ports"]} == {53}
    assert [each["port"] for each in server["ports"]] == [443, 6443, 8443, 16443]
    assert {each["protocol"] for each in server["ports"]} == {"TCP"}


async def test_a_server_takes_what_is_deployed_without_a_warning(here: Path):
    assert main(["new", "site-operator", "--webhooks"]) == 0
    async with ApiServer(authorizer="rbac") as server, Client(server.transport(), field_manager="tests") as client:
        await client.create(
            Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "site-operator"}})
        )
        for file in ("crds", "rbac", "network-policy", "metrics", "deployment", "example", "webhooks"):
            for each in load_manifests((here / f"site-operator/config/{file}.yaml").read_bytes(), file=file):
                await client.create(each, field_validation="Strict")


def test_kinds_whose_names_are_words_of_python_are_fine(here: Path):
    assert main(["new", "class-operator"]) == 0
    assert "def children_of(class_: Class) ->" in (here / "class-operator/class_operator/operator.py").read_text()


@pytest.mark.parametrize("name", ["client", "operator", "example"])
def test_a_kind_hides_no_variable_of_the_project(here: Path, name: str):
    """mypy of a new project would otherwise meet two types under one name."""
    assert main(["new", f"{name}-controller", "--kind", name.capitalize()]) == 0
    tests = (here / f"{name}-controller/tests/test_operator.py").read_text()
    assert f"def ready({name}_: {name.capitalize()}) -> Condition:" in tests


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["Site Operator"],
            "'Site Operator' is not a valid project name: use up to 54 lower case letters, digits and -, such as site-operator",
        ),
        (
            ["a" * 55],
            f"'{'a' * 55}' is not a valid project name: use up to 54 lower case letters, digits and -, such as site-operator",
        ),
        (
            ["test-operator"],
            "pytest would collect the package test_operator of test-operator as tests; choose a name without test- or -test",
        ),
        (["json"], "the Python package of json would be json, which is taken; choose another name"),
        (
            ["blog", "--kind", "blog"],
            "'blog' is not a valid kind: write capitalized words, such as --kind WebSite",
        ),
        (
            ["deployment-operator"],
            "the operator's code already uses the name Deployment; choose another kind with --kind",
        ),
        (
            ["resource-operator"],
            "the operator's code already uses the name Resource; choose another kind with --kind",
        ),
        (["none-operator"], "None is a Python keyword; choose another kind with --kind"),
        (
            ["blog", "--group", "web"],
            "'web' is not a valid group: write a domain of yours, such as --group web.example.com",
        ),
    ],
)
def test_names_that_cannot_be_are_refused_in_a_sentence(here: Path, capsys, arguments, words):
    assert main(["new", *arguments]) == 2
    assert capsys.readouterr().err == f"steersman: {words}\n"
    assert list(here.iterdir()) == []


def test_nothing_that_is_there_is_overwritten(here: Path, capsys):
    (here / "site-operator").mkdir()
    (here / "site-operator/notes.txt").write_text("mine")
    assert main(["new", "site-operator"]) == 1
    assert capsys.readouterr().err == (
        "steersman: site-operator already exists; choose another name, or move it away\n"
    )
    assert [each.name for each in (here / "site-operator").iterdir()] == ["notes.txt"]
