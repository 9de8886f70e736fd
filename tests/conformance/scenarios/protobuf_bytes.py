"""Bytes that are called protobuf: cut off, of other types, of other kinds, twice, and too long."""

from __future__ import annotations

from typing import Any

from conformance.bodies import CM, POD, SERVICE, pod, service
from conformance.protobuf_encoding import MAGIC, PROTOBUF, Protobuf, bytes_field, envelope, number_field, varint
from conformance.scenario import Call, post, put, scenario

ONE = f"{CM}/a"
REVISIONS = "/apis/apps/v1/namespaces/{ns}/controllerrevisions"


def raw(method: Any, path: str, body: bytes, **options: Any) -> Call:
    """A request with bytes that are called protobuf."""
    return method(path, body, content=PROTOBUF, **options)


def of_config_map(message: bytes, api_version: str = "v1", kind: str = "ConfigMap") -> bytes:
    """A body with these bytes in it."""
    return envelope(api_version, kind, message)


META = bytes_field(1, bytes_field(1, b"a"))
ENTRY = bytes_field(1, b"key") + bytes_field(2, b"value")

#: Bodies that are no protobuf, or not in its envelope.
ENVELOPES = {
    "nothing": b"",
    "json": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}',
    "other-magic": b"k9s\x00" + of_config_map(META)[4:],
    "half-the-magic": b"k8",
    "magic-only": MAGIC,
    "no-type": MAGIC + bytes_field(2, META),
    "no-message": MAGIC + bytes_field(1, bytes_field(1, b"v1") + bytes_field(2, b"ConfigMap")),
    "cut-off": of_config_map(META + bytes_field(2, ENTRY))[:-9],
    "cut-off-in-its-type": of_config_map(META)[:10],
    "type-is-a-number": MAGIC + number_field(1, 1) + bytes_field(2, META),
    "message-is-a-number": MAGIC + number_field(2, 1),
    "kind-is-a-number": MAGIC + bytes_field(1, number_field(2, 1)) + bytes_field(2, META),
    "unknown-fields": of_config_map(META) + bytes_field(9, b"more") + number_field(10, 1),
    "end-of-a-group": MAGIC + varint(1 << 3 | 4),
    "field-zero": MAGIC + b"\x02\x00",
    "encoded": of_config_map(META) + bytes_field(3, b"gzip") + bytes_field(4, b"application/json"),
    "two-types": of_config_map(META) + bytes_field(1, bytes_field(2, b"Secret")),
    "two-messages": of_config_map(META) + bytes_field(2, bytes_field(1, bytes_field(1, b"b"))),
    "no-kind": of_config_map(META, kind=""),
    "no-version": of_config_map(META, api_version=""),
    "other-version": of_config_map(META, api_version="v2"),
    "other-group": of_config_map(META, api_version="apps/v1"),
    "many-slashes": of_config_map(META, api_version="a/b/c"),
    "unknown-kind": of_config_map(META, kind="Nope"),
    "kind-in-lower-case": of_config_map(META, kind="configmap"),
    "another-kind": of_config_map(META, kind="Secret"),
    "another-kind-that-cannot-be-read": of_config_map(number_field(1, 1), kind="Secret"),
    "a-list": of_config_map(b"", kind="ConfigMapList"),
}

#: Messages that are no ConfigMap, or a strange one.
MESSAGES = {
    "empty": b"",
    "cut-off": META[:-1],
    "cut-off-in-a-number": META + b"\x80",
    "metadata-is-a-number": number_field(1, 1),
    "immutable-is-text": META + bytes_field(4, b"yes"),
    "immutable-is-fixed": META + b"\x21" + bytes(8),
    "immutable-is-large": META + number_field(4, 2**63),
    "end-of-a-group": META + varint(2 << 3 | 4),
    "unknown-end-of-a-group": META + varint(20 << 3 | 4),
    "field-zero": META + b"\x02\x00",
    "negative-field": META + varint(2**34 - 6) + b"\x00",
    "field-that-wraps": META + varint((2**32 + 4) << 3) + b"\x01",
    "long-number": META + b"\x20" + b"\x80" * 10 + b"\x01",
    "number-that-wraps": META + b"\x20" + b"\x80" * 9 + b"\x02",
    "negative-length": META + b"\x12" + varint(-1),
    "long-length": META + b"\x12" + varint(2**40),
    "unknown-fields": META
    + bytes_field(99, b"x")
    + number_field(98, 1)
    + b"\xb9\x06"
    + bytes(8)
    + b"\xbd\x06"
    + bytes(4),
    "unknown-group": META + b"\xa3\x06" + number_field(1, 1) + b"\xa4\x06",
    "unknown-group-without-end": META + b"\xa3\x06" + number_field(1, 1),
    "unknown-wire-type": META + varint(20 << 3 | 6) + b"\x00",
    "unknown-negative-length": META + varint(20 << 3 | 2) + varint(-1),
    "unknown-long-length": META + varint(20 << 3 | 2) + varint(100),
    "metadata-twice": META + bytes_field(1, bytes_field(11, ENTRY)) + bytes_field(1, bytes_field(1, b"b")),
    "metadata-with-a-bad-label": META + bytes_field(1, bytes_field(11, number_field(1, 1))),
    "key-twice": META + bytes_field(2, ENTRY) + bytes_field(2, bytes_field(1, b"key") + bytes_field(2, b"other")),
    "entry-in-reverse": META + bytes_field(2, bytes_field(2, b"value") + bytes_field(1, b"key")),
    "entry-without-value": META + bytes_field(2, bytes_field(1, b"key")),
    "entry-without-key": META + bytes_field(2, bytes_field(2, b"value")),
    "entry-with-more": META + bytes_field(2, ENTRY + bytes_field(3, b"more")),
    "entry-cut-off": META + bytes_field(2, ENTRY[:-2]),
    "no-utf8": META + bytes_field(2, bytes_field(1, b"key") + bytes_field(2, b"a\xffb\xed\xa0\x80c")),
    "no-utf8-in-a-label": META + bytes_field(1, bytes_field(11, bytes_field(1, b"key") + bytes_field(2, b"a\xff"))),
    "nul": META + bytes_field(2, bytes_field(1, b"key") + bytes_field(2, b"a\x00b")),
    "binary": META + bytes_field(3, bytes_field(1, b"key") + bytes_field(2, b"a\xff\x00")),
    "binary-without-value": META + bytes_field(3, bytes_field(1, b"key")),
    "metadata-of-all-sorts": bytes_field(
        1,
        bytes_field(1, b"a")
        + bytes_field(5, b"uid")
        + number_field(7, 7)
        + bytes_field(8, number_field(1, 1) + number_field(2, 999_999_999))
        + number_field(10, -1)
        + bytes_field(14, b"example.com/a")
        + bytes_field(14, b"example.com/b"),
    ),
    "time-is-text": META + bytes_field(1, bytes_field(8, bytes_field(1, b"now"))),
}


SCENARIOS = [
    *(
        scenario(
            f"envelope-{name}",
            "Negotiation, Status errors",
            raw(post, CM, body),
            raw(post, CM, body, fieldValidation="Strict"),
            raw(put, ONE, body),
        )
        for name, body in ENVELOPES.items()
    ),
    *(
        scenario(
            f"message-{name}",
            "Negotiation, Status errors",
            raw(post, CM, of_config_map(message)),
            raw(put, ONE, of_config_map(message), fieldValidation="Strict"),
        )
        for name, message in MESSAGES.items()
    ),
    scenario(
        "odd-values",
        "Negotiation, Status errors",
        *(
            post(POD, Protobuf(pod(), more=bytes_field(2, more)), content=PROTOBUF, dryRun="All")
            for more in (
                # numbers that are packed, also partly
                bytes_field(14, bytes_field(4, b"\x01\x02\x80\x01")),
                bytes_field(14, bytes_field(4, b"\x01\x80")),
                bytes_field(14, b"\x25" + bytes(4)),
                # numbers that are cut to 32 bits
                number_field(25, 2**32 + 7),
                number_field(25, -1),
                # quantities
                bytes_field(32, bytes_field(1, b"cpu") + bytes_field(2, bytes_field(1, b"much"))),
                bytes_field(32, bytes_field(1, b"cpu") + bytes_field(2, bytes_field(1, b" 1"))),
                bytes_field(32, bytes_field(1, b"cpu") + bytes_field(2, bytes_field(1, b""))),
                bytes_field(32, bytes_field(1, b"cpu") + bytes_field(2, b"")),
                bytes_field(32, bytes_field(1, b"cpu")),
                bytes_field(32, bytes_field(1, b"cpu") + bytes_field(2, number_field(1, 1))),
            )
        ),
    ),
    scenario(
        "odd-ports",
        "Negotiation, Status errors",
        *(
            post(
                SERVICE,
                Protobuf(service(), more=bytes_field(2, bytes_field(1, number_field(3, 81) + bytes_field(1, b"b") + bytes_field(4, port)))),
                content=PROTOBUF,
                dryRun="All",
            )
            for port in (
                b"",
                number_field(1, 0) + number_field(2, 2**32 + 80),
                number_field(1, 1) + number_field(2, 80) + bytes_field(3, b"http"),
                bytes_field(1, b"text"),
            )
        ),
    ),
    scenario(
        "odd-revisions",
        "Negotiation, Status errors",
        *(
            raw(
                post,
                REVISIONS,
                envelope("apps/v1", "ControllerRevision", bytes_field(1, bytes_field(1, name)) + data + number_field(3, 1)),
            )
            for name, data in (
                (b"a", bytes_field(2, bytes_field(1, b"{}"))),
                (b"b", bytes_field(2, bytes_field(1, b'{"b":1,"a":{"c":null}}'))),
                (b"c", bytes_field(2, bytes_field(1, b'{"kind":"Pod","apiVersion":"v1"}'))),
                (b"d", bytes_field(2, number_field(1, 1))),
            )
        ),
    ),
]  # fmt: skip
