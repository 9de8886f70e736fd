"""meta/v1 Status (`ApiStatus`): the response of a Kubernetes API server that has no object to return.

Guarantees
- Decoding keeps what Kubernetes defines and ignores the rest. Encoding produces the members that kube-apiserver prints:
  `kind`, `apiVersion` and `metadata` always, all others only if set.
- An `ApiStatus` is immutable, so an error may carry it anywhere.
"""

import msgspec


class StatusMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The list metadata of an `ApiStatus`; for an expired list it may contain a token for an inconsistent continuation."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class StatusCause(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One cause of a failure: a machine-readable reason, a message, and the field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The subject of an `ApiStatus`; `kind` is either a resource name ("configmaps") or a kind ("ConfigMap")."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class ApiStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The result of a request: `status` is "Success" or "Failure", `reason` and `code` identify the failure."""

    # omit_defaults omits a value equal to a default, but not one made by a factory: these are always printed
    kind: str = msgspec.field(default_factory=lambda: "Status")
    api_version: str = msgspec.field(default_factory=lambda: "v1")
    metadata: StatusMetadata = msgspec.field(default_factory=StatusMetadata)
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        """The causes; empty if the server sent none."""
        return self.details.causes if self.details is not None else ()

    @property
    def retry_after_seconds(self) -> int:
        """Seconds the server asks to wait before a retry; 0 if it does not say."""
        return self.details.retry_after_seconds if self.details is not None else 0


#: What msgspec raises for bytes that it cannot decode: not only its own errors.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Head(msgspec.Struct, rename="camel"):
    # no defaults: a document without kind and apiVersion is not a Status
    kind: str
    api_version: str


_head_decoder = msgspec.json.Decoder(_Head)
_decoder = msgspec.json.Decoder(ApiStatus)
_encoder = msgspec.json.Encoder()


def decode_status(raw: bytes) -> ApiStatus | None:
    """Decode `raw` if it is a meta/v1 Status; None for any other document and for invalid JSON."""
    try:
        head = _head_decoder.decode(raw)
        return _decoder.decode(raw) if head.kind == "Status" and head.api_version == "v1" else None
    except UNREADABLE:
        return None


def encode_status(status: ApiStatus) -> bytes:
    """Encode `status` as JSON, with members in kube-apiserver's order."""
    return _encoder.encode(status)
