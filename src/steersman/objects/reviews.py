"""Reviews: the requests that an API server sends to a webhook, and the responses it gets back.

Guarantees
- Encoding writes the members that kube-apiserver writes: an absent object is ``null``, ``dryRun`` and ``allowed`` are always there.
- Decoding ignores members that these types do not declare, and reads null as absent in a response, as Go does.
- An object inside of a review keeps its bytes (`msgspec.Raw`): it is neither parsed nor printed again on its way.
- A Raw of a decoded review is a view into the whole body: take ``bytes(raw)`` to keep one object.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Raw

from steersman.errors import ApiStatus
from steersman.objects.identity import GroupVersionKind, GroupVersionResource

AdmissionOperation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]

#: The value of ``patchType``: the API server supports no other.
JSON_PATCH_TYPE: Final = "JSONPatch"


def _null() -> Raw:
    return Raw(b"null")


def _never() -> bool:
    return False


def _succeeded() -> ApiStatus:
    return ApiStatus(status="Success")


def _admission_version() -> str:
    return "admission.k8s.io/v1"


def _admission_kind() -> str:
    return "AdmissionReview"


def _conversion_version() -> str:
    return "apiextensions.k8s.io/v1"


def _conversion_kind() -> str:
    return "ConversionReview"


# A default made by a factory is always written; the others are omitted.
class UserInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The user of a reviewed request."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class AdmissionRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One request to admit: the object as it would be stored, its old state, the user, and whether it is a dry run.

    ``kind`` and ``resource`` are those of the object; ``request_kind`` and ``request_resource`` those of the original
    request, which may use another version.
    """

    uid: str
    kind: GroupVersionKind
    resource: GroupVersionResource
    sub_resource: str = ""
    request_kind: GroupVersionKind | None = None
    request_resource: GroupVersionResource | None = None
    request_sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: AdmissionOperation
    user_info: UserInfo
    object: Raw = msgspec.field(default_factory=_null)
    old_object: Raw = msgspec.field(default_factory=_null)
    dry_run: bool | None = msgspec.field(default_factory=_never)
    options: Raw = msgspec.field(default_factory=_null)


class AdmissionResponse(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The answer to one request. ``patch`` is a JSON patch as text; its base64 form exists only on the wire."""

    uid: str
    allowed: bool
    status: ApiStatus | None = None
    patch: bytes | None = None
    patch_type: str | None = None
    audit_annotations: dict[str, str] | None = None
    warnings: tuple[str, ...] | None = None


class AdmissionReview(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The body of an admission webhook's request, and of its response."""

    kind: str = msgspec.field(default_factory=_admission_kind)
    api_version: str = msgspec.field(default_factory=_admission_version)
    request: AdmissionRequest | None = None
    response: AdmissionResponse | None = None


class ConversionRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Objects to convert to ``desired_api_version``."""

    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: tuple[Raw, ...]


class ConversionResponse(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The converted objects, in the order of the request; or a failure in ``result``."""

    uid: str
    converted_objects: tuple[Raw, ...] | None = msgspec.field(default_factory=tuple)
    result: ApiStatus = msgspec.field(default_factory=_succeeded)


class ConversionReview(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The body of a conversion webhook's request, and of its response."""

    kind: str = msgspec.field(default_factory=_conversion_kind)
    api_version: str = msgspec.field(default_factory=_conversion_version)
    request: ConversionRequest | None = None
    response: ConversionResponse | None = None
