"""CSIDrivers, CSINodes and VolumeAttachments."""

from __future__ import annotations

import re

from steersman.apiserver.registry.builtin.storage.persistent_volume import fill_source, volume_problems
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import MAX_INT32, in_range
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree
from steersman.apiserver.registry.builtin.types.volume_sources import driver_name
from steersman.apiserver.registry.strategy import WHOLE
from steersman.objects.field_problems import (
    IMMUTABLE,
    FieldProblem,
    duplicate,
    each,
    enough,
    forbidden,
    invalid,
    not_negative,
    required,
    too_long,
    unchanged,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_subdomain, qualified_name

_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES = ("Persistent", "Ephemeral")
#: Fields that are false by default.
_OFF = ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount", "preventPodSchedulingIfMissing")
_TEN_MINUTES, _TOKEN_MAX = 600, 1 << 32
_NODE_ID_MAX = 256
_SHORTEST_PERIOD = 10
_ATTACHMENT_SIZE, _ERROR_MAX = 256 * 1024, 1024
_TOKENS_SHOWN = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)
#: What the declared rule of an attacher says, whose regular expression is that of lowercase names.
_CASELESS = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'Example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


class CSIDriverStrategy(BuiltinStrategy):
    """How CSIDrivers behave."""

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        spec.setdefault("attachRequired", True)
        for name in _OFF:
            spec.setdefault(name, False)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        spec.setdefault("volumeLifecycleModes", ["Persistent"])

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Count changes of the spec. A new driver has no generation."""
        if obj["spec"] != old["spec"]:
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec = subtree(obj, "spec")
        problems: list[FieldProblem] = []
        policy, period = spec.get("fsGroupPolicy"), spec.get("nodeAllocatableUpdatePeriodSeconds")
        if policy is not None and policy not in _GROUP_POLICIES:
            problems.append(unsupported("spec.fsGroupPolicy", policy, _GROUP_POLICIES))
        problems += _tokens(items(spec, "tokenRequests"))
        problems += enough(
            unsupported("spec.volumeLifecycleModes", mode, _LIFECYCLES)
            for mode in items(spec, "volumeLifecycleModes")
            if mode not in _LIFECYCLES
        )
        if period is not None and period < _SHORTEST_PERIOD:
            detail = "must be greater than or equal to 10 seconds"
            problems.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, detail))
        in_secrets = spec.get("serviceAccountTokenInSecrets")
        if in_secrets is not None and not spec.get("tokenRequests"):
            detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            problems.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, detail))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the attachment requirement and the lifecycle modes do not change."""
        new, before = subtree(obj, "spec"), subtree(old, "spec")
        problems = self.validate_create(obj)
        problems += unchanged("spec.attachedRequired", new.get("attachRequired"), before.get("attachRequired"))
        name = "volumeLifecycleModes"
        return problems + unchanged(f"spec.{name}", new.get(name), before.get(name))

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about probable mistakes in a driver."""
        spec = inner(obj, "spec")
        requests = items(spec, "tokenRequests")
        is_new = old is None or requests != items(inner(old, "spec"), "tokenRequests")
        return [_TOKENS_SHOWN] if requests and is_new and "serviceAccountTokenInSecrets" not in spec else []


def _tokens(requests: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for index, request in until_enough(requests, problems):
        path, audience, seconds = (
            f"spec.tokenRequests[{index}]",
            request.get("audience", ""),
            request.get("expirationSeconds"),
        )
        if audience in seen:
            problems.append(duplicate(f"{path}.audience", audience))
            continue
        seen.add(audience)
        if seconds is not None and seconds < _TEN_MINUTES:
            detail = "may not specify a duration less than 10 minutes"
            problems.append(invalid(f"{path}.expirationSeconds", seconds, detail))
        if seconds is not None and seconds > _TOKEN_MAX:
            detail = "may not specify a duration larger than 2^32 seconds"
            problems.append(invalid(f"{path}.expirationSeconds", seconds, detail))
    return problems


class CSINodeStrategy(BuiltinStrategy):
    """How CSINodes behave."""

    judges_changes = False
    status_keeps_metadata = True

    def fill(self, obj: Tree) -> None:
        # A disabled feature.
        inner(obj, "status").pop("storageHealth", None)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        problems: list[FieldProblem] = []
        seen: set[str] = set()
        for index, driver in until_enough(items(subtree(obj, "spec"), "drivers"), problems):
            path, name = f"spec.drivers[{index}]", driver.get("name", "")
            problems += driver_name(f"{path}.name", name) + _node_id(f"{path}.nodeID", driver.get("nodeID", ""))
            problems += not_negative(f"{path}.allocatable.count", inner(driver, "allocatable").get("count"))
            if name in seen:
                problems.append(duplicate(f"{path}.name", name))
            seen.add(name)
            problems += _topology_keys(path, items(driver, "topologyKeys"))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that only the allocatable volumes of a driver change."""
        problems = [WHOLE, *self.validate_create(obj)]
        given: dict[str, list[Tree]] = {}
        for new in items(subtree(obj, "spec"), "drivers"):
            given.setdefault(new.get("name", ""), []).append(new)
        for driver in items(subtree(old, "spec"), "drivers"):
            for new in given.get(driver.get("name", ""), ()):
                kept = {name: value for name, value in new.items() if name != "allocatable"}
                if kept != {name: value for name, value in driver.items() if name != "allocatable"}:
                    problems.append(invalid("spec.drivers", printed(kept, "storage.CSINodeDriver"), IMMUTABLE))
        return problems


def _node_id(path: str, name: str) -> list[FieldProblem]:
    problems = [] if name else [required(path)]
    if len(name.encode()) > _NODE_ID_MAX:
        problems.append(invalid(path, name, f"must be {_NODE_ID_MAX} characters or less"))
    return problems


def _topology_keys(path: str, keys: list[str]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for _, key in until_enough(keys, problems):
        problems += [] if key else [required(path)]
        problems += [duplicate(path, key)] if key in seen else []
        seen.add(key)
        problems += each(path, key, qualified_name(key))
    return problems


class VolumeAttachmentStrategy(BuiltinStrategy):
    """How VolumeAttachments behave."""

    declared_fields = re.compile(r"spec|spec\.attacher")

    judges_changes = False
    judges_metadata_of_status = False
    status_keeps_metadata = True

    def fill(self, obj: Tree) -> None:
        spec = subtree(obj, "spec", "source", "inlineVolumeSpec")
        fill_source(spec)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec, status = subtree(obj, "spec"), subtree(obj, "status")
        attacher: str = spec.get("attacher", "")
        problems = driver_name("spec.attacher", attacher, words=_CASELESS) + _attached(inner(spec, "source"))
        node: str = spec.get("nodeName", "")
        problems += each("spec.nodeName", node, dns_subdomain(node)) + _attachment_status(status)
        name = inner(spec, "source").get("persistentVolumeName")
        path = "spec.source.persistentVolumeName"
        return problems + ([] if name is None else each(path, name, dns_subdomain(name)))

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the spec does not change."""
        problems = [WHOLE, *self.validate_create(obj)]
        if obj["spec"] != old["spec"]:
            problems.append(invalid("spec", printed(obj["spec"], "storage.VolumeAttachmentSpec"), IMMUTABLE))
        return problems

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        return self.validate_update(obj, old)


def _attached(source: Tree) -> list[FieldProblem]:
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    if inline is None and name is None:
        return [required("spec.source", _ONE_SOURCE)]
    if inline is not None and name is not None:
        return [forbidden("spec.source", _ONE_SOURCE)]
    if inline is not None:
        return volume_problems("spec.source.inlineVolumeSpec", inline, "", inline=True)
    return [] if name else [required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")]


def _attachment_status(status: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    stored = inner(status, "attachmentMetadata")
    if sum(len(key.encode()) + len(value.encode()) for key, value in stored.items()) > _ATTACHMENT_SIZE:
        problems.append(too_long("status.attachmentMetadata", _ATTACHMENT_SIZE))
    for name in ("attachError", "detachError"):
        error = inner(status, name)
        if len(error.get("message", "").encode()) > _ERROR_MAX:
            problems.append(too_long(f"status.{name}.message", _ERROR_MAX))
        code = error.get("errorCode")
        if code is not None and code < 0:
            problems += each(f"status.{name}.errorCode", code, in_range(code, 0, MAX_INT32))
    return problems
