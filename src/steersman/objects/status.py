"""meta/v1 `Status`: what a Kubernetes API server answers when it has no object to answer with.

Guarantees
- Decoding keeps what Kubernetes defines and ignores the rest; printing gives the same members that kube-apiserver prints:
  `kind`, `apiVersion` and `metadata` are always there, everything else only when it is set.
- A `Status` is immutable, so an error may carry it anywhere.
"""

import msgspec


def _status_kind() -> str:
    return "Status"


def _status_api_version() -> str:
    return "v1"


class StatusMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The list metadata of a `Status`; an expired list answers with a token to go on with, inconsistently."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class StatusCause(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One cause of a failure: a machine-readable reason, a sentence, and the field it is about."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a `Status` is about; `kind` holds a resource name ("configmaps") as often as a kind ("ConfigMap")."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The outcome of a request: `status` is "Success" or "Failure", `reason` and `code` say which failure."""

    # omit_defaults leaves out a value equal to a default, but not one made by a factory: these are always printed
    kind: str = msgspec.field(default_factory=_status_kind)
    api_version: str = msgspec.field(default_factory=_status_api_version)
    metadata: StatusMetadata = msgspec.field(default_factory=StatusMetadata)
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        """The causes, empty when the server gave none."""
        return self.details.causes if self.details is not None else ()

    @property
    def retry_after_seconds(self) -> int:
        """How long the server asks to wait before the next try; 0 when it does not say."""
        return self.details.retry_after_seconds if self.details is not None else 0


class _Head(msgspec.Struct, rename="camel"):
    # without defaults: a document that does not call itself a Status is none
    kind: str
    api_version: str


_head_decoder = msgspec.json.Decoder(_Head)
_decoder = msgspec.json.Decoder(Status)
_encoder = msgspec.json.Encoder()


def decode_status(raw: bytes) -> Status | None:
    """Decode `raw` if it is a meta/v1 Status; None for any other document, and for what is not JSON at all."""
    try:
        head = _head_decoder.decode(raw)
        return _decoder.decode(raw) if head.kind == "Status" and head.api_version == "v1" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def encode_status(status: Status) -> bytes:
    """Print `status` as JSON, members in kube-apiserver's order."""
    return _encoder.encode(status)
