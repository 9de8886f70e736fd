"""Decoding: bodies of requests become objects of the served kind, or are rejected as in kube-apiserver."""

from steersman.apiserver.decoding.body import (
    BODY_MAX as BODY_MAX,
    Decoded as Decoded,
    conform as conform,
    decode_body as decode_body,
    media_type_of as media_type_of,
    said_twice as said_twice,
)
