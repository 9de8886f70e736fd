"""Verbs of subresources with their own kinds, one file each."""

from steersman.apiserver.verbs.subresources.binding import bind
from steersman.apiserver.verbs.subresources.handlers import SUBRESOURCE_VERBS
from steersman.apiserver.verbs.subresources.scale import scale

__all__ = ["SUBRESOURCE_VERBS", "bind", "scale"]
