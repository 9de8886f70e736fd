"""The volume sources that Pods and PersistentVolumes share, and those that only PersistentVolumes have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.apiserver.registry.builtin.types.file_paths import no_backsteps
from steersman.apiserver.registry.builtin.types.formats import in_range
from steersman.apiserver.registry.builtin.types.trees import Tree, items
from steersman.objects.field_problems import (
    FieldProblem,
    each,
    invalid,
    required,
    too_long,
    unsupported,
)
from steersman.schemas.names import dns_label, dns_subdomain

Source = Mapping[str, Any]
Judge = Callable[[str, Source], list[FieldProblem]]

_HOST_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_DRIVER_MAX, _TENANT_MAX = 63, 64
_CACHING = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED_URI = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_URI = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_REGISTRY = "must be a host:port pair or multiple pairs separated by commas"
_INITIATORS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$", re.ASCII),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}


def needs(*names: str) -> Judge:
    """A check that a source has all these fields."""
    return lambda path, source: [required(f"{path}.{name}") for name in names if not source.get(name)]


def host_path(path: str, source: Source) -> list[FieldProblem]:
    """Check a path on the node."""
    if not source.get("path"):
        return [required(f"{path}.path")]
    problems = no_backsteps(f"{path}.path", source["path"])
    type_ = source.get("type")
    if type_ is not None and type_ not in _HOST_PATHS:
        problems.append(unsupported(f"{path}.type", type_, _HOST_PATHS))
    return problems


def nfs(path: str, source: Source) -> list[FieldProblem]:
    """Check a directory on an NFS server."""
    problems = needs("server", "path")(path, source)
    where = source.get("path", "")
    is_absolute = where.startswith("/")
    return problems if is_absolute else [*problems, invalid(f"{path}.path", where, "must be an absolute path")]


def driver_name(path: str, name: str, *, words: str = "") -> list[FieldProblem]:
    """Check the name of a CSI driver; ``words`` report its form otherwise."""
    if not name:
        return [required(path)]
    problems = [too_long(path, _DRIVER_MAX)] if len(name.encode()) > _DRIVER_MAX else []
    said = dns_subdomain(name.lower())
    return problems + each(path, name, [words if words and "RFC 1123" in one else one for one in said])


def _local(path: str, source: Source) -> list[FieldProblem]:
    return no_backsteps(f"{path}.path", source["path"]) if source.get("path") else [required(f"{path}.path")]


def _disk(name: str) -> Judge:
    def judge(path: str, source: Source) -> list[FieldProblem]:
        partition = source.get("partition", 0)
        problems = needs(name)(path, source)
        # kube-apiserver accepts 0, but its message says 1 to 255.
        return problems + (
            each(f"{path}.partition", partition, in_range(0, 1, 255)) if not 0 <= partition <= 255 else []
        )

    return judge


def _flocker(path: str, source: Source) -> list[FieldProblem]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    problems = [] if name or uuid else [required(path, "one of datasetName and datasetUUID is required")]
    if name and uuid:
        problems.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    return [*problems, invalid(f"{path}.datasetName", name, "must not contain '/'")] if "/" in name else problems


def _quobyte(path: str, source: Source) -> list[FieldProblem]:
    registry = source.get("registry", "")
    problems: list[FieldProblem] = []
    if not registry:
        problems.append(required(f"{path}.registry", _REGISTRY))
    elif len(source.get("tenant", "")) > _TENANT_MAX:
        detail = "must be a UUID and may not exceed a length of 64 characters"
        problems.append(required(f"{path}.tenant", detail))
    else:
        wrong = [pair for pair in registry.split(",") if not re.fullmatch(r"(\[[^\[\]]*\]|[^\[\]:]*):[^\[\]:]*", pair)]
        problems += [invalid(f"{path}.registry", registry, _REGISTRY) for _ in wrong]
    return problems + needs("volume")(path, source)


def _fibre_channel(path: str, source: Source) -> list[FieldProblem]:
    names, lun = items(source, "targetWWNs"), source.get("lun")
    problems: list[FieldProblem] = []
    if not names and not source.get("wwids"):
        detail = "must specify either targetWWNs or wwids, but not both"
        problems.append(required(f"{path}.targetWWNs", detail))
    if names and source.get("wwids"):
        detail = "targetWWNs and wwids can not be specified simultaneously"
        problems.append(invalid(f"{path}.targetWWNs", names, detail))
    if names and lun is None:
        problems.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif names:
        problems += each(f"{path}.lun", lun, in_range(lun or 0, 0, 255))
    return problems


def _azure_disk(path: str, source: Source) -> list[FieldProblem]:
    problems = needs("diskName", "diskURI")(path, source)
    mode, kind, uri = source.get("cachingMode"), source.get("kind"), source.get("diskURI", "")
    if mode is not None and mode not in _CACHING:
        problems.append(unsupported(f"{path}.cachingMode", mode, _CACHING))
    if kind is not None and kind not in _DISK_KINDS:
        problems.append(unsupported(f"{path}.kind", kind, _DISK_KINDS))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        problems.append(unsupported(f"{path}.diskURI", uri, (_MANAGED_URI,)))
    elif kind not in {None, "Managed"} and not uri.startswith("https://"):
        problems.append(unsupported(f"{path}.diskURI", uri, (_BLOB_URI,)))
    return problems


def _iscsi(path: str, source: Source) -> list[FieldProblem]:
    problems = needs("targetPortal")(path, source)
    name, initiator = source.get("iqn", ""), source.get("initiatorName")
    if not name:
        problems.append(required(f"{path}.iqn"))
    elif not _is_initiator(name):
        problems.append(invalid(f"{path}.iqn", name, "must be valid format"))
    problems += each(f"{path}.lun", source.get("lun", 0), in_range(source.get("lun", 0), 0, 255))
    secret = source.get("secretRef")
    if secret is None and (source.get("chapAuthDiscovery") or source.get("chapAuthSession")):
        problems.append(required(f"{path}.secretRef"))
    if secret is not None and not secret.get("name"):
        problems.append(required(f"{path}.secretRef.name"))
    if initiator is not None and not _is_initiator(initiator):
        problems.append(invalid(f"{path}.initiatorname", initiator, "must be valid format"))
    return problems


def _is_initiator(name: str) -> bool:
    form = _INITIATORS.get(name[:3])
    return form is not None and form.search(name) is not None


def _csi(path: str, source: Source) -> list[FieldProblem]:
    problems = driver_name(f"{path}.driver", source.get("driver", "")) + needs("volumeHandle")(path, source)
    for name in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"):
        secret: Tree | None = source.get(f"{name}SecretRef")
        if secret is not None:
            problems += _secret(f"{path}.{name}SecretRef", secret)
    return problems


def _secret(path: str, secret: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for name, judge in (("name", dns_subdomain), ("namespace", dns_label)):
        value: str = secret.get(name, "")
        problems += each(f"{path}.{name}", value, judge(value)) if value else [required(f"{path}.{name}")]
    return problems


def _azure_file(path: str, source: Source) -> list[FieldProblem]:
    problems = needs("secretName", "shareName")(path, source)
    return [*problems, required(f"{path}.secretNamespace")] if source.get("secretNamespace") == "" else problems


def _glusterfs(path: str, source: Source) -> list[FieldProblem]:
    problems = needs("endpoints", "path")(path, source)
    namespace = source.get("endpointsNamespace")
    if namespace is None:
        return problems
    detail = "if the endpointnamespace is set, it must be a valid namespace name"
    return problems + each(f"{path}.endpointsNamespace", namespace, dns_label(namespace) if namespace else [detail])


def _with_secret(*names: str) -> Judge:
    def judge(path: str, source: Source) -> list[FieldProblem]:
        problems = needs(*names)(path, source)
        secret: Tree | None = source.get("secretRef")
        return problems + ([] if secret is None else needs("name", "namespace")(f"{path}.secretRef", secret))

    return judge


def _storage_os(path: str, source: Source) -> list[FieldProblem]:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    problems = each(f"{path}.volumeName", name, dns_label(name)) if name else [required(f"{path}.volumeName")]
    problems += each(f"{path}.volumeNamespace", namespace, dns_label(namespace)) if namespace else []
    return problems + _with_secret()(path, source)


def _flex(path: str, source: Source) -> list[FieldProblem]:
    problems = needs("driver")(path, source)
    for key in sorted(source.get("options") or {}):
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            problems.append(invalid(f"{path}.options[{key}]", key, detail))
    return problems


#: The sources of PersistentVolumes, in the order in which they are validated.
VOLUME_SOURCES: Final[Mapping[str, Judge]] = {
    "hostPath": host_path,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "glusterfs": _glusterfs,
    "flocker": _flocker,
    "nfs": nfs,
    "rbd": needs("monitors", "image"),
    "quobyte": _quobyte,
    "cephfs": needs("monitors"),
    "iscsi": _iscsi,
    "cinder": _with_secret("volumeID"),
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "azureFile": _azure_file,
    "vsphereVolume": needs("volumePath"),
    "photonPersistentDisk": needs("pdID"),
    "portworxVolume": needs("volumeID"),
    "azureDisk": _azure_disk,
    "scaleIO": needs("gateway", "system", "volumeName"),
    "local": _local,
    "storageos": _storage_os,
    "csi": _csi,
}
#: Sources with other names in messages: about two sources, and about one.
MISNAMED: Final = {"cephfs": "cephFS"}
JUDGED_AS: Final = {"gcePersistentDisk": "persistentDisk"}
