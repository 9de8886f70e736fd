"""Decoding: the bodies of requests become objects of the kind that is served, or are refused as kube-apiserver refuses them."""

from steersman.apiserver.decoding.body import BODY_MAX, Decoded, conform, decode_body, media_type_of, said_twice

__all__ = ["BODY_MAX", "Decoded", "conform", "decode_body", "media_type_of", "said_twice"]
