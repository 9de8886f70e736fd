"""Decoding: bodies of requests become objects of the served kind, or are rejected as in kube-apiserver."""

from steersman.apiserver.decoding.body import BODY_MAX, Decoded, conform, decode_body, media_type_of, said_twice

__all__ = ["BODY_MAX", "Decoded", "conform", "decode_body", "media_type_of", "said_twice"]
