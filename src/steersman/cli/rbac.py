"""``steersman generate rbac``: the ServiceAccount, Roles and bindings that a manager needs, as YAML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import write_files
from steersman.cli.managers import find_manager
from steersman.cli.modules import load_module, look_here_first, module_and_name
from steersman.manager import Manager, PermissionRule, Permissions, permissions_of

Tree = dict[str, Any]

_API = "rbac.authorization.k8s.io/v1"
_HEADING = "# Written by `steersman generate rbac {target}`, from what the manager registers: generate it again, do not edit it.\n"


def generate_rbac(
    target: str,
    *,
    namespace: str | None = None,
    also: Sequence[str] = (),
    output: str | None = None,
    check: bool = False,
) -> int:
    """Write what a manager needs of RBAC; the result is an exit code."""
    if check and output is None:
        raise Misuse("--check compares with a file; name it with -o")
    module, attribute = module_and_name(target, "manager", nothing="its only manager")
    beside = dict(_beside(text) for text in also)
    look_here_first()
    manager = find_manager(load_module(module), attribute)
    if not isinstance(manager, Manager):
        raise Failure(f"{target} makes its manager of a client, which there is none of here; name a Manager")
    if not manager.name:
        raise Failure(f'{target} has no name, and the ServiceAccount needs one; write Manager(name="...")')
    text = rbac_yaml(manager, target=target, namespace=namespace or manager.name, also=beside)
    if output is None:
        print(text, end="")
        return 0
    return write_files({Path(output): text}, check=check)


class _Dumper(yaml.SafeDumper):
    """Writes lists of words on one line: ``verbs: [get, list, watch]``."""

    def represent_list(self, data: Any) -> Any:
        """A list of words is read at a glance, one of rules is not."""
        words = all(isinstance(each, str) for each in data)
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=words)


_Dumper.add_representer(list, _Dumper.represent_list)


def rbac_yaml(
    manager: Manager, *, target: str, namespace: str, also: dict[tuple[str, str], tuple[str, ...]] | None = None
) -> str:
    """The documents as YAML; ``namespace`` is where the manager runs."""
    needs = permissions_of(manager, also=also)
    documents = yaml.dump_all(
        _documents(manager.name, namespace, needs), Dumper=_Dumper, sort_keys=False, explicit_start=True, width=120
    )
    return _HEADING.format(target=target) + documents


def _documents(name: str, namespace: str, needs: Permissions) -> Iterator[Tree]:
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    if needs.namespaces:
        for each in needs.namespaces:
            yield from _granted("Role", name, each, needs.rules, account)
        if needs.cluster_rules:
            yield from _granted("ClusterRole", name, "", needs.cluster_rules, account)
    else:
        yield from _granted("ClusterRole", name, "", needs.rules, account)
    if needs.own_rules:
        yield from _granted("Role", f"{name}-leader", namespace, needs.own_rules, account)


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


def _beside(text: str) -> tuple[tuple[str, str], tuple[str, ...]]:
    """``secrets=get,create`` or ``jobs.batch=create``."""
    resource, equals, verbs = text.partition("=")
    named = tuple(filter(None, verbs.split(",")))
    if not resource or not equals or not named:
        raise Misuse(f"--also {text}: write RESOURCE[.GROUP]=VERB,... such as secrets=get,create or jobs.batch=create")
    plural, _, group = resource.partition(".")
    return (group, plural), named
