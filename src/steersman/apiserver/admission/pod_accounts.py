"""Adds the service account, its token and its pull secrets to Pods, and rejects Pods whose account is missing.

Guarantees
- A Pod without an account gets the account ``default``. A controller creates that account, so the plugin waits for it
  for up to a second.
- The token is a projected volume, mounted in every container that mounts nothing else at that path.
- A mirror Pod, which a kubelet creates, has neither an account nor secrets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from steersman.aio import name_suffix
from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.admission.secret_references import has_secrets, unlisted_in_ephemeral, unlisted_secret
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.errors import unnamed
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata

_DEFAULT = "default"
_MIRROR = "kubernetes.io/config.mirror"
_VOLUME = "kube-api-access-"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_ENFORCES = "kubernetes.io/enforce-mountable-secrets"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
#: The number of lookups of the default account, and the seconds between them.
_ATTEMPTS, _INTERVAL = 10, 0.1


class PodAccounts(Plugin):
    """The plugin ServiceAccount."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE"})
    resources = frozenset({("", "pods")})

    async def admit(self, attributes: Attributes) -> None:
        """Add the account, its token and its pull secrets to a new Pod."""
        obj = attributes.obj
        if obj is None or attributes.operation != "CREATE" or attributes.subresource:
            return
        if not _is_mirror(obj):
            spec: Tree = obj.setdefault("spec", {})
            name = spec.get("serviceAccountName") or _DEFAULT
            spec["serviceAccountName"] = spec["serviceAccount"] = name
            account = await _account(attributes, name)
            if _mounts_token(spec, account):
                _mount_token(spec)
            if account.get("imagePullSecrets") and not items(spec, "imagePullSecrets"):
                spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Check the account and the secrets of a new Pod, or of new ephemeral containers."""
        obj = attributes.obj
        is_ephemeral = attributes.subresource == "ephemeralcontainers"
        if obj is None or attributes.operation != ("UPDATE" if is_ephemeral else "CREATE"):
            return
        if attributes.subresource and not is_ephemeral:
            return
        spec = inner(obj, "spec")
        if _is_mirror(obj) and not is_ephemeral:
            _validate_mirror(attributes, spec)
            return
        name = spec.get("serviceAccountName")
        if not name:
            where = f"{attributes.namespace}/{metadata(obj).get('name', '')}"
            raise attributes.refused(f"no service account specified for pod {where}")
        account = await _account(attributes, name)
        if inner(metadata(account), "annotations").get(_ENFORCES) not in _TRUE:
            return
        if is_ephemeral:
            if why := unlisted_in_ephemeral(spec, account):
                # kube-apiserver reports this as an internal error.
                raise unnamed(why)
        elif why := unlisted_secret(spec, account):
            raise attributes.refused(why)


def _is_mirror(pod: Tree) -> bool:
    return _MIRROR in inner(metadata(pod), "annotations")


def _validate_mirror(attributes: Attributes, spec: Tree) -> None:
    if spec.get("serviceAccountName"):
        raise attributes.refused("a mirror pod may not reference service accounts")
    if has_secrets(spec):
        raise attributes.refused("a mirror pod may not reference secrets")
    sources = (source for volume in items(spec, "volumes") for source in items(inner(volume, "projected"), "sources"))
    if any(source.get("serviceAccountToken") is not None for source in sources):
        raise attributes.refused("a mirror pod may not use ServiceAccountToken volume projections")


async def _account(attributes: Attributes, name: str) -> Tree:
    """The account in the Pod's namespace. Waits for a controller to create the default one."""
    for attempt in range(_ATTEMPTS if name == _DEFAULT else 1):
        if attempt:
            await asyncio.sleep(_INTERVAL)
        record = await attributes.context.read("", "serviceaccounts", attributes.namespace, name)
        if record is not None:
            return decode_stored(record)
    where = f"{attributes.namespace}/{name}"
    raise attributes.refused(f'error looking up service account {where}: serviceaccount "{name}" not found')


def _mounts_token(spec: Tree, account: Tree) -> bool:
    """Whether to mount the token: as the Pod says or, by default, as the account says."""
    for each in (spec, account):
        if each.get("automountServiceAccountToken") is not None:
            return bool(each["automountServiceAccountToken"])
    return True


def _mount_token(spec: Tree) -> None:
    volumes = items(spec, "volumes")
    existing = next((volume["name"] for volume in volumes if str(volume.get("name")).startswith(_VOLUME)), None)
    name = existing or f"{_VOLUME}{name_suffix()}"
    without = list(_without_mount((*items(spec, "initContainers"), *items(spec, "containers"))))
    for container in without:
        mount = {"name": name, "readOnly": True, "mountPath": _MOUNT_PATH}
        container["volumeMounts"] = [*items(container, "volumeMounts"), mount]
    if without and existing is None:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token()}]


def _without_mount(containers: Iterable[Tree]) -> Iterable[Tree]:
    for container in containers:
        if all(mount.get("mountPath") != _MOUNT_PATH for mount in items(container, "volumeMounts")):
            yield container


def _token() -> dict[str, Any]:
    """The volume with the token, the certificate of the server and the name of the namespace."""
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 0o644,
    }
