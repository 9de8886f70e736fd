"""The volumes of a Pod, and how containers mount them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steersman.apiserver.registry.builtin.persistent_volume_claim import claim
from steersman.apiserver.registry.builtin.pods.certificate_sources import pod_certificate, trust_bundle
from steersman.apiserver.registry.builtin.pods.environment import VOLUME_FIELDS, field_reference, resource_reference
from steersman.apiserver.registry.builtin.types.file_paths import descending, not_reserved
from steersman.apiserver.registry.builtin.types.labels import annotations, labels
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.apiserver.registry.builtin.types.volume_sources import (
    JUDGED_AS,
    MISNAMED,
    VOLUME_SOURCES,
    Source,
    driver_name,
    host_path,
    needs,
    nfs,
)
from steersman.objects import Quantity
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    each,
    enough,
    forbidden,
    invalid,
    required,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label, dns_subdomain

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_TEN_MINUTES = 600


def volumes(path: str, given: list[Tree], pod: str, *, is_pod: bool) -> tuple[dict[str, Tree], list[FieldProblem]]:
    """Validate the volumes of a Pod of this name (empty for a template).

    Returns the valid ones by name, and the problems.
    """
    problems: list[FieldProblem] = []
    good: dict[str, Tree] = {}
    created = {f"{pod}-{one.get('name', '')}" for one in given if pod and "ephemeral" in one}
    for index, volume in until_enough(given, problems):
        where, name = f"{path}[{index}]", volume.get("name", "")
        found = _source(where, volume, pod)
        if is_pod and "image" in volume and not volume["image"].get("reference"):
            found.insert(0, required(f"{where}.image.reference"))
        found += each(f"{where}.name", name, dns_label(name)) if name else [required(f"{where}.name")]
        if name in good:
            found.append(duplicate(f"{where}.name", name))
        if found:
            problems += found
        else:
            good[name] = volume
        named = inner(volume, "persistentVolumeClaim").get("claimName", "")
        if named in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            problems.append(invalid(f"{where}.persistentVolumeClaim.claimName", named, detail))
    return good, problems


def _source(path: str, volume: Tree, pod: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    first = ""
    for name, judge in _SOURCES.items():
        source = volume.get(name)
        if source is None:
            continue
        if first:
            shown = _MISNAMED.get(name, name)
            problems.append(forbidden(f"{path}.{shown}", "may not specify more than 1 volume type"))
            continue
        first = name
        problems += judge(f"{path}.{JUDGED_AS.get(name, name)}", source)
        if name == "ephemeral" and pod and volume.get("name"):
            claimed = f"{pod}-{volume['name']}"
            said = [f'PVC name "{claimed}": {message}' for message in dns_subdomain(claimed)]
            problems += each(f"{path}.name", volume["name"], said)
    return problems if first else [*problems, required(path, "must specify a volume type")]


def _mode(path: str, mode: int | None) -> list[FieldProblem]:
    return [invalid(path, mode, _MODE)] if mode is not None and not 0 <= mode <= 0o777 else []


def _empty_dir(path: str, source: Source) -> list[FieldProblem]:
    size = source.get("sizeLimit")
    if size is not None and Quantity(size) < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _keys(path: str, given: list[Tree]) -> list[FieldProblem]:
    return enough(found for index, item in enumerate(given) for found in _key_at(f"{path}[{index}]", item))


def _files(name: str) -> Callable[[str, Source], list[FieldProblem]]:
    def judge(path: str, source: Source) -> list[FieldProblem]:
        problems = [] if source.get(name) else [required(f"{path}.{name}")]
        problems += _mode(f"{path}.defaultMode", source.get("defaultMode"))
        return problems + _keys(f"{path}.items", items(source, "items"))

    return judge


def _downward_file(path: str, item: Source) -> list[FieldProblem]:
    problems = [] if item.get("path") else [required(f"{path}.path")]
    problems += not_reserved(f"{path}.path", item.get("path", ""))
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        problems += field_reference(f"{path}.fieldRef", field, VOLUME_FIELDS)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            problems.append(invalid(path, "resource", detail))
    elif resource is not None:
        problems += resource_reference(f"{path}.resourceFieldRef", resource, volume=True)
    else:
        problems.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return problems + _mode(f"{path}.mode", item.get("mode"))


def _downward(path: str, source: Source) -> list[FieldProblem]:
    problems = _mode(f"{path}.defaultMode", source.get("defaultMode"))
    for item in items(source, "items"):
        problems += _downward_file(path, item)
    return problems


def _projected(path: str, source: Source) -> list[FieldProblem]:
    problems = _mode(f"{path}.defaultMode", source.get("defaultMode"))
    seen: set[str] = set()
    for index, one in until_enough(items(source, "sources"), problems):
        where = f"{path}.sources[{index}]"
        for name in ("secret", "configMap"):
            if name in one:
                problems += _projected_keys(path, f"{where}.{name}", one[name], seen)
        for item in items(inner(one, "downwardAPI"), "items"):
            problems += _downward_file(f"{where}.downwardAPI", item)
            problems += _once(path, item.get("path", ""), item.get("path", ""), seen)
        if "serviceAccountToken" in one:
            problems += _token(path, f"{where}.serviceAccountToken", one["serviceAccountToken"])
        for name, judge in (("clusterTrustBundle", trust_bundle), ("podCertificate", pod_certificate)):
            if name in one:
                problems += judge(f"{where}.{name}", one[name], lambda target: _once(path, target, target, seen))
        if len(one) > 1:
            problems.append(forbidden(where, "may not specify more than 1 volume type per source"))
    return problems


def _projected_keys(volume: str, path: str, source: Tree, seen: set[str]) -> list[FieldProblem]:
    name = source.get("name", "")
    problems = [] if name else [required(f"{path}.name")]
    for position, item in until_enough(items(source, "items"), problems):
        problems += _key_at(f"{path}.items[{position}]", item) + _once(volume, item.get("path", ""), name, seen)
    return problems


def _once(volume: str, target: str, shown: str, seen: set[str]) -> list[FieldProblem]:
    """Two sources must not write the same file."""
    again = bool(target) and target in seen
    seen.add(target)
    return [invalid(volume, shown, "conflicting duplicate paths")] if again else []


def _key_at(where: str, item: Tree) -> list[FieldProblem]:
    problems = [required(f"{where}.{name}") for name in ("key", "path") if not item.get(name)]
    return problems + not_reserved(f"{where}.path", item.get("path", "")) + _mode(f"{where}.mode", item.get("mode"))


def _token(volume: str, path: str, token: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seconds = token.get("expirationSeconds", 0)
    if seconds < _TEN_MINUTES:
        detail = "may not specify a duration less than 10 minutes"
        problems.append(invalid(f"{path}.expirationSeconds", seconds, detail))
    if seconds > 1 << 32:
        detail = "may not specify a duration larger than 2^32 seconds"
        problems.append(invalid(f"{path}.expirationSeconds", seconds, detail))
    if not token.get("path"):
        return [*problems, required(f"{volume}.path")]
    return problems + not_reserved(f"{volume}.path", token["path"])


def _csi(path: str, source: Source) -> list[FieldProblem]:
    problems = driver_name(f"{path}.driver", source.get("driver", ""))
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        problems.append(required(f"{path}.nodePublishSecretRef.name"))
    elif secret is not None:
        problems += each(f"{path}.name", secret["name"], dns_subdomain(secret["name"]))
    return problems


def _ephemeral(path: str, source: Source) -> list[FieldProblem]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    where = f"{path}.volumeClaimTemplate"
    meta = inner(template, "metadata")
    problems = annotations(f"{where}.metadata.annotations", meta.get("annotations"))
    problems += labels(f"{where}.metadata.labels", meta.get("labels"))
    allowed = {"annotations", "labels"}
    problems += [forbidden(f"{where}.metadata.{name}", "cannot be set") for name in meta if name not in allowed]
    return problems + claim(f"{where}.spec", inner(template, "spec"))


def pull_policy(path: str, policy: str) -> list[FieldProblem]:
    """Check an image pull policy."""
    if not policy:
        return [required(path)]
    return [] if policy in _PULL_POLICIES else [unsupported(path, policy, _PULL_POLICIES)]


def _git(path: str, source: Source) -> list[FieldProblem]:
    problems = [] if source.get("repository") else [required(f"{path}.repository")]
    return problems + descending(f"{path}.directory", source.get("directory", ""))


_MISNAMED = MISNAMED | {"downwardAPI": "downwarAPI"}
_SOURCES: Mapping[str, Callable[[str, Source], list[FieldProblem]]] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": _git,
    "gcePersistentDisk": VOLUME_SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": VOLUME_SOURCES["awsElasticBlockStore"],
    "secret": _files("secretName"),
    "nfs": nfs,
    "iscsi": VOLUME_SOURCES["iscsi"],
    "glusterfs": needs("endpoints", "path"),
    "flocker": VOLUME_SOURCES["flocker"],
    "persistentVolumeClaim": needs("claimName"),
    "rbd": needs("monitors", "image"),
    "cinder": needs("volumeID"),
    "cephfs": needs("monitors"),
    "quobyte": VOLUME_SOURCES["quobyte"],
    "downwardAPI": _downward,
    "fc": VOLUME_SOURCES["fc"],
    "flexVolume": VOLUME_SOURCES["flexVolume"],
    "configMap": _files("name"),
    "azureFile": needs("secretName", "shareName"),
    "vsphereVolume": needs("volumePath"),
    "photonPersistentDisk": needs("pdID"),
    "portworxVolume": needs("volumeID"),
    "azureDisk": VOLUME_SOURCES["azureDisk"],
    "storageos": needs("volumeName"),
    "projected": _projected,
    "scaleIO": needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": lambda path, source: pull_policy(f"{path}.pullPolicy", source.get("pullPolicy", "")),
}
