"""The Secrets that a Pod uses, and whether its service account lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items

#: The fields of volume sources that refer to a Secret.
_REFERENCES = ("secretRef", "nodePublishSecretRef")


def has_secrets(spec: Tree) -> bool:
    """Whether a Pod uses any Secret."""
    if any(secret.get("name") for secret in items(spec, "imagePullSecrets")):
        return True
    fields = ("initContainers", "containers", "ephemeralContainers")
    if any(name for field in fields for item in items(spec, field) for _, name in _of_container(item)):
        return True
    return any(_of_volume(volume) for volume in items(spec, "volumes"))


def _of_volume(volume: Tree) -> bool:
    for source in (inner(volume, name) for name in volume if name != "name"):
        if any(inner(source, field).get("name") for field in _REFERENCES) or source.get("secretName"):
            return True
        if any(inner(each, "secret").get("name") for each in items(source, "sources")):
            return True
    return False


def _of_container(container: Tree) -> Iterator[tuple[str, str]]:
    """The Secrets of a container, each with a description of its place."""
    for variable in items(container, "env"):
        reference = inner(variable, "valueFrom").get("secretKeyRef")
        if reference is not None:
            yield f"envVar {variable['name']}", reference.get("name", "")
    for source in items(container, "envFrom"):
        if source.get("secretRef") is not None:
            yield "envFrom", source["secretRef"].get("name", "")


def unlisted_secret(spec: Tree, account: Tree) -> str:
    """The message about a Secret of a new Pod that its account does not list; empty if the account lists all."""
    listed, name = _names(account, "secrets"), account["metadata"]["name"]
    for volume in items(spec, "volumes"):
        secret = volume.get("secret")
        if secret is not None and secret.get("secretName", "") not in listed:
            return f'volume with secret.secretName="{secret.get("secretName", "")}" {_not_listed(name)}'
    for field, word in (("initContainers", "init container"), ("containers", "container")):
        if why := _unlisted(items(spec, field), word, account):
            return why
    pulled = _names(account, "imagePullSecrets")
    for index, each in enumerate(items(spec, "imagePullSecrets")):
        if each.get("name", "") not in pulled:
            which = f'imagePullSecrets[{index}].name="{each.get("name", "")}"'
            return f"{which} is not allowed because service account {name} does not reference that imagePullSecret"
    return ""


def unlisted_in_ephemeral(spec: Tree, account: Tree) -> str:
    """The message about a Secret of ephemeral containers that the account does not list; empty if it lists all."""
    return _unlisted(items(spec, "ephemeralContainers"), "ephemeral container", account)


def _unlisted(containers: Iterable[Tree], word: str, account: Tree) -> str:
    listed, name = _names(account, "secrets"), account["metadata"]["name"]
    for container in containers:
        for place, secret in _of_container(container):
            if secret not in listed:
                which = f'{word} {container["name"]} with {place} referencing secret.secretName="{secret}"'
                return f"{which} {_not_listed(name)}"
    return ""


def _names(account: Tree, field: str) -> set[str]:
    return {item.get("name", "") for item in items(account, field)}


def _not_listed(account: str) -> str:
    return f"is not allowed because service account {account} does not reference that secret"
