"""Decoding: bodies of requests become objects of the served kind, or are rejected as in kube-apiserver."""

from steersman.apiserver.decoding.body import BODY_MAX as BODY_MAX, decode_body as decode_body
from steersman.apiserver.decoding.patch_result import conform as conform
from steersman.apiserver.decoding.rejections import Decoded as Decoded
