"""``steersman generate webhooks``: writes the objects that register a manager's webhooks with the API server, as YAML.

It writes no CRD: ``steersman generate crds`` writes each CRD once, with its conversion.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import yaml

from steersman.cli.console import show_data
from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import write_files
from steersman.cli.targets.managers import declared_manager
from steersman.golang import YamlDumper
from steersman.manager import Manager
from steersman.objects import Key, Tree
from steersman.webhooks import WebhookEndpoint, WebhookRegistration

_HEADING = "# Written by `steersman generate webhooks {target}`, from the manager's handlers: generate it again, do not edit it.\n"


def generate_webhooks(
    target: str, *, service: str | None = None, output: str | None = None, check: bool = False
) -> int:
    """Write the Service and the registration objects of a manager's webhooks; returns an exit code."""
    if check and output is None:
        raise Misuse("--check compares with a file; name the file with -o")
    text = webhooks_yaml(declared_manager(target), target=target, service=service)
    if output is None:
        show_data(text)
        return 0
    return write_files({Path(output): text}, check=check)


def webhooks_yaml(manager: Manager, *, target: str, service: str | None = None) -> str:
    """The objects as YAML, without a caBundle, which the running manager sets."""
    if not manager.webhooks.hooks:
        raise Failure(
            f"{target} has no webhooks; pass a function with @mutates(KIND) or @validates(KIND) to manager.add(...)"
        )
    if not manager.name:
        raise Failure(f'{target} has no name, which its registration objects need; write Manager(name="...")')
    endpoint = endpoint_of(manager, target=target, service=service)
    objects = [
        *([_service(manager.name, endpoint)] if endpoint.service else []),
        *WebhookRegistration(manager.webhooks.hooks, endpoint, name=manager.name).configurations(),
    ]
    documents: str = yaml.dump_all(objects, Dumper=YamlDumper, sort_keys=False, explicit_start=True, width=120)
    return _HEADING.format(target=target) + documents


def endpoint_of(manager: Manager, *, target: str, service: str | None = None) -> WebhookEndpoint:
    """The address at which the API server calls a manager's webhooks; ``service`` overrides the manager's own."""
    endpoint = manager.webhook_endpoint or WebhookEndpoint()
    try:
        endpoint = replace(endpoint, service=service, url="") if service else endpoint
    except ValueError as error:
        raise Misuse(f"--service {service}: {error}") from None
    if not endpoint.service and not endpoint.url:
        raise Failure(
            f"{target} has no address for its webhooks; write"
            ' Manager(webhook_endpoint=WebhookEndpoint(service="NAMESPACE/NAME")), or pass --service NAMESPACE/NAME'
        )
    return endpoint


def _service(name: str, endpoint: WebhookEndpoint) -> Tree:
    namespace, service = Key.parse(endpoint.service)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service, "namespace": namespace},
        "spec": {
            "selector": {"app.kubernetes.io/name": name},
            "ports": [{"name": "webhooks", "port": endpoint.service_port, "targetPort": endpoint.port}],
        },
    }
