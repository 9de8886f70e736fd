"""Admission reviews: builds the requests to webhooks, and checks the answers.

Guarantees
- Every invalid answer is rejected with kube-apiserver's message.
- An answer that cannot be read, or takes too long to read, is a failed call: the webhook's ``failurePolicy`` decides.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

import msgspec

from steersman.apiserver.admission import Attributes
from steersman.apiserver.decoding.yaml_text import UnreadableYaml, read_yaml
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.webhooks.matches import Subject
from steersman.apiserver.webhooks.targets import CallFailed
from steersman.errors import UNREADABLE, ApiStatus
from steersman.golang import cannot_unmarshal, json_problem, json_type, quoted
from steersman.objects import AdmissionRequest, AdmissionReview, GroupVersionResource, UserInfo
from steersman.wire import first_values

V1: Final = "admission.k8s.io/v1"
#: The longest answer in YAML, in bytes.
YAML_MAX: Final = 256 * 1024
_INT32: Final = 2**31
_encode: Final = msgspec.json.Encoder().encode
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
#: The Go types of an answer's fields.
_TYPES: Final[Mapping[str, tuple[str, type]]] = {
    "uid": ("types.UID", str),
    "allowed": ("bool", bool),
    "status": ("v1.Status", dict),
    "patch": ("[]uint8", str),
    "patchType": ("v1.PatchType", str),
    "auditAnnotations": ("map[string]string", dict),
    "warnings": ("[]string", list),
}

#: Those of the status in an answer.
_STATUS_TYPES: Final[Mapping[str, tuple[str, type]]] = {
    "status": ("string", str),
    "message": ("string", str),
    "reason": ("v1.StatusReason", str),
    "details": ("v1.StatusDetails", dict),
    "metadata": ("v1.ListMeta", dict),
    "code": ("int32", int),
}


class Verdict(NamedTuple):
    """The answer of a webhook."""

    allowed: bool
    status: ApiStatus | None
    #: The text of a JSON patch; empty for none.
    patch: bytes
    patch_type: str
    annotations: Mapping[str, str]
    warnings: list[str]


def review_version(versions: list[str]) -> str:
    """The first review version in a webhook's list that this server supports. Raises `CallFailed`."""
    for version in versions:
        if version in {"v1", "v1beta1"}:
            return version
    raise CallFailed(
        "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    )


def review(
    subject: Subject, target: Definition, uid: str, obj: Tree | None, old: Tree | None, version: str = "v1"
) -> bytes:
    """Encode the review of a write, in the version of a resource."""
    attributes = subject.attributes
    source, user = attributes.definition, attributes.request.user
    kind = subject.kind if attributes.view is not None else target.gvk
    request = AdmissionRequest(
        uid=uid,
        kind=kind,
        resource=GroupVersionResource(target.gvk.group, target.gvk.version, target.resource),
        sub_resource=attributes.subresource,
        request_kind=subject.kind,
        request_resource=GroupVersionResource(source.gvk.group, source.gvk.version, source.resource),
        request_sub_resource=attributes.subresource,
        name=subject.name,
        namespace=subject.namespace,
        operation=attributes.operation,
        user_info=UserInfo(
            username=user.name, uid=user.uid, groups=user.groups or None, extra=dict(user.extra) if user.extra else None
        ),
        object=_raw(obj),
        old_object=_raw(old),
        dry_run=attributes.dry_run,
        options=_raw(options(attributes)),
    )
    return _encode(AdmissionReview(api_version=f"admission.k8s.io/{version}", request=request))


def _raw(tree: Tree | None) -> msgspec.Raw:
    return msgspec.Raw(b"null" if tree is None else _encode(tree))


def options(attributes: Attributes) -> Tree | None:
    """The options of the request as an object; None for a connection."""
    kind = _OPTIONS.get(attributes.operation)
    if kind is None:
        return None
    made: Tree = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if attributes.options is not None:
        given: Tree = msgspec.to_builtins(attributes.options)
        return made | {name: value for name, value in given.items() if name not in made and value not in (None, [])}
    query = attributes.request.wire.query
    if query and kind != "DeleteOptions":
        first = first_values(query)
        if dry_run := [value for name, value in query if name == "dryRun"]:
            made["dryRun"] = dry_run
        made |= {name: first[name] for name in ("fieldManager", "fieldValidation") if first.get(name)}
    return made


def read_verdict(body: bytes, uid: str, *, mutating: bool, version: str = "v1") -> Verdict:
    """Decode and check the answer of a webhook. Raises `CallFailed`."""
    review = _parsed(body)
    if problem := kind_problem(review, "admission.k8s.io", version, "AdmissionReview"):
        raise _failed(problem)
    response = review.get("response")
    if not isinstance(response, dict):
        raise _invalid("webhook response was absent")
    answer = cast("Tree", response)
    found_uid = answer.get("uid") or ""
    patch, patch_type = _decoded(answer.get("patch")), answer.get("patchType")
    if version == "v1":
        _check(review, found_uid, uid)
        _check_patch(patch, patch_type, mutating=mutating)
    elif patch:
        patch_type = "JSONPatch"
    status = None if answer.get("status") is None else _read_status(answer["status"])
    return Verdict(
        answer.get("allowed") is True,
        status,
        patch if mutating else b"",
        patch_type or "",
        answer.get("auditAnnotations") or {},
        answer.get("warnings") or [],
    )


def _read_status(tree: Tree) -> ApiStatus:
    present: Tree = {name: value for name, value in tree.items() if value is not None}
    for name, (go_type, type_) in _STATUS_TYPES.items():
        value: Any = present.get(name)
        if value is not None and (not isinstance(value, type_) or isinstance(value, bool)):
            given = f"number {value}" if type_ is int and isinstance(value, float) else json_type(value)
            raise _failed(cannot_unmarshal(given, go_type, f"Status.response.status.{name}"))
    code: int = present.get("code", 0)
    if not -_INT32 <= code < _INT32:
        raise _failed(cannot_unmarshal(f"number {code}", "int32", "Status.response.status.code"))
    try:
        return msgspec.convert(present, ApiStatus)
    except msgspec.ValidationError as error:
        raise _failed(f"json: {error}") from None


def _check(review: Tree, found_uid: str, uid: str) -> None:
    if found_uid != uid:
        raise _invalid(f"expected response.uid={quoted(uid)}, got {quoted(found_uid)}")
    group, _, version = str(review.get("apiVersion") or "").rpartition("/")
    kind = review.get("kind") or ""
    if (group, version, kind) != ("admission.k8s.io", "v1", "AdmissionReview"):
        raise _invalid(
            f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
        )


def _check_patch(patch: bytes, patch_type: str | None, *, mutating: bool) -> None:
    if not mutating:
        if patch:
            raise _invalid("validating webhook may not return response.patch")
        if patch_type is not None:
            raise _invalid("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _parsed(body: bytes) -> Tree:
    """Decode the review in an answer, and check the types of its fields. Raises `CallFailed`."""
    try:
        # As in kube-apiserver, an answer that does not look like JSON is read as YAML.
        tree: Any = msgspec.json.decode(body) if body.lstrip().startswith(b"{") else _parsed_yaml(body)
    except (UnreadableYaml, RequestRejected) as error:
        raise _failed(f"couldn't get version/kind; json parse error: {error}") from None
    except UNREADABLE as error:
        why = json_problem(body, error, "AdmissionReview")
        raise _failed(f"couldn't get version/kind; json parse error: {why}") from None
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        why = cannot_unmarshal(
            json_type(tree),
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
        )
        raise _failed(f"couldn't get version/kind; json parse error: {why}")
    review = cast("Tree", tree)
    if review.get("kind") == "Status" and review.get("status") == "Failure":
        raise _failed(str(review.get("message") or ""))
    response: Any = review.get("response")
    if response is not None and not isinstance(response, dict):
        raise _failed(cannot_unmarshal(json_type(response), "v1.AdmissionResponse", "AdmissionReview.response"))
    for name, (go_type, type_) in _TYPES.items():
        value: Any = cast("Tree", response or {}).get(name)
        if value is not None and not isinstance(value, type_):
            raise _failed(cannot_unmarshal(json_type(value), go_type, f"AdmissionResponse.response.{name}"))
    _check_texts(cast("Tree", response or {}))
    return review


def _parsed_yaml(body: bytes) -> Any:
    """Decode YAML, which takes many times as long as JSON."""
    if len(body) > YAML_MAX:
        raise _failed(f"an answer in YAML is limited to {YAML_MAX} bytes (got {len(body)}): answer in JSON")
    return read_yaml(body)[0]


def _check_texts(response: Tree) -> None:
    """Check the types of the warnings and annotations; a null is an empty text, as in Go."""
    warnings: list[Any] = response.get("warnings") or []
    annotations: Tree = response.get("auditAnnotations") or {}
    for name, values in (("warnings", warnings), ("auditAnnotations", annotations.values())):
        wrong = next((each for each in values if each is not None and not isinstance(each, str)), None)
        if wrong is not None:
            raise _failed(cannot_unmarshal(json_type(wrong), "string", f"AdmissionResponse.response.{name}"))
    warnings[:] = [warning or "" for warning in warnings]
    annotations.update({name: value or "" for name, value in annotations.items()})


def kind_problem(review: Tree, group: str, version: str, kind: str) -> str:
    """The message about an answer of a wrong kind or version; empty without a kind, which is checked elsewhere."""
    api_version, found = str(review.get("apiVersion") or ""), str(review.get("kind") or "")
    if found and api_version and (found != kind or api_version not in {f"{group}/v1", f"{group}/v1beta1"}):
        return f'no kind "{found}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    if found and api_version and api_version != f"{group}/{version}":
        given = api_version.rpartition("/")[2]
        return f"converting ({given}.{kind}) to ({version}.{kind}): unknown conversion"
    return ""


def _decoded(patch: str | None) -> bytes:
    try:
        return base64.b64decode(patch or "", validate=True)
    except (binascii.Error, ValueError):
        at = next(
            (at for at, sign in enumerate(patch or "") if not (sign.isalnum() or sign in "+/=")), len(patch or "")
        )
        raise _failed(f"illegal base64 data at input byte {at}") from None


def _failed(why: str) -> CallFailed:
    return CallFailed(f"failed to call webhook: {why}")


def _invalid(why: str) -> CallFailed:
    return CallFailed(f"received invalid webhook response: {why}")
