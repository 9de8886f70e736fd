"""``steersman generate rbac``: the ServiceAccount, Roles and bindings that a manager needs, as YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from steersman.cli.console import show_data
from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import say, write_files
from steersman.cli.targets.endpoints import with_service
from steersman.cli.targets.managers import declared_manager
from steersman.golang import YamlDumper
from steersman.manager import HttpEndpoints, Manager, PermissionRule, Permissions, permissions_of, written_bindings
from steersman.objects import Tree, nearest, similar_names
from steersman.schemas.names import dns_label, dns_subdomain
from steersman.webhooks import WebhookEndpoint

_REVIEWS = (
    PermissionRule("authentication.k8s.io", ("tokenreviews",), ("create",)),
    PermissionRule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
)

_RBAC = "rbac.authorization.k8s.io"
_API = f"{_RBAC}/v1"
#: The verbs that Kubernetes checks; a misspelled one would silently grant nothing.
_VERBS = (
    *("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
    *("bind", "escalate", "impersonate", "use", "approve", "sign", "attest", "*"),
)
_GROUPS = (
    *("apps", "autoscaling", "batch", "policy", "*"),
    *(
        f"{name}.k8s.io"
        for name in (
            *("admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization"),
            *("certificates", "coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver"),
            *("metrics", "networking", "node", "rbac.authorization", "resource", "scheduling", "storage"),
            "storagemigration",
        )
    ),
)
_GROUP = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)+")

#: Verbs by group, resource and name; an empty name means all objects.
Also: TypeAlias = dict[tuple[str, str, str], tuple[str, ...]]
_HEADING = "# Written by `steersman generate rbac {target}`, from what the manager registers: generate it again, do not edit it.\n"


def generate_rbac(
    target: str,
    *,
    namespace: str | None = None,
    also: Sequence[str] = (),
    token_review: bool = False,
    tls_service: str | None = None,
    output: str | None = None,
    check: bool = False,
) -> int:
    """Write the RBAC objects for a manager; returns an exit code."""
    if check and output is None:
        raise Misuse("--check compares with a file; name the file with -o")
    beside = additional_permissions(also)
    manager = declared_manager(target)
    if not manager.name:
        raise Failure(f'{target} has no name, which the ServiceAccount needs; write Manager(name="...")')
    _check_name("the name of the manager", manager.name, dns_subdomain)
    _check_name("the namespace", namespace or manager.name, dns_label)
    text = rbac_yaml(
        manager,
        target=target,
        namespace=namespace or manager.name,
        also=beside,
        token_review=token_review,
        tls_service=tls_service,
    )
    say_what_to_bind(manager, beside)
    if output is None:
        show_data(text)
        return 0
    return write_files({Path(output): text}, check=check)


def additional_permissions(also: Iterable[str]) -> Also:
    """The permissions of several ``--also``; raises for one that grants nothing."""
    permissions: Also = {}
    for place, verbs in map(_beside, also):
        permissions[place] = (*permissions.get(place, ()), *verbs)
    return permissions


def say_what_to_bind(manager: Manager, also: Also) -> None:
    """Say which permission to add for children that grant permissions: only the function determines which roles they name."""
    written = written_bindings(manager)
    granted = {verb for (group, *_), verbs in also.items() if group == _RBAC for verb in verbs}
    if not written or granted & {"bind", "escalate", "*"}:
        return
    say(
        f"the manager writes {', '.join(written)}, and the server lets it grant only permissions that it has itself."
        f" For each role that a binding names, add --also clusterroles.{_RBAC}:NAME=bind (or roles.{_RBAC}:NAME=bind);"
        f" to write roles with further rules, add --also roles.{_RBAC}=escalate"
    )


class _Dumper(YamlDumper):
    """Writes lists of words on one line: ``verbs: [get, list, watch]``."""

    def represent_list(self, data: Any) -> Any:
        """Write lists of words on one line, lists of rules on several."""
        words = all(isinstance(each, str) for each in data)
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=words)


_Dumper.add_representer(list, _Dumper.represent_list)


def rbac_yaml(
    manager: Manager,
    *,
    target: str,
    namespace: str,
    also: Also | None = None,
    token_review: bool = False,
    tls_service: str | None = None,
    webhook_endpoint: WebhookEndpoint | None = None,
) -> str:
    """The objects as YAML; ``namespace`` is where the manager runs.

    With ``token_review``, or endpoints that have it, the manager may review tokens, and a role lets clients read
    metrics. With ``tls_service``, it may keep the certificates for this Service in a Secret. ``webhook_endpoint``
    overrides that of the manager.
    """
    endpoints = manager.endpoints
    if tls_service is not None:
        endpoints = with_service(endpoints or HttpEndpoints(), tls_service)
    needs = permissions_of(manager, also=also, endpoints=endpoints, webhook_endpoint=webhook_endpoint)
    reviews = token_review or (endpoints is not None and endpoints.token_review)
    objects = [*_documents(manager.name, namespace, needs), *(_reviewing(manager.name, namespace) if reviews else ())]
    documents = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=120)
    return _HEADING.format(target=target) + documents


def _check_name(what: str, name: str, check: Callable[[str], list[str]]) -> None:
    """Refuse a name that no ServiceAccount, Role or namespace can have."""
    if problems := check(name):
        raise Misuse(f"{what}: {name!r} cannot name the objects: {problems[0]}; write one such as site-operator")


def _documents(name: str, namespace: str, needs: Permissions) -> Iterator[Tree]:
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    if needs.namespaces:
        local = dict(needs.local_rules)
        for each in dict.fromkeys((*needs.namespaces, *local)):
            usual = needs.rules if each in needs.namespaces else ()
            yield from _granted("Role", name, each, (*usual, *local.get(each, ())), account)
        if needs.cluster_rules:
            yield from _granted("ClusterRole", name, "", needs.cluster_rules, account)
    else:
        yield from _granted("ClusterRole", name, "", needs.rules, account)
    if needs.own_rules:
        yield from _granted("Role", f"{name}-leader", namespace, needs.own_rules, account)


def _reviewing(name: str, namespace: str) -> Iterator[Tree]:
    """The roles for token review: one to ask the API server, one for clients that read metrics."""
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    yield from _granted("ClusterRole", f"{name}-token-review", "", _REVIEWS, account)
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    yield {"apiVersion": _API, "kind": "ClusterRole", "metadata": {"name": f"{name}-metrics-reader"}, "rules": [rule]}


def _granted(kind: str, name: str, namespace: str, rules: Iterable[PermissionRule], account: Tree) -> Iterator[Tree]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    yield {"apiVersion": _API, "kind": kind, "metadata": dict(metadata), "rules": [rule.tree() for rule in rules]}
    yield {
        "apiVersion": _API,
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [dict(account)],
    }


def _beside(text: str) -> tuple[tuple[str, str, str], tuple[str, ...]]:
    """Parse ``secrets=get,create``, ``jobs.batch=create`` or ``clusterroles.rbac.authorization.k8s.io:admin=bind``."""
    resource, equals, verbs = text.partition("=")
    named = tuple(filter(None, verbs.split(",")))
    if not resource or not equals or not named:
        raise Misuse(f"--also {text}: write RESOURCE[.GROUP]=VERB,... such as secrets=get,create or jobs.batch=create")
    resource, _, name = resource.partition(":")
    plural, _, group = resource.partition(".")
    for verb in named:
        if verb not in _VERBS:
            meant = nearest(verb, _VERBS)
            hint = f"did you mean {meant}?" if meant else f"the verbs are {', '.join(_VERBS)}"
            raise Misuse(f"--also {text}: {verb} is not a verb of RBAC; {hint}")
    _check_group(group, text)
    return (group, plural, name), named


def _check_group(group: str, text: str) -> None:
    """Refuse a group that no server has, which would silently grant nothing."""
    if "/" in group:
        right = text.replace("/", ":", 1)
        raise Misuse(f"--also {text}: a group has no slash; to name one object, write --also {right}")
    near = similar_names(group, _GROUPS, cutoff=0.6 if "." not in group else 0.9)
    if not group or group in _GROUPS or ("." in group and not near and _GROUP.fullmatch(group)):
        return
    hint = f"did you mean {near[0]}?" if near else 'write a domain, such as "example.com"'
    raise Misuse(f"--also {text}: there is no API group {group}; {hint}")
