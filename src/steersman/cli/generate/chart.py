"""``steersman generate chart``: a Helm chart of a manager, with everything that it needs in a cluster.

Guarantees
- The objects are those of ``steersman generate`` and `steersman new`: helm fills in the namespace and the values, and
  with the default values nothing else differs. The chart adds its two checks and a PodDisruptionBudget.
- helm never upgrades ``crds/``: a template refuses a release whose definitions are not installed yet.
- A release that cannot read the stored versions of objects is refused by the server, also in a rollback.
- No step of helm deletes a definition or an object of a user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path

import yaml

from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import say, write_files
from steersman.cli.generate.chart_template import NAMESPACE, ChartTemplate
from steersman.cli.generate.chart_values import Values, chart_values, values_schema, values_yaml
from steersman.cli.generate.crds import crds_yaml
from steersman.cli.generate.rbac import Also, additional_permissions, rbac_yaml, say_what_to_bind
from steersman.cli.generate.webhooks import endpoint_of, webhooks_yaml
from steersman.cli.generate.workload import NAME, Workload
from steersman.cli.targets.managers import declared_manager
from steersman.golang import YamlDumper
from steersman.manager import Manager
from steersman.objects import Tree

#: The annotation of Pods, their account and its roles with the versions that the release can read, as ``PLURAL.GROUP/VERSION``.
READABLE = "steersman.dev/readable-versions"
_ROLES = {"ClusterRole": "clusterroles", "Role": "roles"}
_SCHEDULING = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName")
_HEADING = "# Written by `steersman generate chart {target}`: generate it again, do not edit it.\n"
#: As helm requires it: three numbers, and what may follow them.
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
#: ValidatingAdmissionPolicy is stable from here on.
_KUBERNETES = ">=1.30.0-0"


def generate_chart(
    target: str,
    *,
    directory: str,
    image: str | None = None,
    version: str = "0.1.0",
    also: Sequence[str] = (),
    check: bool = False,
) -> int:
    """Write the chart of a manager; returns an exit code."""
    if not _VERSION.fullmatch(version):
        raise Misuse(f"--version {version}: a chart has a version of three numbers, such as 1.4.0")
    beside = additional_permissions(also)
    manager = declared_manager(target)
    if not manager.name:
        raise Failure(f'{target} has no name, which its objects need; write Manager(name="...")')
    if not NAME.fullmatch(manager.name):
        raise Failure(
            f"{target}: {manager.name!r} cannot name a Service and a label; use up to 54 lower case letters, digits and -,"
            ' such as Manager(name="site-operator")'
        )
    say_what_to_bind(manager, beside)
    files = chart_files(manager, target=target, image=image or "", version=version, also=beside)
    folder = Path(directory)
    present = [file for place in ("crds", "templates") for file in sorted((folder / place).glob("*"))]
    leftover = [file for file in present if file.relative_to(folder).as_posix() not in files]
    for file in leftover:
        say(f"{file} is no longer part of the chart, and helm would install it; remove it")
    code = write_files({folder / place: text for place, text in files.items()}, check=check)
    return 1 if check and leftover else code


def chart_files(
    manager: Manager, *, target: str, image: str = "", version: str = "0.1.0", also: Also | None = None
) -> dict[str, str]:
    """The files of a chart by their path in it."""
    definitions = _definitions(manager, target)
    template, workload = ChartTemplate(), Workload.of(manager, namespace=NAMESPACE, image=image)
    service = workload.webhook_service
    rbac = rbac_yaml(
        manager,
        target=target,
        namespace=NAMESPACE,
        also=also,
        token_review=True,
        tls_service=workload.metrics_service,
        webhook_endpoint=endpoint_of(manager, target=target, service=service) if service else None,
    )
    trees = {name: _trees(text) for name, text in {**workload.manifests(), "rbac": rbac}.items()}
    if manager.webhooks.hooks:
        trees["webhooks"] = _trees(webhooks_yaml(manager, target=target, service=service or None))
    values = _values(manager, trees, workload.image)
    readable = " ".join(
        f"{name}/{each['name']}" for name, (_, crd) in definitions.items() for each in crd["spec"]["versions"]
    )
    _open_deployment(template, trees["deployment"][0])
    _open_network_policy(template, trees["network-policy"][0])
    _annotate(template, trees["deployment"][0]["spec"]["template"], readable, ".Values.podAnnotations")
    _annotate(template, trees["rbac"][0], readable, ".Values.serviceAccount.annotations")
    roles = [tree for tree in trees["rbac"] if tree["kind"] in _ROLES]
    for tree in roles:
        _annotate(template, tree, readable)
    trees["disruption-budget"] = [_disruption_budget(template, trees["deployment"][0])]
    conditions = {
        "network-policy": ".Values.networkPolicy.enabled",
        "stored-versions": ".Values.crds.guard",
        # the budget of a single replica would block every drain of its node
        "disruption-budget": "and .Values.podDisruptionBudget.enabled (gt (int .Values.replicas) 1)",
    }
    own = {"templates/NOTES.txt": "notes.txt"}
    if definitions:
        trees["stored-versions"] = _guard(manager.name, roles, definitions)
        own["templates/check.yaml"] = "check.yaml.txt"
    heading = _HEADING.format(target=target)
    return {
        "Chart.yaml": heading + _chart_yaml(manager.name, version),
        "values.yaml": heading + values_yaml(values),
        "values.schema.json": values_schema(values),
        **{f"crds/{name}.yaml": text for name, (text, _) in definitions.items()},
        **{
            f"templates/{name}.yaml": heading + template.text(each, only_if=conditions.get(name, ""))
            for name, each in trees.items()
        },
        **{place: _text(name).replace("@name@", manager.name) for place, name in own.items()},
    }


def _definitions(manager: Manager, target: str) -> dict[str, tuple[str, Tree]]:
    """The definitions of the manager's kinds by name, as text and as tree.

    helm does not fill in anything in ``crds/``. The Service of a conversion has the namespace of the manager's name, until
    the running manager sets its own.
    """
    if not manager.own_kinds:
        return {}
    service = Workload.of(manager, namespace=manager.name).webhook_service
    text = crds_yaml(manager.own_kinds, {target: manager}, service=service or None)
    parts = [(part, _trees(part)[0]) for part in re.split(r"^(?=---\n)", text, flags=re.MULTILINE) if part.strip()]
    return {tree["metadata"]["name"]: (part, tree) for part, tree in parts}


def _values(manager: Manager, trees: Mapping[str, list[Tree]], image: str) -> Values:
    """The values of the chart, with what the manifests say as their defaults."""
    spec, policy = trees["deployment"][0]["spec"], trees["network-policy"][0]["spec"]
    elects = manager.statistics(keys=0).leader is not None or not manager.blueprints
    return chart_values(
        image=image,
        # without leader election, two replicas would both act
        replicas=spec["replicas"] if elects else 1,
        resources=spec["template"]["spec"]["containers"][0]["resources"],
        security=spec["template"]["spec"]["securityContext"],
        metrics_from=policy["ingress"][0]["from"],
        ports=[each["port"] for each in policy["egress"][1]["ports"]],
    )


def _annotate(template: ChartTemplate, tree: Tree, readable: str, values: str = "") -> None:
    """Add the versions that the release can read, if it has definitions, and the annotations of a value."""
    metadata: Tree = tree["metadata"]
    if readable:
        metadata["annotations"] = {READABLE: readable}
    if values and readable:
        template.add_entries(metadata["annotations"], values)
    elif values:
        template.add_optional(metadata, "annotations", values)


def _open_deployment(template: ChartTemplate, tree: Tree) -> None:
    """Replace what values decide in the Deployment."""
    spec = tree["spec"]["template"]["spec"]
    container = spec["containers"][0]
    tree["spec"]["replicas"] = template.value("int .Values.replicas")
    container["image"] = template.value(
        'printf (ternary "%s:%s" "%s@%s" (empty .Values.image.digest)) .Values.image.repository'
        ' (.Values.image.digest | default .Values.image.tag | default (.Chart.AppVersion | replace "+" "_")) | quote'
    )
    container["resources"] = template.value("toJson .Values.resources")
    spec["securityContext"] = template.value("toJson .Values.podSecurityContext")
    template.add_entries(tree["spec"]["template"]["metadata"]["labels"], ".Values.podLabels")
    template.add_items(container["args"], ".Values.args", "{{ . | quote }}")
    template.add_optional(container, "imagePullPolicy", ".Values.image.pullPolicy")
    for name in ("env", "volumeMounts"):
        template.add_optional(container, name, f".Values.{name}")
    for name in ("imagePullSecrets", "volumes", *_SCHEDULING):
        template.add_optional(spec, name, f".Values.{name}")


def _disruption_budget(template: ChartTemplate, deployment: Tree) -> Tree:
    """The PodDisruptionBudget of the Deployment's Pods: a drain of nodes leaves a replica, and no broken one holds it up."""
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "maxUnavailable": template.value("toJson .Values.podDisruptionBudget.maxUnavailable"),
            "selector": deployment["spec"]["selector"],
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _open_network_policy(template: ChartTemplate, tree: Tree) -> None:
    """Replace what values decide in the NetworkPolicy."""
    spec = tree["spec"]
    # a rule with an empty `from` would admit every client
    rule = f"- {{from: {{{{ toJson . }}}}, ports: {json.dumps(spec['ingress'][0]['ports'])}}}"
    spec["ingress"][0] = template.lines("{{- with .Values.networkPolicy.metricsFrom }}", rule, "{{- end }}")
    spec["egress"][1]["ports"] = []
    template.add_items(
        spec["egress"][1]["ports"], ".Values.networkPolicy.apiServerPorts", "{protocol: TCP, port: {{ int . }}}"
    )
    template.add_items(spec["egress"], ".Values.networkPolicy.egress", "{{ toJson . }}")


def _guard(name: str, roles: Iterable[Tree], definitions: Iterable[str]) -> list[Tree]:
    """The policy that refuses a release which cannot read the stored versions of objects, and its bindings.

    helm goes on after a refusal: the roles are guarded too, so that the running release keeps its permissions.
    Objects of the running release can be changed as long as they keep their versions: newer definitions are installed
    first, and the release must still restart, and be deleted, until it is upgraded.
    """
    api, own = "admissionregistration.k8s.io/v1", f"{name}-stored-versions"
    unreadable = (
        "params.status.storedVersions.filter(version,"
        " !((params.metadata.name + '/' + version) in variables.readable.split(' ')))"
    )
    message = (
        "'objects of ' + params.metadata.name + ' are stored in ' + variables.unreadable.join(', ') + ', which this release"
        " cannot read: deploy a release that can, or first store them in a version of this one'"
    )
    policy: Tree = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": own},
        "spec": {
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
            "matchConstraints": _guarded(name, roles),
            "variables": [
                {"name": "readable", "expression": _readable_in("object")},
                {"name": "before", "expression": f"oldObject == null ? '' : {_readable_in('oldObject')}"},
                {"name": "unreadable", "expression": unreadable},
            ],
            "validations": [
                {
                    "expression": "variables.readable in ['', variables.before] || variables.unreadable.size() == 0",
                    "messageExpression": message,
                }
            ],
        },
    }
    bindings: list[Tree] = [
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": f"{own}.{definition}"},
            "spec": {
                "policyName": own,
                "paramRef": {"name": definition, "parameterNotFoundAction": "Allow"},
                "validationActions": ["Deny"],
            },
        }
        for definition in definitions
    ]
    return [policy, *bindings]


def _guarded(name: str, roles: Iterable[Tree]) -> Tree:
    """The objects of a release that the policy guards, in all namespaces of its roles."""
    guarded = {("apps", "deployments"): {name: None}, ("", "serviceaccounts"): {name: None}}
    namespaces = {NAMESPACE: None}
    for role in roles:
        place = ("rbac.authorization.k8s.io", _ROLES[role["kind"]])
        guarded.setdefault(place, {})[role["metadata"]["name"]] = None
        if "namespace" in role["metadata"]:
            namespaces[role["metadata"]["namespace"]] = None
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "resources": [resource],
            "operations": ["CREATE", "UPDATE"],
            "resourceNames": list(names),
        }
        for (group, resource), names in guarded.items()
    ]
    own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
    return {"namespaceSelector": {"matchExpressions": [own]}, "resourceRules": rules}


def _readable_in(name: str) -> str:
    """An expression of CEL for the versions that the release of an object can read."""
    metadata = f"(has({name}.spec) && has({name}.spec.template) ? {name}.spec.template.metadata : {name}.metadata)"
    return f"{metadata}.?annotations[?'{READABLE}'].orValue('')"


def _chart_yaml(name: str, version: str) -> str:
    tree = {
        "apiVersion": "v2",
        "name": name,
        "description": f"The operator {name}",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": _KUBERNETES,
    }
    dumped: str = yaml.dump(tree, Dumper=YamlDumper, sort_keys=False)
    return dumped


def _trees(text: str) -> list[Tree]:
    return list(yaml.safe_load_all(text))


def _text(name: str) -> str:
    return resources.files("steersman.cli").joinpath("chart", name).read_text(encoding="utf-8")
